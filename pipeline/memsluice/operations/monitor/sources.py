"""Where a live view reads: the audit from where it stopped, the stages' lag, the partitions that are parked."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from memsluice.deployment.connection import Connection
from memsluice.envelope.partition_orders import PartitionState
from memsluice.operations.monitor.lag import KafkaLag, Lag, LocalLag
from memsluice.operations.monitor.pulse import Pulse
from memsluice.operations.partitions.desk import PartitionDesk
from memsluice.readers.base import TopicReader
from memsluice.readers.local import LocalTopic


class Follower:
    """Reads on where it stopped. ``since_ms`` (Unix ms) is where it begins on a broker; a local log is read whole."""

    def __init__(self, topic: TopicReader, pulse: Pulse, partitions: int, since_ms: int) -> None:
        self._topic = topic
        self._pulse = pulse
        self._next = [topic.at(partition, since_ms) for partition in range(partitions)]

    def goes_on(self, topic: TopicReader) -> None:
        """Read on from another connection to the same topic."""
        self._topic = topic

    def catch_up(self) -> None:
        """Take what was appended since. Raises BrokerUnavailable; what was taken until then stays taken."""
        for partition in range(len(self._next)):
            for record in self._topic.read(partition, self._next[partition]):
                self._pulse.take(record)
                self._next[partition] = record.offset + 1


def lags_of(topic: TopicReader, home: Path | None) -> Callable[[], list[Lag]]:
    """Return what tells the stages' lag, where a topic is read. Raises ConfigError."""
    return LocalLag(topic.log) if isinstance(topic, LocalTopic) else KafkaLag(Connection.load(home))


def parked_of(topic: TopicReader, home: Path | None, closing: ExitStack) -> Callable[[], Sequence[PartitionState]]:
    """Return what tells the parked partitions; an embedded log has no workers. Raises ConfigError."""
    if isinstance(topic, LocalTopic):
        return tuple
    desk = PartitionDesk.at(home)
    closing.callback(desk.close)
    return desk.parked_now
