"""Where entries lie: a place in memory, who holds the object of a key, and which keys are protected."""

from msgspec import Struct

from memsluice.events.models import Visibility, Zone
from memsluice.gate.state.kinds import HOLDER, PROTECTED, EntryRow, HolderRow
from memsluice.gate.state.rows import SEPARATOR, TenantRows


class Place(Struct, frozen=True):
    """Where a write lands: nothing of it is set where it does not. ``expires_ms`` is Unix ms, None for ever."""

    object_id: str | None = None
    zone: Zone | None = None
    visibility: Visibility | None = None
    expires_ms: int | None = None


NOWHERE = Place()


def hold_object(rows: TenantRows, where: Place, event_id: str, offset: int) -> None:
    """Note that a keyed object is this event's now; ``offset`` is the intake offset of its write."""
    if where.object_id is not None:
        rows.put(HOLDER, where.object_id, HolderRow(event=event_id, offset=offset, expires_ms=where.expires_ms))


def holder(rows: TenantRows, object_id: str | None) -> HolderRow | None:
    """Return the row of a keyed object that is still there; None where it is free, or the object has no key."""
    return None if object_id is None else rows.get(HOLDER, object_id)


def overtaken(rows: TenantRows, event_id: str, row: EntryRow) -> bool:
    """Whether a later write took the object of this entry's key.

    A keyed entry that lies there is its object's holder; where nobody is, what replaced it has gone as well.
    """
    held = holder(rows, row.object_id)
    return held.event != event_id if held is not None else bool(row.keyed)


def protected_id(visibility: Visibility, owner: str, namespace: str, key: str) -> str:
    """Return the id of the row that marks a key as immutable (iota = 1)."""
    return SEPARATOR.join((visibility.value, owner, namespace, key))


def guards(rows: TenantRows, name: str | None) -> bool:
    """Whether an object, by its id, is what agents follow under a protected key."""
    return name is not None and rows.get(PROTECTED, name) is not None


def unprotect(rows: TenantRows, name: str) -> None:
    """Set iota(k) = 0 for the key of a guarded object."""
    row = rows.get(PROTECTED, name)
    if row is not None:
        rows.delete(PROTECTED, row.key)
        rows.delete(PROTECTED, name)
