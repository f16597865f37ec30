"""Sweeps expired rows, a few per event, so that state stays bounded. It never changes a decision: an expired row is
absent to the core whether it was swept or not."""

from memsluice.events.records import RowChange, Rows
from memsluice.gate.state.rows import LATE_MS, expires_ms, row_prefix

EVERY_EVENTS = 4
TENANTS_MAX = 100_000
"""Tenants that a worker counts for at once, some 20 MiB of them: more taking turns would never be swept."""
SCANNED_MAX = 16


class Sweeper:
    """Walks all rows of one tenant round and round, with a cursor per partition and tenant (bounded).

    Of whatever kind they are: a row that has an ``x`` (its expiry) is swept, one that has none stays.
    """

    def __init__(self) -> None:
        self._cursors: dict[tuple[int, str], bytes] = {}
        self._events: dict[tuple[int, str], int] = {}

    def forget(self, partition: int) -> None:
        """Drop the cursors of a partition."""
        self._events = {key: count for key, count in self._events.items() if key[0] != partition}
        self._cursors = {key: cursor for key, cursor in self._cursors.items() if key[0] != partition}

    def expired(self, partition: int, tenant: str, rows: Rows, now_ms: int) -> list[RowChange]:
        """Return deletions of the rows that expired among the next SCANNED_MAX, every EVERY_EVENTS events.

        Four rows are looked at an event and about three are written, so a full round ends and state stays bounded.
        """
        key = (partition, tenant)
        count = self._events.pop(key, 0) + 1
        while len(self._events) >= TENANTS_MAX:  # whoever wrote nothing for longest begins anew
            idle = next(iter(self._events))
            del self._events[idle]
            self._cursors.pop(idle, None)
        self._events[key] = count
        if count % EVERY_EVENTS:
            return []
        prefix = row_prefix(tenant)
        found = list(rows.scan(prefix, SCANNED_MAX, after=self._cursors.get(key)))
        self._cursors[key] = found[-1][0] if len(found) == SCANNED_MAX else prefix
        gone = []
        for row, value in found:
            ends_ms = expires_ms(value)
            if ends_ms is not None and ends_ms + LATE_MS <= now_ms:
                gone.append(RowChange(row, None))
        return gone
