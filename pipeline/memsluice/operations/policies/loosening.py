"""What of a change of policy lets more happen than before. Pure.

Every field of a policy has one of four readings here: more of it is looser, less of it is looser, its values have an
order of their own, or it lets nothing more happen either way. A new field without one fails a test. What cannot be
ranked counts as looser: a person says whether it is.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from memsluice.gate.policy.diff import EVERYONE, FieldChange, between
from memsluice.gate.policy.model import Policy, PolicySet
from memsluice.gate.policy.part import FIELD_OF

WHOLE_MAPS = ("ttl_seconds", "writes_per_day")
"""Maps of limits by tier: a tier that a file's map does not name has no limit, whatever the default says."""
Looser = Callable[[Any, Any], bool]
"""Whether the second value lets more happen than the first."""


def _more(before: Any, after: Any) -> bool:
    """A limit that rose, or ended: None is no limit."""
    return before is not None and (after is None or after > before)


def _less(before: Any, after: Any) -> bool:
    return bool(after < before)


def _fewer(before: Any, after: Any) -> bool:
    return not set(before) <= set(after)


def _ended(before: Any, after: Any) -> bool:
    return bool(before) and not after


def _begun(before: Any, after: Any) -> bool:
    return bool(after) and not before


def _other(before: Any, after: Any) -> bool:
    return bool(before != after)


def _never(_before: Any, _after: Any) -> bool:
    return False


def _ranked(*ranks: Iterable[str]) -> Looser:
    """Return the reading of names in ranks, the strictest first. Of two in one rank nobody can say which is."""
    rank = {name: number for number, names in enumerate(ranks) for name in names}
    return lambda before, after: before != after and rank[after] >= rank[before]


def _by_tier(name: str, looser: Looser) -> dict[str, Looser]:
    return {f"{name}.{tier}": looser for tier in FIELD_OF.values()}


def _calibration(name: str) -> dict[str, Looser]:
    """How a detector learns: another strategy draws another line, which may lie anywhere."""
    return {
        f"{name}.strategy": _other, f"{name}.ewma_weight": _other, f"{name}.gamma": _other, f"{name}.credit": _begun,
    }  # fmt: skip


READINGS: Mapping[str, Looser] = {
    "name": _never,
    "profile": _ranked(["strict"], ["tiered"]),
    "mode": _ranked(["enforce"], ["shadow"]),
    "content_bytes_max": _more,
    **_by_tier("ttl_seconds", _more),
    **_by_tier("writes_per_day", _more),
    "taint": _ranked(["session"], ["turn", "influence"], ["parents"]),
    "session_retention_days": _less,  # then a session of the name is clean
    "renew_on_use.enabled": _begun,
    "renew_on_use.least_elapsed": _less,
    "renew_on_use.per_day": _more,
    "renew_on_use.per_entry_per_day": _more,
    "renew_on_use.longest_days": _more,
    "intake.events_per_s": _more,
    "intake.burst": _more,
    "quarantine.age_days": _never,  # how long a person may decide lets nothing in
    "quarantine.per_principal_max": _more,
    "quarantine.refused_per_principal_max": _more,
    "quarantine.refused_per_tenant_max": _more,
    "commands.promotions_per_day": _more,
    "commands.declassifications_per_day": _more,
    "instructions.enabled": _ended,
    "instructions.facts_chars_max": _more,
    "instructions.hold_contained": _ended,
    "drift.action": _ranked(["hold"], ["report"], ["ignore"]),
    "drift.allowance": _more,
    "drift.limit": _more,
    "drift.days": _less,
    "graph.action": _ranked(["report"], ["ignore"]),
    **{f"graph.{name}": _more for name in ("agree", "hub_links", "hijack_links", "inner_links")},
    "sensitive.action": _ranked(["redact", "hold"], ["report"]),  # one takes the value out, one keeps the write out
    "detector": _other,
    "wording.action": _ranked(["hold"], ["report"]),
    **{f"wording.{name}": _less for name in ("own", "relied", "shared", "with_pattern", "with_pattern_own")},
    **_by_tier("wording.per_tier", _less),
    "detect.threshold": _more,
    "detect.alpha": _less,
    **_by_tier("detect.per_tier", _less),
    "detect.window": _never,
    **_calibration("detect.calibration"),
    "detect.kappa": _more,
    "detect.reach": _fewer,
    "detect.signals": _fewer,
    "detect.questions": _less,
    "detect.entries": _less,
    "detect.look_back": _ended,
    "detect.look_back_per_day": _less,
    "memsad.enabled": _ended,
    "memsad.mode": _other,
    "memsad.kappa": _more,
    "memsad.reference_size": _never,
    "memsad.history_size": _less,
    "memsad.delta": _never,  # of a bound that is reported
    "memsad.cold_threshold": _more,
    **_calibration("memsad.calibration"),
    "memsad.window": _never,
    "memsad.alpha": _less,
    "memsad.frozen": _never,
    "memsad.variant": _other,
    "memsad.proactive_threshold": _more,
    "memsad.watermark": _other,
    "memsad.watermark_z": _less,
}
"""How each field is read, by its dotted name."""


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
        if READINGS.get(one.field, _other)(one.before, one.after)
    )


def _left_out(change: FieldChange, policy: Policy) -> bool:
    limits, _, tier = change.field.rpartition(".")
    if limits not in WHOLE_MAPS or change.after is not None or limits not in policy.model_fields_set:
        return False
    return tier not in getattr(policy, limits).model_fields_set
