"""A topic as somebody sees it who may see some tenants alone: the records of all others are not there."""

from collections.abc import Iterator, Mapping, Set

from memsluice.events.records import Record
from memsluice.readers.base import TopicReader


class TenantsTopic:
    """A :class:`~memsluice.readers.base.TopicReader` that gives records of these tenants; of everybody's (``*``) only
    where that is among them.

    Whatever reads through it needs no condition of its own, and can forget none.
    """

    def __init__(self, topic: TopicReader, tenants: Set[str]) -> None:
        self.name = topic.name
        self._topic = topic
        self._keys = frozenset(one.encode() for one in tenants)

    def end(self, partition: int) -> int:
        """Return the offset that the next record will get. Raises BrokerUnavailable."""
        return self._topic.end(partition)

    def at(self, partition: int, since_ms: int) -> int:
        """Return an offset before which nothing was appended at or after a time (Unix ms). Raises BrokerUnavailable."""
        return self._topic.at(partition, since_ms)

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield what it may give of a partition, from an offset to its present end. Raises BrokerUnavailable."""
        return (record for record in self._topic.read(partition, from_offset) if record.key in self._keys)

    def follow(self, offsets: Mapping[int, int], timeout_s: float) -> list[Record]:
        """Return what it may give of partitions from these offsets on. Raises BrokerUnavailable."""
        return [record for record in self._topic.follow(offsets, timeout_s) if record.key in self._keys]
