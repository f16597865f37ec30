"""Where entries lie: a place in memory, who holds the object of a key, and which keys are protected."""

from dataclasses import dataclass
from typing import Any

from memsluice.events.models import Visibility, Zone
from memsluice.gate.state.rows import SEPARATOR, TenantRows

HOLDER = "holder"
"""Kind of the row of a keyed object: the event that lies there now, and where its write stood in the log."""
PROTECTED = "protected"
"""Kind of the rows that mark a key as immutable (iota = 1): one by the key itself, one by its guidance object."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a write lands: nothing of it is set where it does not. ``expires_ms`` is Unix ms, None for ever."""

    object_id: str | None = None
    zone: Zone | None = None
    visibility: Visibility | None = None
    expires_ms: int | None = None


NOWHERE = Place()


def hold_object(rows: TenantRows, where: Place, event_id: str, offset: int) -> None:
    """Note that a keyed object is this event's now; ``offset`` is the intake offset of its write."""
    if where.object_id is not None:
        rows.put(HOLDER, where.object_id, {"event": event_id, "offset": offset, "x": where.expires_ms})


def holder(rows: TenantRows, object_id: str) -> Any:
    """Return the row of a keyed object that is still there; None where it is free, or the object has no key."""
    return rows.get(HOLDER, object_id)


def overtaken(rows: TenantRows, event_id: str, row: Any) -> bool:
    """Whether a later write took the object of this entry's key.

    A keyed entry that lies there is its object's holder; where nobody is, what replaced it has gone as well.
    """
    held = holder(rows, row["object"])
    return bool(held["event"] != event_id if held is not None else row.get("keyed", False))


def protected_id(visibility: Visibility, owner: str, namespace: str, key: str) -> str:
    """Return the id of the row that marks a key as immutable (iota = 1)."""
    return SEPARATOR.join((visibility.value, owner, namespace, key))


def guards(rows: TenantRows, name: str | None) -> bool:
    """Whether an object, by its id, is what agents follow under a protected key."""
    return name is not None and rows.get(PROTECTED, name) is not None


def unprotect(rows: TenantRows, name: str) -> None:
    """Set iota(k) = 0 for the key of a guarded object."""
    rows.delete(PROTECTED, rows.get(PROTECTED, name)["key"])
    rows.delete(PROTECTED, name)
