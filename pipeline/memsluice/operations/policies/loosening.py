"""What of a change of policy lets more happen than before (:mod:`memsluice.gate.policy.strictness`). Pure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from memsluice.gate.policy.diff import EVERYONE, FieldChange, between
from memsluice.gate.policy.model import Policy, PolicySet
from memsluice.gate.policy.strictness import is_looser

WHOLE_MAPS = ("ttl_seconds", "writes_per_day")
"""Maps of limits by tier: a tier that a file's map does not name has no limit, whatever the default says."""


@dataclass(frozen=True, slots=True)
class Loosening:
    """A field that lets more happen. ``left_out``: its limit ended because a map in the new policy's file does not name
    its tier."""

    change: FieldChange
    left_out: bool = False

    def words(self) -> str:
        """Return old and new value, and, of a limit that a map left out, how to keep it."""
        told = f"{value(self.change.before)} → {value(self.change.after)}"
        if not self.left_out:
            return told
        limits, _, tier = self.change.field.rpartition(".")
        return (
            f"{told}: the file's map {limits} does not name {tier}, and a map replaces the whole default; to keep the "
            f"limit, write {tier}: {self.change.before} into it"
        )


def value(one: object) -> str:
    """Return a field's value as a person reads it."""
    if isinstance(one, list | tuple):
        return ", ".join(map(str, one)) or "none"
    return "no limit" if one is None else str(one).lower() if isinstance(one, bool) else str(one)


def differences(before: PolicySet, after: PolicySet, tenant: str | None = None) -> tuple[FieldChange, ...]:
    """Return what differs, for everybody and whoever has overrides; with ``tenant``, for that one alone."""
    if tenant is None:
        return between(before, after)
    alone = between(PolicySet(before.of(tenant), {}), PolicySet(after.of(tenant), {}))
    return tuple(replace(one, who=tenant) for one in alone)


def loosened(changes: Iterable[FieldChange], after: PolicySet) -> tuple[Loosening, ...]:
    """Return those of some changes that let more happen than before; ``after`` is the policy that they lead to."""
    return tuple(
        Loosening(one, _left_out(one, after.default if one.who == EVERYONE else after.of(one.who)))
        for one in changes
        if is_looser(one.field, one.before, one.after)
    )


def _left_out(change: FieldChange, policy: Policy) -> bool:
    limits, _, tier = change.field.rpartition(".")
    if limits not in WHOLE_MAPS or change.after is not None or limits not in policy.model_fields_set:
        return False
    return tier not in getattr(policy, limits).model_fields_set
