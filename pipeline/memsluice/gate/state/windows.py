"""Counts over a sliding window in fixed memory: a few buckets a row, idempotent because a row is put whole."""

from msgspec.structs import replace

from memsluice.gate.state.kinds import CountsRow
from memsluice.gate.state.rows import RowKind, TenantRows

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
Live = dict[str, int]
"""Counts by the bucket's number as text."""


def count(
    rows: TenantRows, kind: RowKind[CountsRow], row_id: str, now_ms: int, *, bucket_ms: int, buckets: int
) -> tuple[int, Live]:
    """Return (count within the window, live buckets by number as text). At most ``buckets + 1`` are kept."""
    row = rows.get(kind, row_id)
    oldest = now_ms // bucket_ms - buckets
    live = {number: n for number, n in ({} if row is None else row.buckets).items() if int(number) > oldest}
    return sum(live.values()), live


def add(
    rows: TenantRows, kind: RowKind[CountsRow], row_id: str, now_ms: int, live: Live, *, bucket_ms: int, buckets: int
) -> None:
    """Count one more at ``now_ms``."""
    number = str(now_ms // bucket_ms)
    counted = {**live, number: live.get(number, 0) + 1}
    rows.put(kind, row_id, CountsRow(buckets=counted, expires_ms=now_ms + (buckets + 1) * bucket_ms))


def remove(
    rows: TenantRows, kind: RowKind[CountsRow], row_id: str, at_ms: int, now_ms: int, *, bucket_ms: int, buckets: int
) -> None:
    """Count one less of those counted at ``at_ms``; nothing changes where that lies outside of the window by now."""
    row, number = rows.get(kind, row_id), str(at_ms // bucket_ms)
    _, live = count(rows, kind, row_id, now_ms, bucket_ms=bucket_ms, buckets=buckets)
    if row is not None and live.get(number, 0) > 0:
        rows.put(kind, row_id, replace(row, buckets={**live, number: live[number] - 1}))
