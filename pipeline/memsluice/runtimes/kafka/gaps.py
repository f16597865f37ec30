"""Gap detection: within one assignment a partition's offsets go up by exactly one.

The intake topics and *seal*'s are neither compacted nor transactional, so a jump is a lost record, whoever lost it. The
partition is parked until a person resumes it, from its last commit, or acknowledges the loss. Between the records of a
transactional topic lie the transactions' markers, and whatever was aborted, which no reader is given: there each record
says which one was fetched before it, and what retention removed is asked of the log wherever more than a marker is
missing.

A record that comes twice (Faust may deliver what it fetched before and after a seek) is no loss; the second one is
dropped, since the first is in work.
"""

from collections.abc import Hashable
from typing import Final

from memsluice.envelope.partition_orders import Missing
from memsluice.errors import GapError

MARKERS_MAX: Final = 1
"""Offsets that may be missing before a record without a question to the log: one marker a transaction."""


class GapDetector:
    """Next expected offset of each partition of the current assignment. Bounded by the number of partitions."""

    def __init__(self) -> None:
        self._next: dict[Hashable, int] = {}
        self._base: dict[Hashable, int] = {}
        self._passed: dict[Hashable, list[Missing]] = {}

    def clear(self) -> None:
        """Forget everything: partitions were revoked or assigned anew."""
        self._next.clear()
        self._base.clear()
        self._passed.clear()

    def forget(self, partition: Hashable) -> None:
        """Forget one partition: it is parked, and starts anew."""
        for known in (self._next, self._base, self._passed):
            known.pop(partition, None)

    def acknowledge(self, partition: Hashable, missing: Missing) -> None:
        """Take these records for passed when they are found missing: somebody knows that they are lost."""
        self._passed.setdefault(partition, []).append(missing)

    def knows(self, partition: Hashable) -> bool:
        """Tell whether :meth:`start` was called for the partition since the last :meth:`clear`."""
        return partition in self._next

    def start(self, partition: Hashable, base: int) -> None:
        """Set the first offset expected: the committed one, or the log's start where nothing was committed."""
        self._next[partition] = self._base[partition] = base

    def see(self, partition: Hashable, offset: int) -> bool:
        """Note one record: True if it is the next one, False if it was seen already.

        Raises GapError when records before it are missing, or when the log went back behind the first record due (it
        was truncated, and its offsets are being given out again); KeyError for a partition that was not started.
        """
        expected = self._next[partition]
        if offset < self._base[partition]:
            raise GapError(
                f"{partition} went back to record {offset}, before {self._base[partition]}. The log may have been "
                "truncated: restore the topic."
            )
        if offset < expected:
            return False
        if offset > expected:
            self._lost(partition, offset - 1)
        self._next[partition] = offset + 1
        return True

    def jump(self, partition: Hashable, offset: int) -> int:
        """Return how many offsets are missing before a record, 0 for the next one or one that was seen."""
        return max(0, offset - self._next[partition])

    def starts(self, partition: Hashable, start: int) -> None:
        """Raise GapError where the log starts behind the next offset expected: retention removed what was not read."""
        if start > self._next[partition]:
            self._lost(partition, start - 1)

    def see_after(self, partition: Hashable, offset: int, before: int | None) -> bool:
        """Note one record of a transactional topic, fetched right after ``before`` (None: the first fetched).

        Returns and raises as :meth:`see`; missing is only what was fetched and did not arrive here.
        """
        expected = self._next[partition]
        if before is not None and expected <= before < offset:
            self._lost(partition, before)
        if offset > expected:
            self._next[partition] = offset
        return self.see(partition, offset)

    def _lost(self, partition: Hashable, last: int) -> None:
        """Go on behind ``last`` where its loss is acknowledged. Raises GapError for what of it is not."""
        first = self._next[partition]
        for passed in self._passed.get(partition, ()):
            if passed.first == first and passed.last <= last:
                self._next[partition] = first = passed.last + 1
        if first <= last:
            topic = str(getattr(partition, "topic", partition))
            raise GapError(
                f"records {first} to {last} of {topic} were not delivered", topic=topic, first=first, last=last
            )
