"""Gap detection: within one assignment a partition's offsets go up by exactly one.

The topics are neither compacted nor transactional, so a jump is a lost record, whoever lost it. The worker ends and
the group reads again from the last commit. A record that comes twice (Faust may deliver what it fetched before and
after a seek) is no loss; the second one is dropped, since the first is in work.
"""

from collections.abc import Hashable

from memsluice.errors import GapError


class GapDetector:
    """Next expected offset of each partition of the current assignment. Bounded by the number of partitions."""

    def __init__(self) -> None:
        self._next: dict[Hashable, int] = {}
        self._base: dict[Hashable, int] = {}

    def clear(self) -> None:
        """Forget everything: partitions were revoked or assigned anew."""
        self._next.clear()
        self._base.clear()

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
            raise GapError(
                f"records {expected} to {offset - 1} of {partition} were not delivered; the worker ends, the group "
                "reads again from its last commit (if the broker's retention removed them, reset the group's offset)"
            )
        self._next[partition] = offset + 1
        return True
