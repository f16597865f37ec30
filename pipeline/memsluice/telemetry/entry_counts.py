"""Follows *screen*'s count of what lies in memory (:mod:`memsluice.gate.state.entry_counts`). Writes nothing."""

from collections.abc import Iterable, Mapping

from memsluice.clock import Clock
from memsluice.events.models import Tier
from memsluice.events.records import RowChange, Rows
from memsluice.gate.state import entry_counts
from memsluice.gate.state.kinds import LYING
from memsluice.stages.base import Step

PREFIX = LYING.key(entry_counts.WHOLE_PARTITION)
ROWS_MAX = 20_000
"""Count rows of one partition that are read: some 250 are alive under the shipped lifetimes."""

_Count = tuple[Tier, str, int | None, int]
"""Tier, zone, end (Unix ms; None: never), number."""


class Lying:
    """The counts of the partitions in which this process decided something. Written by one thread at a time, read by
    others: a partition's counts are replaced whole."""

    def __init__(self, now_ms: Clock) -> None:
        self._now_ms = now_ms
        self._parts: dict[int, Mapping[bytes, _Count]] = {}

    def knows(self, partition: int) -> bool:
        """Whether the rows of a partition were read."""
        return partition in self._parts

    def see(self, partition: int, rows: Rows, step: Step) -> None:
        """Take in everything that a partition's rows say, and what a record changed."""
        self._take(partition, {}, [*rows.scan(PREFIX, ROWS_MAX), *_counts(step.changes)])

    def changed(self, partition: int, changes: Iterable[RowChange]) -> None:
        """Take in what a record changed, if the partition is known."""
        known, counts = self._parts.get(partition), _counts(changes)
        if known is not None and counts:
            self._take(partition, known, counts)

    def _take(self, partition: int, known: Mapping[bytes, _Count], rows: Iterable[tuple[bytes, bytes | None]]) -> None:
        counts = dict(known)
        for key, value in rows:
            counts.pop(key, None)
            if value is not None:
                row = LYING.load(value)
                counts[key] = (*entry_counts.read(key[len(PREFIX) :].decode()), row.expires_ms, row.number)
        self._parts[partition] = counts

    def forget(self, partition: int) -> None:
        """Drop a partition: another worker counts it, or it was recovered anew."""
        self._parts.pop(partition, None)

    def count(self, tier: Tier, zone: str) -> int:
        """Return how many entries of a tier lie in a zone, as far as this process knows."""
        now_ms = self._now_ms()
        alive = (
            one for part in list(self._parts.values()) for one in part.values() if one[2] is None or one[2] > now_ms
        )
        return sum(number for its, where, _, number in alive if (its, where) == (tier, zone))


def _counts(changes: Iterable[RowChange]) -> list[tuple[bytes, bytes | None]]:
    return [(change.key, change.value) for change in changes if change.key.startswith(PREFIX)]
