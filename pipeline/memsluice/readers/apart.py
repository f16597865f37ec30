"""A topic read from the broker by several threads: each partition over a consumer of its own, none behind another."""

import threading
from collections.abc import Iterator

from memsluice.deployment.connection import Connection
from memsluice.errors import BrokerUnavailable
from memsluice.events.records import Record
from memsluice.readers.kafka import KafkaTopic


class ApartTopic:
    """A :class:`~memsluice.readers.base.ReadToItsEnd` on a broker, for one thread a partition at a time.

    A partition gets its consumer when it is first asked about. The ends are asked over one more connection, which
    never fetches: the answer to a question about an end does not wait until a fetch comes back empty.
    """

    def __init__(self, connection: Connection, user: str, topic: str) -> None:
        self._connection = connection
        self._user = user
        self._topic = topic
        self._lock = threading.Lock()
        self._closed = False
        self._partitions: dict[int, KafkaTopic] = {}
        self._asking = KafkaTopic.of(connection, user, topic)

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

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield the records from an offset to the end that the broker reports now. Raises BrokerUnavailable."""
        return self._of(partition).read(partition, from_offset)

    def _of(self, partition: int) -> KafkaTopic:
        with self._lock:
            if self._closed:
                raise BrokerUnavailable(
                    f"{self._topic} cannot be read from {self._asking.name}: this reader was closed"
                )
            if partition not in self._partitions:
                self._partitions[partition] = KafkaTopic.of(
                    self._connection, self._user, self._topic, asking=self._asking
                )
            return self._partitions[partition]
