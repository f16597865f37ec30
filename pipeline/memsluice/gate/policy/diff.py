"""What differs between two policies or two policy files, field by field. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from memsluice.gate.policy.flat import flat
from memsluice.gate.policy.model import Policy, PolicySet

EVERYONE = "every tenant"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """One field that differs: for whom, which (dotted), and its values, None where one has no such field."""

    who: str
    field: str
    before: Any
    after: Any


def between(before: PolicySet, after: PolicySet) -> tuple[FieldChange, ...]:
    """Return every difference: first for everyone, then for each tenant that either of them names."""
    found = list(_fields(EVERYONE, before.default, after.default))
    for tenant in sorted(before.tenants.keys() | after.tenants.keys()):
        found += _fields(tenant, before.of(tenant), after.of(tenant))
    return tuple(found)


def _fields(who: str, before: Policy, after: Policy) -> Iterator[FieldChange]:
    old, new = flat(before), flat(after)
    for field in [*old, *(name for name in new if name not in old)]:
        if old.get(field) != new.get(field):
            yield FieldChange(who, field, old.get(field), new.get(field))
