"""Publishes records as they are, with key, value and headers given: what was signed elsewhere and lies in the log."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self

from confluent_kafka import KafkaException

from memsluice.client.options import WriterOptions
from memsluice.client.partitioner import check_samples
from memsluice.client.publisher import open_producer
from memsluice.errors import NotDelivered
from memsluice.events.records import Output

WAIT_EXTRA_S = 1.0


class RawPublisher:
    """One connection; use it from one thread. Nothing is signed, changed or routed here: the partition is the
    caller's. Raises ConfigError for settings that librdkafka refuses."""

    def __init__(self, settings: Mapping[str, Any], options: WriterOptions | None = None) -> None:
        self._options = options or WriterOptions()
        check_samples(self._options.partitions)
        self._producer = open_producer(settings, self._options)

    def publish(self, records: Sequence[Output]) -> list[int]:
        """Publish records in order and return their offsets once the broker has all. Raises NotDelivered."""
        offsets: dict[int, int] = {}
        problems: list[str] = []

        def delivered(number: int, error: Any, message: Any) -> None:
            if error is not None:
                problems.append(error.name())
            else:
                offsets[number] = message.offset()

        for number, one in enumerate(records):
            try:
                self._producer.produce(
                    one.topic, key=one.key, value=one.value, headers=list(one.headers), partition=one.partition,
                    on_delivery=partial(delivered, number),
                )  # fmt: skip
            except (BufferError, KafkaException) as error:
                self._producer.flush(self._options.delivery_seconds + WAIT_EXTRA_S)
                raise NotDelivered(f"a record cannot be queued: {type(error).__name__}", maybe_written=True) from None
        self._producer.flush(self._options.delivery_seconds + WAIT_EXTRA_S)
        if len(offsets) < len(records):
            why = problems[0] if problems else "no acknowledgement in time"
            raise NotDelivered(f"{len(records) - len(offsets)} records: {why}", maybe_written=True)
        return [offsets[number] for number in range(len(records))]

    def close(self) -> None:
        """Wait for what is under way."""
        self._producer.flush(WAIT_EXTRA_S)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
