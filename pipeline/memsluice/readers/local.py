"""A topic of a home's local log: the audit topic, unless told otherwise."""

from collections.abc import Iterator, Mapping

from memsluice.deployment.local_log import LocalLog
from memsluice.events.records import Record
from memsluice.topics.names import AUDIT


class LocalTopic:
    """A :class:`~memsluice.readers.base.TopicReader` on a local log, which stays its owner's to close."""

    def __init__(self, log: LocalLog, *, name: str = "the local log", topic: str = AUDIT) -> None:
        self.name = name
        self.log = log
        self._topic = topic

    def end(self, partition: int) -> int:
        """Return the offset that the next record will get."""
        return self.log.end(self._topic, partition)

    def at(self, partition: int, since_ms: int) -> int:
        """Return 0: a local log is read whole, and the day that it tells of may be another than today."""
        return 0

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield what the partition holds from an offset on."""
        return self.log.read(self._topic, from_offset, partition=partition)

    def follow(self, offsets: Mapping[int, int], timeout_s: float) -> list[Record]:
        """Return what partitions hold from these offsets on; it waits for nothing, since nobody else writes."""
        return [record for number, offset in offsets.items() for record in self.read(number, offset)]
