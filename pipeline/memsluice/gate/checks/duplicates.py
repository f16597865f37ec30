"""Event ids are unique within a window: a replayed event is a duplicate, another event under the same id is held."""

from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.gate.checks.authenticity import EVENT_WINDOW_MS, FUTURE_SKEW_MS
from memsluice.gate.state.kinds import ENTRY, EVENT, EventRow
from memsluice.gate.state.rows import SEPARATOR, TenantRows


def event_row_id(sealed: Sealed, *, first: bool) -> str:
    """Return the id of an event's own row: its event id, or, for a later one of the same id, id and position."""
    assert sealed.payload is not None
    if first:
        return sealed.payload.id
    return SEPARATOR.join((sealed.payload.id, sealed.position.topic, str(sealed.position.offset)))


def is_of(row: EventRow, sealed: Sealed) -> bool:
    """Whether an event row was written for this very intake offset."""
    return (row.topic, row.offset) == (sealed.position.topic, sealed.position.offset)


def check(rows: TenantRows, sealed: Sealed) -> Finding | None:
    """Return a finding where the event id was seen at another offset.

    Ids are remembered for the window, and as long as an entry of that id lives: nobody takes over its lineage or place.
    """
    assert sealed.payload is not None
    row = rows.get(EVENT, sealed.payload.id) or rows.get(ENTRY, sealed.payload.id)
    if row is None:
        return None
    detail = {"first_topic": row.topic, "first_offset": row.offset}
    if row.digest == sealed.payload_digest:
        return Finding("duplicates.replayed", Decision.DUPLICATE, detail)
    return Finding("duplicates.other_content", Decision.QUARANTINE, detail)


def expires_ms(now_ms: int) -> int:
    """Return when an event's row may be forgotten: when even an event dated ahead is too old (Unix ms)."""
    return now_ms + EVENT_WINDOW_MS + FUTURE_SKEW_MS
