"""Records of a transaction, packed into batches of their topics as they are sent.

aiokafka's own ``send`` makes a task's worth of bookkeeping for each record: a wait for metadata, a future, a callback.
Nobody asks for a single record of a transaction before it is committed: so here a record costs its place in a batch,
and what is waited for is batches.
"""

import asyncio
from collections.abc import Callable
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from memsluice.errors import StateError
from memsluice.events.records import Headers

Waited = list[tuple[str, "asyncio.Future[Any]"]]


class Sent:
    """One record's place: it is known once its batch was acknowledged."""

    __slots__ = ("_at", "_batch")

    def __init__(self, batch: "_Batch", at: int) -> None:
        self._batch, self._at = batch, at

    @property
    def offset(self) -> int:
        """The record's offset; negative where the broker knew the batch and no longer where it lies."""
        assert self._batch.future is not None
        base: int = self._batch.future.result().offset
        return base if base < 0 else base + self._at


class _Batch:
    __slots__ = ("builder", "future")

    def __init__(self, builder: Any) -> None:
        self.builder = builder
        self.future: asyncio.Future[Any] | None = None


class Packing:
    """The batches of one transaction. Used by one task."""

    def __init__(self, producer: Any, seen: Callable[["asyncio.Future[Any]"], None]) -> None:
        self._producer, self._seen = producer, seen
        self._open: dict[TopicPartition, _Batch] = {}
        self.waited: Waited = []
        """Each batch that was given to the producer: its topic, and the future of its place."""
        self.sending = ""
        """The topic of a record whose size is being looked at: it is too large to be sent where that fails."""

    async def send(
        self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> Sent:
        """Put a record into its batch; give that to the producer where it is full. Raises KafkaError."""
        where = TopicPartition(topic, partition)
        listed = list(headers)
        self.sending = topic
        self._producer._serialize(key, value, listed)
        self.sending = ""
        batch = self._open.get(where)
        if batch is None or not _taken(batch, key, value, listed):
            if batch is not None:
                await self._give(where)
            batch = self._open[where] = _Batch(self._producer.create_batch())
            if not _taken(batch, key, value, listed):  # a record by itself is taken, whatever its size
                raise StateError(f"an empty batch for {topic} refused a record")
        return Sent(batch, batch.builder.record_count() - 1)

    async def flush(self) -> None:
        """Give all that is open to the producer, and wait until it was acknowledged. Raises the first error."""
        for where in list(self._open):
            await self._give(where)
        done = await asyncio.gather(*(future for _, future in self.waited), return_exceptions=True)
        for result in done:
            if isinstance(result, BaseException):
                raise result

    async def _give(self, where: TopicPartition) -> None:
        batch = self._open.pop(where)
        try:
            batch.future = await self._producer.send_batch(batch.builder, where.topic, partition=where.partition)
        except AssertionError as error:  # aiokafka's, where the transaction was ended while this batch waited
            raise KafkaError(f"the transaction ended before a batch for {where.topic} was sent") from error
        batch.future.add_done_callback(self._seen)  # where one before it fails, nobody asks for this one
        self.waited.append((where.topic, batch.future))


def _taken(batch: _Batch, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes | None]]) -> bool:
    return batch.builder.append(timestamp=None, key=key, value=value, headers=headers) is not None
