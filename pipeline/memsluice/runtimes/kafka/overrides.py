"""Everything in which the runtime departs from Faust 0.15, by subclassing, in one place. Each has its test.

* :class:`GuardedFlow`: recovery drops queued records (silent failure A).
* :class:`StageConsumerThread`: stops while the broker is away.
* :class:`StageConsumer`: only the acker acknowledges (B); a revocation or stop waits for work in hand, within a bound.
  Records fetched and dropped during a recovery are fetched again, also by a group that never committed, and none that
  was fetched before that is taken after it.
* :class:`OrderedProducer`: idempotent, and sends nothing after its first failure (C).
* :class:`StageTables`: no second of sleep for tables that might still be declared.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import Any, Protocol

import faust
from aiokafka.structs import TopicPartition
from faust.tables.manager import TableManager
from faust.transport.drivers import aiokafka as driver
from mode.utils.queues import FlowControlEvent

from memsluice.events.records import Headers

OUT_OF_BAND_TIMEOUT_S = 60.0
FETCH_LOOK_S = 0.25
"""How long an idle fetch keeps to the partitions it was asked for; those that resume wait for its end."""


class Runner(Protocol):
    """What the overrides need of the stage's runner."""

    fetch_wait_s: float

    async def drain(self) -> None:
        """Take no more records and wait, within a bound, for those in work."""

    def begin(self, partitions: set[int]) -> None:
        """Start anew with an assignment."""

    def revoked(self, partitions: set[int]) -> None:
        """Drop what was kept of these partitions."""

    def fail(self, error: BaseException) -> None:
        """End the worker; release nothing any more."""


class GuardedFlow(FlowControlEvent):  # type: ignore[misc]
    """Flow control whose ``resume`` clears the queues only if the flow was suspended.

    Faust resumes an already running flow when table recovery completes. The queues then hold records that were
    fetched a moment ago, and its ``resume`` clears them: hundreds of events are skipped by a worker that looks healthy.
    """

    def resume(self) -> None:
        """Let records through again."""
        if not self.is_active():
            super().resume()


class StageConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """The thread in which aiokafka fetches."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Faust fixes 1.5 s; a partition that misses one long poll would wait that long for the next.
        consumer._fetch_max_wait_ms = int(self.app.runner.fetch_wait_s * 1000)
        return consumer

    async def on_thread_stop(self) -> None:
        """Stop the client, also while the broker is away.

        aiokafka cancels a fetch that waits to be tried again and lets that cancellation end its own stop. The thread
        would die of it, and the worker wait for the thread until its bound.
        """
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            await self._consumer._client.close()

    async def getmany(self, active_partitions: set[Any] | None, timeout: float) -> Any:
        """Fetch from the partitions that are active now.

        Faust hands its live set to the thread. When recovery pauses the changelog the set runs empty under a fetch
        that is waiting, aiokafka takes an empty set for "all", and the consumer drops what it did not ask for.
        """
        active = None if active_partitions is None else set(active_partitions)
        return await super().getmany(active, min(timeout, FETCH_LOOK_S))


class StageConsumer(driver.Consumer):  # type: ignore[misc]
    """Consumer that commits what the acker released and nothing else."""

    _releasing = False
    _seeks = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._at_the_log = asyncio.Lock()
        """Held by a fetch, and by a seek: no fetch waits while positions change under it."""

    def _new_consumer_thread(self) -> StageConsumerThread:
        return StageConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def release(self, message: Any) -> None:
        """Acknowledge ``message``: its offset may be committed. For the acker alone."""
        self._releasing = True
        try:
            message.ack(self)
        finally:
            self._releasing = False

    def untrack(self, message: Any) -> None:
        """Give ``message`` up un-acknowledged: it is read again, by whoever owns its partition then."""
        self._unacked_messages.discard(message)

    def ack(self, message: Any) -> bool:
        """Acknowledge, if the acker says so. Faust itself acknowledges messages that a stream skips."""
        if self._releasing:
            return bool(super().ack(message))
        self.untrack(message)
        return False

    async def base_offset(self, tp: Any) -> tuple[int, bool]:
        """Return the first offset due on ``tp`` and whether it is the group's commit (else the log's start)."""
        consumer = self._thread._ensure_consumer()
        partition = TopicPartition(tp.topic, tp.partition)
        committed = await self._thread.call_thread(consumer.committed, partition)
        if committed is not None:
            return int(committed), True
        starts = await self._thread.call_thread(consumer.beginning_offsets, [partition])
        return int(starts[partition]), False

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[Any, Any]]:
        """Yield what is fetched until a seek begins: what a batch has left is fetched again from where that leads.

        When recovery ends, Faust resumes the partitions first and seeks then. A fetch in between goes on behind what
        the recovery dropped, and a record of it would come before those that are due.
        """
        seeks = self._seeks
        async with aclosing(super().getmany(timeout)) as fetched:
            async for tp, message in fetched:
                if seeks != self._seeks:
                    break
                yield tp, message

    async def _getmany(self, active_partitions: set[Any] | None, timeout: float) -> Any:
        async with self._at_the_log:
            return await super()._getmany(active_partitions, timeout)

    async def perform_seek(self) -> None:
        """Go back to the commit, and where there is none to the log's start, which Faust leaves out."""
        self._seeks += 1
        async with self._at_the_log:
            await super().perform_seek()
            starts = {}
            for tp in self.assignment():
                if not self._is_changelog_tp(tp) and not self._committed_offset.get(tp):
                    starts[tp], _ = await self.base_offset(tp)
            if starts:
                await self._thread.seek_wait(starts)

    async def wait_empty(self) -> None:
        """Wait for records in work, within the runner's bound, and commit. (Faust's own waits without one.)"""
        await self.app.runner.drain()
        self._unacked_messages.clear()
        await self.commit_and_end_transactions()

    async def on_partitions_revoked(self, revoked: set[Any]) -> None:
        """Drain and commit while the offsets are still known; Faust forgets them first and commits after."""
        await self.app.runner.drain()
        await self.commit()
        await super().on_partitions_revoked(revoked)
        self.app.runner.revoked({tp.partition for tp in revoked})

    async def on_partitions_assigned(self, assigned: set[Any], generation_id: int = 0) -> None:
        """Start a new generation before the first record of it can arrive."""
        self.app.runner.begin({tp.partition for tp in assigned})
        await super().on_partitions_assigned(assigned, generation_id)

    def verify_event_path(self, now: float, tp: Any) -> None:
        """Do nothing: liveness is committed-offset progress (progress.py), and a sink's outage is no defect here."""


class OrderedProducer(driver.Producer):  # type: ignore[misc]
    """Producer under which a partition's records are a prefix of what was sent, in order, whatever fails.

    aiokafka keeps one request a partition in flight and re-queues at the front, so retries do not reorder; but after a
    batch has failed for good it goes on with the next one, and without a producer id a retry may write a batch twice.
    So: idempotent, and the first failure empties the accumulator before the sender's task can run again.
    """

    _poisoned = False

    def _settings_extra(self) -> dict[str, Any]:
        return {"acks": "all", "enable_idempotence": True}

    async def append(
        self, topic: str, partition: int, key: bytes | None, value: bytes | None, headers: Headers = ()
    ) -> "asyncio.Future[Any]":
        """Queue one record and return the future of its broker metadata. Raises KafkaError (too large, stopped)."""
        producer = self._ensure_producer()
        if key is None and value is None:  # Kafka takes such a record, aiokafka's send() does not
            await producer.client._wait_on_metadata(topic)
            future = await producer._message_accumulator.add_message(
                TopicPartition(topic, partition), None, None, OUT_OF_BAND_TIMEOUT_S, headers=list(headers)
            )
        else:
            future = await producer.send(topic, value=value, key=key, partition=partition, headers=list(headers))
        future.add_done_callback(self._check)
        return future  # type: ignore[no-any-return]

    def _check(self, future: "asyncio.Future[Any]") -> None:
        if not future.cancelled() and (error := future.exception()) is not None:
            self.poison(error)

    def poison(self, error: BaseException) -> None:
        """Drop everything that was not sent yet and send nothing more. Runs before the sender can go on."""
        if self._poisoned:
            return
        self._poisoned = True
        accumulator = self._ensure_producer()._message_accumulator
        accumulator.fail_all(error)
        accumulator._batches.clear()
        self.app.runner.fail(error)


class StageTransport(driver.Transport):  # type: ignore[misc]
    """aiokafka transport with the consumer and the producer above."""

    Consumer = StageConsumer
    Producer = OrderedProducer


class StageTables(TableManager):  # type: ignore[misc]
    """Table manager of an app whose one table is declared before it starts."""

    async def on_start(self) -> None:
        """Begin recovery at once."""
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()


class StageApp(faust.App):  # type: ignore[misc]
    """A Faust app with a runner attached; see :func:`memsluice.runtimes.kafka.apps.build_app`."""

    runner: Any
    """The stage's :class:`~memsluice.runtimes.kafka.runner.StageRunner`."""

    @cached_property
    def flow_control(self) -> GuardedFlow:
        """Flow control of the streams."""
        return GuardedFlow(loop=self.loop)

    def _new_transport(self) -> StageTransport:
        return StageTransport(self.conf.broker_consumer, self)

    def _new_producer_transport(self) -> StageTransport:
        return StageTransport(self.conf.broker_producer, self)

    async def on_start(self) -> None:
        """Start the runner's tasks with the app."""
        await super().on_start()
        self.runner.start()

    async def on_shutdown(self) -> None:
        """End them after the consumer and the producer have stopped."""
        await super().on_shutdown()
        await self.runner.stop()


def topics_of(app: Any, names: Sequence[str]) -> Any:
    """Return a raw topic channel over ``names``: bytes in, bytes out, nothing decoded, nothing declared."""
    schema = faust.Schema(key_type=bytes, value_type=bytes, key_serializer="raw", value_serializer="raw")
    return app.topic(*names, schema=schema, internal=False)
