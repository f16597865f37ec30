"""How many entries lie in memory, by tier and zone: counted where they come and go, in rows of the partition.

An entry lies there from the decision that lands it until it expires, is taken out, or a later write has its key's
object. A count row holds the entries that expire within one span of time, and expires with the last of them: so nobody
has to be there when an entry ends, and what ended is counted for at most a span (SPAN_MS) longer. A row is put whole.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any

from memsluice.events.models import Tier
from memsluice.gate.policy.model import DAY_MS
from memsluice.gate.state import placement
from memsluice.gate.state.kinds import ENTRY, HOLDER, LYING, LyingRow
from memsluice.gate.state.rows import SEPARATOR, Getter, TenantRows

WHOLE_PARTITION = ""
"""The rows belong to the partition, not to a tenant: their first part is empty, as that of the position rows."""
SPAN_MS: Mapping[Tier, int] = {
    Tier.OPERATOR: DAY_MS,
    Tier.USER_VERIFIED: 7 * DAY_MS,
    Tier.USER_OBSERVED: DAY_MS,
    Tier.EXTERNAL_TOOL: DAY_MS // 4,
    Tier.EXTERNAL_WEB: 600_000,
}
"""About a fiftieth to a sixth of what the shipped policy lets an entry of that tier live."""

Where = tuple[int, str, int | None]
"""Tier, zone, and when it expires (Unix ms; None: never)."""


def counted(
    rows: Getter, tenant: str, now_ms: int, changes: Mapping[tuple[str, str], Any]
) -> list[tuple[str, LyingRow | None]]:
    """Return the count rows (id, value; None: gone) after a decision that changes these rows of a tenant."""
    before = TenantRows(rows, tenant, now_ms)
    after = before.fork()
    after.changes = dict(changes)
    moved: Counter[Where] = Counter()
    for event_id in _touched(before, changes):
        was, now = _lies(before, event_id), _lies(after, event_id)
        if was != now:
            moved.update({was: -1} if was is not None else {})
            moved.update({now: 1} if now is not None else {})
    totals = TenantRows(rows, WHOLE_PARTITION, now_ms)
    for where, number in moved.items():
        _add(totals, where, number)
    return [(row_id, value) for (_, row_id), value in totals.changes.items()]


def ends_ms(tier: int, expires_ms: int | None) -> int | None:
    """Return when an entry's span ends (Unix ms), from which on it is not counted; None for one that never expires."""
    if expires_ms is None:
        return None
    span = SPAN_MS[Tier(tier)]
    return -(-expires_ms // span) * span


def read(row_id: str) -> tuple[Tier, str]:
    """Return tier and zone of a count row."""
    tier, zone, _ = row_id.split(SEPARATOR)
    return Tier(int(tier)), zone


def _touched(before: TenantRows, changes: Mapping[tuple[str, str], Any]) -> list[str]:
    """Return the entries whose place may have changed: those with changed rows, and those that lost a key's object."""
    held = (placement.holder(before, row_id) for kind, row_id in changes if kind == HOLDER.name)
    names = [row_id for kind, row_id in changes if kind == ENTRY.name]
    return list(dict.fromkeys([*names, *(row.event for row in held if row is not None)]))


def _lies(rows: TenantRows, event_id: str) -> Where | None:
    row = rows.get(ENTRY, event_id)
    if row is None or not row.landed:
        return None
    held = placement.holder(rows, row.object_id) if row.keyed else None
    if row.keyed and (held is None or held.event != event_id):
        return None
    return int(row.tier), str(row.zone), row.expires_ms


def _add(totals: TenantRows, where: Where, number: int) -> None:
    tier, zone, expires_ms = where
    end = ends_ms(tier, expires_ms)
    row_id = SEPARATOR.join((str(tier), zone, "" if end is None else str(end)))
    row = totals.get(LYING, row_id)
    left = max((0 if row is None else row.number) + number, 0)
    if left:
        totals.put(LYING, row_id, LyingRow(number=left, expires_ms=end))
    else:
        totals.delete(LYING, row_id)
