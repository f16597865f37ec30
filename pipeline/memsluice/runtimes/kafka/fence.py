"""The fence: a transactional producer a partition, by which the broker itself refuses what a former owner still sends.

Whoever is assigned a partition opens its fence before it reads anything: ``InitProducerId`` under the partition's
transactional id ends what the former owner had open and raises the epoch (KIP-98). From then on the broker refuses
every record, offset and commit of the former one, whenever it wakes. State rows, outputs and the offset of what they
came from are one transaction: they are written together or not at all, for every reader of committed records.

An epoch in the records instead would not do: on a compacted topic a late record takes the good one's place before any
reader could reject it.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Any, Final

from aiokafka import AIOKafkaProducer
from aiokafka.errors import (
    InvalidProducerEpoch,
    InvalidProducerIdMapping,
    InvalidTxnState,
    KafkaError,
    MessageSizeTooLargeError,
    ProducerFenced,
    RecordListTooLargeError,
    UnknownProducerId,
)
from aiokafka.producer import message_accumulator
from aiokafka.producer.sender import Sender
from aiokafka.structs import TopicPartition

from memsluice.deployment.connection import Connection
from memsluice.errors import Fenced, MemsluiceError, NotCommitted, OutputTooLarge
from memsluice.runtimes.kafka.packing import Packing, Waited
from memsluice.runtimes.kafka.spec import StageSpec

LOST: Final = (ProducerFenced, InvalidProducerEpoch, InvalidProducerIdMapping, InvalidTxnState, UnknownProducerId)
"""How the broker says that this producer is not the partition's any more."""
TOO_LARGE: Final = (MessageSizeTooLargeError, RecordListTooLargeError)
"""How the client or the broker says that a record is too large, today and whenever it is sent again."""
RETRY_MS: Final = 20
"""Pause before a request is repeated because the transaction before it is still being ended."""
BATCH_BYTES: Final = 256 * 1024
"""Largest batch of records; every topic here takes one."""
REQUEST_TIMEOUT_MS: Final = 60_000
CLOSE_S: Final = 2.0
"""How long a close waits for the broker to end what is open; it ends it by itself after the transaction's timeout."""


def transactional_id(app_id: str, partition: int) -> str:
    """Return the id under which the owners of a stage's partition follow one another."""
    return f"{app_id}-{partition}"


class EagerSender(Sender):  # type: ignore[misc]
    """Adds the group to a transaction together with its first partitions; aiokafka's waits for an answer in between.

    Both requests go to the transaction's coordinator on one connection, which takes them one after the other.
    """

    group: str

    def _maybe_do_transactional_request(self) -> "asyncio.Task[Any] | None":
        """Return the next request under way, or None. aiokafka asks for it once the one before has ended."""
        partitions = self._txn_manager.partitions_to_add()
        if partitions and not self._txn_manager.txn_partitions and self._txn_manager.is_in_transaction():
            return asyncio.get_running_loop().create_task(self._add(partitions))
        return super()._maybe_do_transactional_request()  # type: ignore[no-any-return]

    async def _add(self, partitions: set[TopicPartition]) -> None:
        """Add both, and wait for both: nothing of them goes on behind a failure, and the first one is told."""
        both = (self._do_add_partitions_to_txn(partitions), self._do_add_offsets_to_txn(self.group))
        answers: tuple[Any, ...] = await asyncio.gather(*both, return_exceptions=True)
        if isinstance(answers[0], BaseException):
            raise answers[0]
        if isinstance(answers[1], BaseException) and self._txn_manager.is_in_transaction():
            raise answers[1]


class ToldBatch(message_accumulator.MessageBatch):  # type: ignore[misc]
    """A batch whose failure is told to those who wait for its records: nobody asks for its own, or its place."""

    def failure(self, exception: BaseException) -> None:
        """Fail, and have the event loop complain of no error that nobody looked at."""
        super().failure(exception)
        _seen(self.future)
        _seen(self._drain_waiter)


def install() -> None:
    """Let every aiokafka producer of this process make such batches. Doing it again changes nothing."""
    message_accumulator.MessageBatch = ToldBatch


class TransactionalProducer(AIOKafkaProducer):  # type: ignore[misc]
    """aiokafka's producer with the sender above."""

    def __init__(self, *, group: str, **settings: Any) -> None:
        super().__init__(**settings)
        self._sender: EagerSender = EagerSender(
            self.client,
            acks=-1,
            txn_manager=self._txn_manager,
            message_accumulator=self._message_accumulator,
            retry_backoff_ms=settings["retry_backoff_ms"],
            request_timeout_ms=settings["request_timeout_ms"],
        )
        self._sender.group = group


class Fence:
    """One stage's partition. Used by one task at a time; after a failure it can only be closed."""

    def __init__(self, spec: StageSpec, connection: Connection, partition: int) -> None:
        self.partition = partition
        self._stage, self._group = spec.name, spec.app_id
        self._settings: dict[str, Any] = {
            **connection.aiokafka(spec.user),
            "client_id": transactional_id(spec.app_id, partition),
            "transactional_id": transactional_id(spec.app_id, partition),
            "transaction_timeout_ms": int(spec.tuning.transaction_timeout_s * 1000),
            "max_request_size": spec.tuning.max_request_bytes,
            "max_batch_size": BATCH_BYTES,
            "request_timeout_ms": REQUEST_TIMEOUT_MS,
            "retry_backoff_ms": RETRY_MS,
            "linger_ms": 0,  # a transaction's records are there at once
        }
        self._producer: Any = None

    async def open(self) -> None:
        """Shut a former owner out. Waits for a broker that does not answer. Raises NotCommitted, KafkaError."""
        self._producer = TransactionalProducer(group=self._group, **self._settings)
        try:
            await self._producer.start()
        except KafkaError as error:
            raise self._named(error) from error

    async def transact(self, work: Callable[[Packing], Awaitable[None]], offsets: dict[TopicPartition, int]) -> None:
        """Run ``work``, which sends records, and commit them with these offsets of the stage's group.

        Raises Fenced where the broker refuses this owner, NotCommitted where it went away, KafkaError for any other
        failure. Whether the broker committed is known to whoever begins anew.
        """
        producer = self._producer
        packing = Packing(producer, _seen)
        try:
            await producer.begin_transaction()
            await work(packing)
            await packing.flush()
            # Not beside the records: the broker asks the coordinator about both, and drops a question that waits when
            # the next one of the same transaction comes (KIP-890). The client would repeat it, after a pause.
            await producer.send_offsets_to_transaction(offsets, self._group)
            await producer.commit_transaction()
        except KafkaError as error:
            if isinstance(error, TOO_LARGE) and packing.sending:
                raise OutputTooLarge(
                    f"a record for {packing.sending} is larger than a worker sends at all "
                    f"({self._settings['max_request_size']} bytes): that is a defect, please report it"
                ) from error
            raise self._named(error, _refused(packing.waited)) from error

    def _named(self, error: KafkaError, topic: str = "") -> MemsluiceError | KafkaError:
        """Return what an error (of a record for that topic) means to the stage; itself where beginning anew would not
        help."""
        place = f"partition {self.partition} of {self._stage} ({type(error).__name__})"
        if isinstance(error, TOO_LARGE):
            return OutputTooLarge(
                f"a record for {topic} that {place} led to is larger than the topic takes: raise its max.message.bytes"
            )
        if isinstance(error, LOST):
            return Fenced(
                f"the broker refuses what this worker sends for {place}: another worker has taken it over, "
                "or this one was away too long"
            )
        if error.retriable or type(error) is KafkaError:  # the latter: what ended aiokafka's sender, which tries again
            return NotCommitted(f"the broker broke off what this worker sent for {place}: {error}")
        return error

    async def close(self) -> None:
        """Give the partition up; an open transaction is ended where the broker answers in time."""
        producer, self._producer = self._producer, None
        if producer is None:
            return
        ended = producer._txn_manager.wait_for_transaction_end()
        if ended is not None:  # after a failure nobody asks for it
            ended.add_done_callback(_seen)
        # aiokafka flushes what is queued before it stops: nothing of an open transaction may go out any more.
        producer._message_accumulator.fail_all(KafkaError("the partition was given up"))
        producer._message_accumulator._batches.clear()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLOSE_S):
                if producer._txn_manager.is_in_transaction():
                    await producer.abort_transaction()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(CLOSE_S):
                await producer.stop()


def _seen(future: "asyncio.Future[Any]") -> None:
    if not future.cancelled():
        future.exception()


def _refused(waited: Waited) -> str:
    """Return the topic of the first batch that was too large; empty where none was."""
    for topic, future in waited:
        if future.done() and not future.cancelled() and isinstance(future.exception(), TOO_LARGE):
            return topic
    return ""
