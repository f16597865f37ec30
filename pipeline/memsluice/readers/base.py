"""What reads a topic: on the broker, or in a home's local log."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from memsluice.events.records import Record


class ReadToItsEnd(Protocol):
    """One topic, each partition of which is read to its present end, again and again. Offsets are Kafka's."""

    def end(self, partition: int) -> int:
        """Return the offset that the next record will get. Raises BrokerUnavailable."""

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield what the partition holds from an offset to its present end. Raises BrokerUnavailable."""


class TopicReader(ReadToItsEnd, Protocol):
    """One topic, read partition by partition; one reader is used from one thread at a time."""

    name: str
    """The place, in words."""

    def at(self, partition: int, since_ms: int) -> int:
        """Return an offset before which nothing was appended at or after a time (Unix ms). Raises BrokerUnavailable."""

    def follow(self, offsets: Mapping[int, int], timeout_s: float) -> list[Record]:
        """Return what partitions hold from these offsets on, waiting at most so long. Raises BrokerUnavailable."""
