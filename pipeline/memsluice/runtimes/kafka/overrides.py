"""In what the runtime departs from Faust 0.15, by subclassing, each with its test. The thread that fetches has a file
of its own, ``consumer_thread.py``.

Where it departs from aiokafka below it: ``coordinator.py`` (its membership of a group) and ``header_names.py``.

* :class:`GuardedFlow`: recovery drops queued records (silent failure A).
* :class:`StageConsumer`: acknowledges and commits nothing (B), the lanes do; a revocation or stop waits for work in
  hand, within a bound.
  Records fetched and dropped during a recovery are fetched again, also by a group that never committed, and none that
  was fetched before that is taken after it. A recovery that a rebalance overtakes lets nothing through.
* :class:`StageBoot`: no producer of Faust's, which goes on after a send has failed (C); the lanes have their own.
* :class:`StageTables`: no second of sleep for tables that might be declared. There are none: rows are the runtime's own
  (``state.py``), because Faust can neither restore from a log with transactions nor fence a former owner.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from functools import cached_property
from typing import Any

import faust
from aiokafka.errors import IllegalStateError
from aiokafka.structs import TopicPartition
from faust.app import BootStrategy
from faust.tables.manager import TableManager
from faust.transport.drivers import aiokafka as driver
from mode.utils.queues import FlowControlEvent

from memsluice.errors import BrokerUnavailable
from memsluice.runtimes.kafka.consumer_thread import ANSWER_S, FETCH_LOOK_S, StageConsumerThread
from memsluice.runtimes.kafka.gaps import MARKERS_MAX
from memsluice.runtimes.kafka.spec import MIB

IN_WORK_BYTES_MAX = 64 * MIB
"""Nothing more is fetched while so much is in work, however few records that are."""
IDLE_ANSWER_S = 2.0
"""How long the broker may take to answer, where it is asked only to commit a place behind markers: it is asked anew."""


class GuardedFlow(FlowControlEvent):  # type: ignore[misc]
    """Flow control whose ``resume`` clears the queues only if the flow was suspended.

    Faust resumes an already running flow when table recovery completes. The queues then hold records that were
    fetched a moment ago, and its ``resume`` clears them: hundreds of events are skipped by a worker that looks healthy.
    """

    def resume(self) -> None:
        """Let records through again."""
        if not self.is_active():
            super().resume()


class StageConsumer(driver.Consumer):  # type: ignore[misc]
    """Consumer that counts as committed what the lanes committed and nothing else."""

    _seeks = _fetched_at = 0
    """How many seeks began, and how many had when the last fetch did."""
    _assignments = _sought = 0
    """How often partitions were revoked or assigned, and at how many of those the last whole seek began."""
    _handing: Any = None
    """Topic and partition of the message that Faust is queueing now."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._at_the_log = asyncio.Lock()
        """Held by a fetch, and by a seek: no fetch waits while positions change under it."""

    def _new_consumer_thread(self) -> StageConsumerThread:
        return StageConsumerThread(self, loop=self.loop, beacon=self.beacon)

    def untrack(self, message: Any) -> None:
        """Know nothing more of ``message``: it was committed, or is read again by whoever owns its partition then."""
        self._unacked_messages.discard(message)

    def untrack_partition(self, partition: int) -> None:
        """Give up every message of a partition that is parked."""
        self._unacked_messages -= {message for message in self._unacked_messages if message.partition == partition}

    async def reopen(self, partitions: Sequence[Any]) -> None:
        """Fetch parked partitions from their commit on, with nothing left of what was fetched before.

        To be called while the runner still names them as parked; does nothing where an assignment comes before it is
        done. Raises what aiokafka does of partitions that are another's by now, and BrokerUnavailable.
        """
        runner, generation = self.app.runner, self.app.runner.generation
        while self._handing in partitions:  # Faust notes its offset as read once it is queued
            await asyncio.sleep(0.01)
        bases = {tp: await self.base_offset(tp) for tp in partitions}  # of what is parked nobody commits any
        async with self._at_the_log:
            if runner.generation != generation or not {tp.partition for tp in partitions} <= runner.parked.keys():
                return  # assigned anew since: whoever has them seeks for itself, to what is committed by then
            for tp, (base, committed) in bases.items():
                self._committed_offset[tp] = base if committed else None
            for partition in {tp.partition for tp in partitions}:
                runner.turns[partition] = runner.turns.get(partition, 0) + 1
            await self._thread.call_thread(self._thread.go_back, {tp: base for tp, (base, _) in bases.items()})

    def ack(self, message: Any) -> bool:
        """Acknowledge nothing: Faust does so for messages that a stream skips, and the lanes commit."""
        self.untrack(message)
        return False

    async def base_offset(self, tp: Any) -> tuple[int, bool]:
        """Return the first offset due on ``tp`` and whether it is the group's commit (else the log's start)."""
        committed = await self._thread.call_thread(self._thread.committed, TopicPartition(tp.topic, tp.partition))
        return (await self.log_start(tp), False) if committed is None else (committed, True)

    async def log_start(self, tp: Any, within_s: float = ANSWER_S) -> int:
        """Return the offset of the first record that the log still has. Raises BrokerUnavailable."""
        place = TopicPartition(tp.topic, tp.partition)
        start: int = await self._thread.call_thread(self._thread.log_start, place, within_s)
        return start

    async def place_if_idle(self, tp: Any) -> int | None:
        """Return the place behind what was fetched, all of which is committed, and markers; None: nothing is due."""
        known = faust.types.TP(tp.topic, tp.partition)
        try:
            committed, end = self._committed_offset.get(known), self.highwater(known)
        except (AssertionError, AttributeError):  # aiokafka's way to say that it is another's since a moment
            return None
        if end is None or (committed or 0) >= end:
            return None
        place, last = await self._thread.call_thread(self._thread.place, tp)
        if place is None or place <= (committed or 0) or (last is not None and last >= (committed or 0)):
            return None
        try:
            start = 0 if committed is None else await self.log_start(tp, IDLE_ANSWER_S)
        except BrokerUnavailable:
            return None
        lost = committed is not None and start > committed + MARKERS_MAX  # the next record tells
        return None if lost or committed != self._committed_offset.get(known) else place

    def known_behind(self, message: Any) -> int:
        """Return how many offsets of a message's partition, markers among them, the log was seen to have behind it."""
        try:
            end = self.highwater(message.tp)
        except (AssertionError, AttributeError):  # as above
            return 0
        return 0 if end is None else max(0, end - message.offset - 1)

    def known_commit(self, tp: Any) -> int | None:
        """Return what is known to be committed of a partition: what was found as reading it began, or this worker's."""
        known: int | None = self._committed_offset.get(faust.types.TP(tp.topic, tp.partition))
        return known

    def committed_at(self, tp: Any, place: int) -> None:
        """Note what a transaction has committed."""
        self._committed_offset[faust.types.TP(tp.topic, tp.partition)] = place

    async def _add_gap(self, tp: Any, offset_from: int, offset_to: int) -> None:
        """Note nothing of offsets that no record has: with a marker between any two transactions Faust would look at
        every gap at each record, fall behind, and keep what it has not caught up with for ever."""

    def _to_message(self, tp: Any, record: Any) -> Any:
        message = super()._to_message(tp, record)
        message.before = record.before
        message.turn = getattr(record, "turn", 0)
        return message

    async def getmany(self, timeout: float) -> AsyncIterator[tuple[Any, Any]]:
        """Yield what is fetched until a seek begins: what a batch has left is fetched again from where that leads.

        When recovery ends, Faust resumes the partitions first and seeks then. A fetch in between goes on behind what
        the recovery dropped, and a record of it would come before those that are due.
        """
        async with aclosing(super().getmany(timeout)) as fetched:
            async for tp, message in fetched:
                if self._fetched_at != self._seeks:
                    break
                if self.app.runner.dropped(message):
                    continue
                self._handing = tp
                try:
                    yield tp, message
                finally:
                    self._handing = None

    async def _getmany(self, active_partitions: set[Any] | None, timeout: float) -> Any:
        async with self._at_the_log:
            self._fetched_at = self._seeks  # and not when Faust asked: it may have waited for the flow since
            runner = self.app.runner
            active = set(self.assignment() if active_partitions is None else active_partitions)
            active -= {tp for tp in active if tp.partition in runner.parked or runner.held_back(tp.topic, tp.partition)}
            self._thread.gathers, self._thread.room = runner.fetch_gathers(), self._room(runner)
            if active and self._bytes_in_work() < IN_WORK_BYTES_MAX:
                return await super()._getmany(active, timeout)
        await asyncio.sleep(min(timeout, FETCH_LOOK_S))  # an empty set would be taken for all
        return {}

    def _room(self, runner: Any) -> dict[Any, int]:
        if (overflow := runner.overflow) is None:
            return {}
        tps = [TopicPartition(tp.topic, tp.partition) for tp in self.assignment() if tp.topic == overflow.topic]
        return {tp: overflow.room(tp.partition) for tp in tps}

    def _bytes_in_work(self) -> int:
        """Return how much was fetched and is not done with, but for what waits for its tenant's quota."""
        waits = self.app.runner.spec.overflow
        return sum(len(one.key or b"") + len(one.value or b"") for one in self._unacked_messages if one.topic != waits)

    async def perform_seek(self) -> None:
        """Go back to the commit, and where there is none to the log's start, which Faust leaves out. A seek that an
        assignment overtakes counts for nothing: the next one has its own."""
        assignment = self._assignments
        await self.app.runner.fenced_off()  # what is committed stands still from here on
        self._seeks += 1
        async with self._at_the_log:
            try:
                await super().perform_seek()
                starts = {}
                for tp in self.assignment():
                    if not self._is_changelog_tp(tp) and not self._committed_offset.get(tp):
                        starts[tp], _ = await self.base_offset(tp)
                if starts:
                    await self._thread.seek_wait(starts)
            except IllegalStateError:  # a partition is another's by now
                if assignment == self._assignments:
                    raise
                return
        self._sought = assignment

    def resume_flow(self) -> None:
        """Let records through, once what is assigned now was sought: a recovery that was overtaken resumes as well, and
        what came then would begin behind records that were read before and not decided, as if they were lost."""
        if self._sought == self._assignments or not self.assignment():
            super().resume_flow()

    async def wait_empty(self) -> None:
        """Wait for records in work, within the runner's bound. (Faust's own waits without one.)"""
        await self.app.runner.drain()
        self._unacked_messages.clear()

    async def on_partitions_revoked(self, revoked: set[Any]) -> None:
        """Drain before Faust forgets the offsets."""
        self._assignments += 1
        with self._failing():
            await self.app.runner.drain()
            await super().on_partitions_revoked(revoked)
            await self.app.runner.revoked({tp.partition for tp in revoked})

    async def on_partitions_assigned(self, assigned: set[Any], generation_id: int = 0) -> None:
        """Start a new generation before the first record of it can arrive."""
        self._assignments += 1
        with self._failing():
            await self.app.runner.begin({tp.partition for tp in assigned})
            await super().on_partitions_assigned(assigned, generation_id)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        """Have an error end the stage: aiokafka logs it and goes on, with partitions of which nothing is taken."""
        try:
            yield
        except Exception as error:
            self.app.runner.fail(error)
            raise

    def verify_event_path(self, now: float, tp: Any) -> None:
        """Do nothing: liveness goes by commits (progress.py)."""


class StageTransport(driver.Transport):  # type: ignore[misc]
    """aiokafka transport with the consumer above."""

    Consumer = StageConsumer


class StageTables(TableManager):  # type: ignore[misc]
    """Table manager of an app that has no table of Faust's."""

    async def on_start(self) -> None:
        """Begin recovery at once."""
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()


class StageBoot(BootStrategy):  # type: ignore[misc]
    """What starts with an app."""

    enable_kafka_producer = False


class StageApp(faust.App):  # type: ignore[misc]
    """A Faust app with a runner attached; see :func:`memsluice.runtimes.kafka.apps.build_app`."""

    BootStrategy = StageBoot
    runner: Any
    """The stage's :class:`~memsluice.runtimes.kafka.runner.StageRunner`."""

    @cached_property
    def flow_control(self) -> GuardedFlow:
        """Flow control of the streams."""
        return GuardedFlow(loop=self.loop)

    def _new_transport(self) -> StageTransport:
        return StageTransport(self.conf.broker_consumer, self)

    async def on_start(self) -> None:
        """Start the runner's tasks with the app."""
        await super().on_start()
        self.runner.start()

    async def on_shutdown(self) -> None:
        """End them after the consumer has stopped."""
        await super().on_shutdown()
        await self.runner.stop()
