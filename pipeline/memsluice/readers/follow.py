"""memory.store.v1 read from the broker, for the freshness index."""

import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from memsluice.deployment.connection import Connection
from memsluice.errors import StoreUnavailable
from memsluice.recall.freshness import LogRecord
from memsluice.topics.names import STORE, USER_READER

GROUP = "memsluice-reader-freshness"
"""Named because the protocol wants one; partitions are assigned by hand and no offset is ever committed."""
READ_TIMEOUT_S = 30.0
"""For one read to the end. The first read of a process goes through the whole, compacted, partition."""
ASK_TIMEOUT_S = 5.0
POLL_TIMEOUT_S = 0.1


class KafkaStoreLog:
    """A :class:`~memsluice.recall.freshness.StoreLog` on a broker. One consumer; use it from one thread at a time."""

    def __init__(
        self,
        settings: Mapping[str, Any],
        *,
        topic: str = STORE,
        timeout_s: float = READ_TIMEOUT_S,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._topic = topic
        self._timeout_s = timeout_s
        self._monotonic = monotonic
        self._consumer = Consumer(
            {
                "log_level": 0,
                "error_cb": lambda _error: None,  # what goes wrong is raised where it matters
                **settings,
                "group.id": GROUP,
                "enable.auto.commit": False,
                "auto.offset.reset": "earliest",
                "enable.partition.eof": True,
            }
        )
        self._assigned: tuple[int, int] | None = None

    @classmethod
    def of(cls, connection: Connection, user: str = USER_READER) -> "KafkaStoreLog":
        """Return the log of a deployment, read as ``user``."""
        return cls(connection.confluent(user))

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()

    def read(self, partition: int, from_offset: int) -> Iterator[LogRecord]:
        """Yield the records from an offset to the end that the broker reports now. Raises StoreUnavailable."""
        deadline = self._monotonic() + self._timeout_s
        try:
            _low, end = self._consumer.get_watermark_offsets(
                TopicPartition(self._topic, partition), timeout=ASK_TIMEOUT_S
            )
            position = from_offset
            if position < end and self._assigned != (partition, position):
                self._consumer.assign([TopicPartition(self._topic, partition, position)])
            while position < end:
                message = self._consumer.poll(POLL_TIMEOUT_S)
                if message is None:
                    if self._monotonic() > deadline:
                        raise StoreUnavailable(f"{self._topic}[{partition}] could not be read to its end in time")
                    continue
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if error is not None:
                    position = max(position, message.offset())  # the end, where compaction removed the last records
                elif message.offset() >= position:
                    position = message.offset() + 1
                    self._assigned = None  # until the reader comes back: one that raises has not taken this record
                    yield LogRecord(message.offset(), message.key(), message.value())
                self._assigned = (partition, position)
        except KafkaException as error:
            self._assigned = None
            raise StoreUnavailable(f"{self._topic} cannot be read: {error.args[0].str()}") from None
