"""A topic read from the broker by several threads: each partition over a consumer of its own, none behind another."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer

from memsluice.deployment.connection import Connection
from memsluice.errors import BrokerUnavailable
from memsluice.events.records import Record
from memsluice.readers.kafka import GROUP, KafkaTopic


class ApartTopic:
    """A :class:`~memsluice.readers.base.TopicReader` on a broker, for one thread a partition at a time.

    A partition gets its consumer when it is first asked about. The ends are asked over one more connection, which
    never fetches: the answer to a question about an end does not wait until a fetch comes back empty.
    """

    def __init__(self, connection: Connection, user: str, topic: str) -> None:
        self.name = f"the broker at {connection.bootstrap}"
        self._settings: dict[str, Any] = dict(connection.confluent(user))
        self._topic = topic
        self._lock = threading.Lock()
        self._closed = False
        self._partitions: dict[int, KafkaTopic] = {}
        group = {"group.id": GROUP.format(user=user), "enable.auto.commit": False, "log_level": 0}
        # Both bounds are asked at once, in two packets: the second must not wait until the first is acknowledged.
        prompt = {"isolation.level": "read_committed", "socket.nagle.disable": True}
        self._asking = Consumer({**self._settings, **group, **prompt})

    def close(self) -> None:
        """Leave the broker."""
        with self._lock:
            self._closed = True
            for reader in self._partitions.values():
                reader.close()
            self._partitions.clear()
        self._asking.close()

    def end(self, partition: int) -> int:
        """Return the offset that the next record will get. Raises BrokerUnavailable."""
        return self._of(partition).end(partition)

    def at(self, partition: int, since_ms: int) -> int:
        """Return the offset of the first record appended at or after a time (Unix ms). Raises BrokerUnavailable."""
        return self._of(partition).at(partition, since_ms)

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield the records from an offset to the end that the broker reports now. Raises BrokerUnavailable."""
        return self._of(partition).read(partition, from_offset)

    def follow(self, offsets: Mapping[int, int], timeout_s: float) -> list[Record]:
        """Return what one partition holds from its offset on, waiting at most so long. Raises BrokerUnavailable."""
        (partition,) = offsets
        return self._of(partition).follow(offsets, timeout_s)

    def _of(self, partition: int) -> KafkaTopic:
        with self._lock:
            if self._closed:
                raise BrokerUnavailable(f"{self._topic} cannot be read from {self.name}: this reader was closed")
            if partition not in self._partitions:
                self._partitions[partition] = KafkaTopic(
                    self._settings, topic=self._topic, name=self.name, asking=self._asking
                )
            return self._partitions[partition]
