"""The thread in which aiokafka fetches for a stage, and where that departs from Faust's. Each departure has its test.

It gives a partition of all topics to one worker; fetches only committed records, each with the one before; gathers them
in a flood, and fetches nothing of what is held back; bounds what it asks; stops without the broker; says so where its
membership has ended.
"""

import asyncio
import contextlib
from collections.abc import Iterator
from typing import Any

from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.errors import (
    GroupAuthorizationFailedError,
    InvalidGroupIdError,
    InvalidSessionTimeoutError,
)
from faust.transport.drivers import aiokafka as driver

from memsluice.errors import BeginAnew, BrokerUnavailable, ConfigError
from memsluice.runtimes.kafka.spec import MIB

FETCH_GATHER_BYTES = MIB
"""A fetch that gathers is answered at once where so much is there."""
ANSWER_S = 30.0
"""How long the broker may take to say where a partition begins, or what was committed of it. The thread has two hands,
and one of them waits."""
FETCH_LOOK_S = 0.25
"""How long an idle fetch keeps to the partitions it was asked for; those that resume wait for its end."""


@contextlib.contextmanager
def _bounded(seconds: float) -> Iterator[None]:
    """Say that nobody has answered."""
    try:
        yield
    except TimeoutError:
        raise BrokerUnavailable(f"the broker did not answer within {seconds:g} s") from None


class StageConsumerThread(driver.AIOKafkaConsumerThread):  # type: ignore[misc]
    """The thread in which aiokafka fetches. What is said of ``fetched`` happens in that thread alone."""

    gathers = False
    """Whether fetches gather what arrives. Written by the event loop, read by this thread."""
    _ending = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fetched: dict[Any, int] = {}
        """Offset of the last record fetched of each partition."""
        self.room: dict[Any, int] = {}
        """How many more records are wanted of each partition that is read as fast as quotas allow. Replaced as a whole
        by the event loop, read by this thread."""

    def _create_worker_consumer(self, transport: Any) -> Any:
        consumer = super()._create_worker_consumer(transport)
        # Faust fixes 1.5 s; a partition that misses one long poll would wait that long for the next.
        consumer._fetch_max_wait_ms = int(self.app.runner.fetch_wait_s * 1000)
        consumer._isolation_level = "read_committed"
        # A partition is one lane with one fence, whatever topic its records come from. What Faust chooses where there
        # are no standbys, round robin over all topics' partitions, gives each of them to three of three workers.
        consumer._partition_assignment_strategy = [RangePartitionAssignor]
        return consumer

    async def on_start(self) -> None:
        """Start the client. What ends its membership ends the stage, which begins anew where that may help."""
        await super().on_start()
        self._consumer._coordinator.broken = self._broken

    def _broken(self, error: BaseException) -> None:
        spec = self.app.runner.spec
        if isinstance(error, GroupAuthorizationFailedError):
            error = ConfigError(
                f"user {spec.user} may not join the group {spec.app_id}: `memsluice topics apply` grants it"
            )
        elif not isinstance(error, InvalidGroupIdError | InvalidSessionTimeoutError):
            error = BeginAnew(f"the stage is no member of its group {spec.app_id} any more: {error}")
        self.parent_loop.call_soon_threadsafe(self.app.runner.fail, error)

    def _pace(self, fetcher: Any) -> None:
        """Have the broker answer the next fetches at the first record, or gather what comes within a moment."""
        runner = self.app.runner
        wait_s, least = (runner.tuning.fetch_gather_s, FETCH_GATHER_BYTES) if self.gathers else (runner.fetch_wait_s, 1)
        fetcher._fetch_max_wait_ms, fetcher._fetch_min_bytes = int(wait_s * 1000), least

    def _pause(self, wanted: dict[Any, int]) -> None:
        """Have the client fetch nothing of partitions of which no more is wanted. It would keep what comes of them, and
        ask that broker for no partition's records for a tenth of a second each time."""
        consumer = self._ensure_consumer()
        for tp in consumer.assignment() & wanted.keys():
            (consumer.resume if wanted[tp] > 0 else consumer.pause)(tp)

    async def _fetch_records(self, *arguments: Any, **options: Any) -> Any:
        room = self.room
        self._pause(room)
        self._pace(self._ensure_consumer()._fetcher)
        found = await super()._fetch_records(*arguments, **options)
        self._pause({tp: room[tp] - len(records) for tp, records in found.items() if tp in room})
        for tp, records in found.items():
            for record in records:
                record.before = self.fetched.get(tp)
                record.turn = self.app.runner.turns.get(tp.partition, 0)
                self.fetched[tp] = record.offset
        return found

    async def call_thread(self, fun: Any, *args: Any, **kwargs: Any) -> Any:
        """Call something in the thread. Raises CancelledError where the thread is ending: nobody would call it."""
        if self._ending:
            raise asyncio.CancelledError
        return await super().call_thread(fun, *args, **kwargs)

    async def committed(self, tp: Any) -> int | None:
        """Return what the group has committed. Raises BrokerUnavailable where nobody answers: aiokafka asks on."""
        with _bounded(ANSWER_S):
            async with asyncio.timeout(ANSWER_S):
                found = await self._ensure_consumer().committed(tp)
        return None if found is None else int(found)

    async def log_start(self, tp: Any, within_s: float) -> int:
        """Return the offset of a log's first record. Raises BrokerUnavailable where nobody answers."""
        with _bounded(within_s):
            async with asyncio.timeout(within_s):
                found = await self._ensure_consumer().beginning_offsets([tp])
        return int(found[tp])

    async def go_back(self, offsets: Any) -> None:
        """Fetch from these offsets on: what was fetched before comes before no record any more."""
        for tp in offsets:
            self.fetched.pop(tp, None)
        await self._seek_wait(self._ensure_consumer(), offsets)

    async def place(self, tp: Any) -> tuple[int | None, int | None]:
        """Return the next offset that would be fetched, and the last record's that was. Nothing is awaited between."""
        assignment = self._ensure_consumer()._subscription.subscription.assignment
        if assignment is None or tp not in assignment.tps:
            return None, None
        state = assignment.state_value(tp)
        return (state.position if state.has_valid_position else None), self.fetched.get(tp)

    async def on_thread_stop(self) -> None:
        """Stop the client, also while the broker is away.

        aiokafka cancels a fetch that waits to be tried again and lets that cancellation end its own stop. The thread
        would die of it, and the worker wait for the thread until its bound. What is queued for the thread is called by
        nobody any more: one after the other each would wait for the broker.
        """
        self._ending = True
        self._drop_calls()
        try:
            await super().on_thread_stop()
        except asyncio.CancelledError:
            await self._consumer._client.close()
        finally:
            self._drop_calls()  # one that was on its way as this began

    def _drop_calls(self) -> None:
        while self._method_queue is not None and not self._method_queue._queue.empty():
            promise = self._method_queue._queue.get_nowait().promise
            promise.get_loop().call_soon_threadsafe(promise.cancel)

    async def getmany(self, active_partitions: set[Any] | None, timeout: float) -> Any:
        """Fetch from the partitions that are active now.

        Faust hands its live set to the thread. When recovery pauses the changelog the set runs empty under a fetch
        that is waiting, aiokafka takes an empty set for "all", and the consumer drops what it did not ask for.
        """
        active = None if active_partitions is None else set(active_partitions)
        return await super().getmany(active, min(timeout, FETCH_LOOK_S))
