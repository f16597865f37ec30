"""What a batch stage and a stateful stage have in common: taking records in, sending results out, draining.

A record is *held* from the moment it is accepted until its offset may be committed. The generation goes up with every
assignment; whatever belongs to an older one is dropped and never acknowledged.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from aiokafka.errors import KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, RequestTimedOutError
from faust.types import TP

from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.envelope.partition_orders import Missing, PartitionState
from memsluice.errors import BeginAnew, BrokerUnavailable, Fenced, GapError, NotCommitted
from memsluice.log import get_logger, said
from memsluice.runtimes.kafka.delivery import Owner, RecordResult
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.fence import Fence
from memsluice.runtimes.kafka.gaps import MARKERS_MAX, GapDetector
from memsluice.runtimes.kafka.lanes import Lanes, Restores
from memsluice.runtimes.kafka.overflow import Overflow
from memsluice.runtimes.kafka.parking import parked, parks, tell
from memsluice.runtimes.kafka.spec import Stage, StageSpec
from memsluice.stages.base import Waits

LOG = get_logger(__name__)
ACKNOWLEDGED_MAX: Final = 64
"""Losses of a partition that are remembered as acknowledged; of more, the newest."""
AWAY = (BrokerUnavailable, KafkaConnectionError, KafkaTimeoutError, NodeNotReadyError, RequestTimedOutError)
"""How a broker that does not answer shows outside of a transaction: the stage begins anew once it does."""


class StageRunner(ABC):
    """Drives one stage inside one app. Everything but a batch stage's ``process`` runs on the event loop."""

    def __init__(self, spec: StageSpec, stage: Stage, faults: Faults, app: Any, connection: Connection) -> None:
        self.spec = spec
        self.stage: Any = stage
        self.tuning = spec.tuning
        self.fetch_wait_s = spec.tuning.fetch_wait_s
        self.faults = faults
        self.app = app
        self.generation = 0
        self.partitions: frozenset[int] = frozenset()
        """The partitions of the assignment in force."""
        self.held = 0
        self.draining = True
        self.seated = False
        """Whether the partitions of the assignment are fenced, and the stage knows that they are its own."""
        self.failure: BaseException | None = None
        self.failed = asyncio.Event()
        owner = Owner(spec, app, faults, self._release, self.fail, self._fail_partition, self.dropped)
        self.lanes = Lanes(owner, lambda partition: Fence(spec, connection, partition), self._lane_rows)
        self.replica = ""
        self.parked: dict[int, PartitionState] = {}
        """Partitions of the assignment that stand still, and why."""
        self.turns: dict[int, int] = {}
        """How often a partition was begun anew by an order: what was fetched in an earlier turn is dropped."""
        self.ending = False
        """Whether the worker stops its stages."""
        self.overflow: Overflow | None = None
        """Where tenants over their quota wait, in a stage that has quotas."""
        self._gaps = GapDetector()
        self._acknowledged: dict[int, list[Missing]] = {}
        """Losses that somebody answered for, a partition each. No record that is there is passed over by one."""
        self._results: asyncio.Queue[RecordResult] = asyncio.Queue(maxsize=spec.tuning.in_flight)
        self._tasks: list[asyncio.Task[None]] = []
        self._quiet = asyncio.Event()
        self._taken: dict[Any, deque[int]] = {}
        """Append times of the records held, a partition each; released in the order in which they were taken."""

    # --- life cycle ---

    def _lane_rows(self, partition: int) -> Restores | None:
        """Return what a partition's lane restores before it takes records, if anything."""
        return None

    def is_ready(self) -> bool:
        """Tell whether the stage has its partitions, their rows are restored, and it takes records."""
        return not self.draining and self.failure is None and self.seated and self.lanes.is_ready()

    def refused_s(self) -> float:
        """Return for how many seconds what the stage writes to has been refusing it; a restart would not help."""
        return self.stage.refused_s() if isinstance(self.stage, Waits) else 0.0

    def start(self) -> None:
        """Start the tasks; called by the app when it starts."""
        for job in (self._emit, *self._jobs()):
            self._tasks.append(asyncio.get_running_loop().create_task(self._guard(job)))

    async def stop(self) -> None:
        """Cancel the tasks; called by the app when the consumer has stopped."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        await self.lanes.stop()

    def fail(self, error: BaseException) -> None:
        """End the worker loudly; nothing is acknowledged from here on."""
        if self.failure is not None:
            return
        if isinstance(error, AWAY):
            error = NotCommitted(f"the broker went away: {said(error)}")
        elif self.ending and type(error) is RuntimeError and "closed" in str(error):  # a loop of the client's
            error = NotCommitted(f"the stage was being stopped: {said(error)}")
        self.failure = error
        self.lanes.give_up()
        if not isinstance(error, BeginAnew):  # the worker says so
            LOG.critical("stage failed", stage=self.spec.name, error=said(error), held=self.held)
        self.failed.set()
        self._quiet.set()

    # --- one partition ---

    def dropped(self, message: Any) -> bool:
        """Tell whether a message is of a partition that is parked, or was since the message was fetched."""
        partition = message.partition
        return partition in self.parked or getattr(message, "turn", 0) != self.turns.get(partition, 0)

    def park(self, partition: int, error: BaseException, topic: str, offset: int | None = None) -> None:
        """Stop one partition, for an error at a record of it (None: at none). It goes on by :meth:`resume`."""
        if self.failure is not None:
            return
        self.parked[partition] = parked(self.spec.name, partition, topic, offset, error, wall_ms(), self.replica)
        for tp in self._tps(partition):
            self.held -= len(self._taken.pop(tp, ()))
            self._gaps.forget(tp)
        self.app.consumer.untrack_partition(partition)
        self.lanes.park(partition)
        self._drop_parked(partition)
        tell(self.parked[partition])
        if self.held <= 0:
            self._quiet.set()

    def _fail_partition(self, partition: int, error: BaseException) -> None:
        if parks(error):
            self.park(partition, error, self.spec.inputs[0])
        else:
            self.fail(error)

    async def resume(self, failure: str, partition: int, missing: Missing | None = None) -> bool:
        """Begin anew with a parked partition, from its committed offset; ``missing`` is known to be lost.

        A loss of the stage's input is one of the intake, too: what was acknowledged holds for as long as this stage
        lives, so that the next order comes to the next gap, also where a rebalance comes before it goes on.

        Returns whether it goes on: not where that failure is over, or the partition was parked again meanwhile.
        """
        state, generation = self.parked.get(partition), self.generation
        if state is None or state.failure != failure:
            return False
        known = self._acknowledged.setdefault(partition, [])
        if missing is not None and missing not in known:
            known.append(missing)
            del known[:-ACKNOWLEDGED_MAX]
        if not self._closed_to(generation):
            await self.lanes.reopen(partition)
        if not self._closed_to(generation) and self.parked.get(partition) is state:
            await self.app.consumer.reopen(self._tps(partition))
            await self._forget_parked(partition)
        if self._closed_to(generation) or self.parked.get(partition) is not state:
            return False
        self._pass_known(partition)
        del self.parked[partition]
        return True

    async def _forget_parked(self, partition: int) -> None:
        """Have the stage forget what it said of a partition that goes on, and what was dropped."""
        return

    def _pass_known(self, partition: int) -> None:
        for one in self._acknowledged.get(partition, ()):
            if one.topic in self.spec.inputs:
                self._gaps.acknowledge(TP(one.topic, partition), one)
            else:
                self._acknowledge(partition, one)

    def held_back(self, topic: str, partition: int) -> bool:
        """Tell whether nothing more of a partition of a topic is to be fetched for now: not while its rows are being
        restored, so that nothing of the others waits behind what has come of it."""
        return not self.lanes.is_restored(partition)

    def fetch_gathers(self) -> bool:
        """Tell whether fetches gather what arrives, and are not answered at each record."""
        return False

    def _tps(self, partition: int) -> list[Any]:
        return [TP(topic, partition) for topic in self.spec.inputs]

    # --- the assignment ---

    async def begin(self, partitions: set[int]) -> None:
        """Start a generation: nothing of the one before is acknowledged any more."""
        self._new_generation()
        self.partitions = frozenset(partitions)
        self.seated = not partitions
        await self.lanes.begin(partitions)
        self._forget(partitions)
        for partition in partitions:
            self._pass_known(partition)
        self.draining = False

    async def fenced_off(self) -> None:
        """Wait until no former owner of the partitions can write: before the committed offsets are read."""
        generation = self.generation
        await self.lanes.fenced()
        await self._seat()
        self.seated = self.seated or generation == self.generation

    async def _seat(self) -> None:
        """Tell a stage that must know it which partitions are its own."""
        return

    async def revoked(self, partitions: set[int]) -> None:
        """Drop what is left after the drain."""
        self._new_generation()
        self.partitions = frozenset()
        await self.lanes.stop()
        self._forget(partitions)

    async def drain(self) -> None:
        """Take no more records; wait at most ``drain_s`` for those in work, then give them up (they are read again)."""
        self.draining = True
        self._drop_queued()
        self.lanes.end()
        if self.held and self.failure is None:
            self._quiet.clear()
            try:
                await asyncio.wait_for(self._quiet.wait(), self.tuning.drain_s)
            except TimeoutError:
                self._abandon()

    def _abandon(self) -> None:
        """Let go of the records in work. What of them is still under way is refused by the broker."""
        LOG.warning("records given up, to be read again", stage=self.spec.name, records=self.held)
        self._new_generation()

    def _new_generation(self) -> None:
        self.generation += 1
        self.held = 0
        self.parked.clear()  # tried anew, here or by another worker
        self.lanes.give_up()
        self._gaps.clear()
        self._taken.clear()

    def taken(self, tp: Any) -> int:
        """Return how many records of a partition were taken in and are not committed."""
        return len(self._taken.get(tp, ()))

    def oldest_ms(self) -> int | None:
        """Return the append time (Unix ms) of the oldest record held, but for those of the overflow, or None."""
        taken = (times for tp, times in self._taken.items() if tp.topic != self.spec.overflow)
        return min((times[0] for times in taken if times), default=None)

    # --- in ---

    async def consume(self, stream: Any) -> None:
        """Take every record of the stream. The body of the app's one agent; ends only with the app."""
        await self._guard(lambda: self._consume(stream))
        if self.failure is not None:
            await asyncio.Event().wait()  # Faust would restart an agent that ends; the worker is ending instead

    async def _consume(self, stream: Any) -> None:
        async for event in stream.noack().events():
            await self._accept(event.message)

    async def _accept(self, message: Any) -> None:
        if not self._gaps.knows(message.tp) and not self._closed_to(self.generation) and not self.dropped(message):
            await self._start_partition(message)
        if self._closed_to(self.generation) or self.dropped(message) or not self._gaps.knows(message.tp):
            self.app.consumer.untrack(message)
        elif await self._is_next(message):
            self.held += 1
            self._taken.setdefault(message.tp, deque()).append(round(message.timestamp * 1000))
            await self._take(message)
        else:
            self.app.consumer.untrack(message)  # the first copy is in work, or its partition was parked

    async def _start_partition(self, message: Any) -> None:
        generation = self.generation
        await self.lanes.ready(message.partition)
        if self.dropped(message):
            return  # its rows could not be restored
        base, committed = await self.app.consumer.base_offset(message.tp)
        if generation == self.generation and not self.dropped(message):
            if committed and message.offset < base and base != self.app.consumer.known_commit(message.tp):
                raise Fenced(
                    f"{message.tp.topic}[{message.partition}] was committed up to {base} since this worker began to "
                    f"read it, at {message.offset}: by another one, or by somebody who set the group's offsets"
                )
            # A log's start moves with retention; a record below it was there a moment ago and is no repetition.
            self._gaps.start(message.tp, base if committed else min(base, message.offset))

    async def _is_next(self, message: Any) -> bool:
        """Tell whether a record is to be taken: False for a repetition. A gap before it parks its partition."""
        generation = self.generation
        try:
            return await self._see(message) and generation == self.generation and not self.dropped(message)
        except GapError as error:
            self.park(message.partition, error, message.topic, message.offset)
            return False

    async def _see(self, message: Any) -> bool:
        """Tell whether a record is the next one of its partition. Raises GapError where one before it is missing.

        A partition that is written in transactions has their markers between its records, which nobody is given: a
        jump is none where the fetch before ended with the record before. What retention removed is told by the log.
        """
        if message.topic not in self.spec.transactional:
            return self._gaps.see(message.tp, message.offset)
        if self._gaps.jump(message.tp, message.offset) > MARKERS_MAX:
            start = await self.app.consumer.log_start(message.tp)
            if not self._gaps.knows(message.tp):
                return False  # given up meanwhile
            self._gaps.starts(message.tp, start)
        return self._gaps.see_after(message.tp, message.offset, message.before)

    def _closed_to(self, generation: int) -> bool:
        return self.draining or self.failure is not None or generation != self.generation

    # --- out ---

    async def _emit(self) -> None:
        """Hand results on, in order, to what brings them to the broker."""
        while True:
            result = await self._results.get()
            if result.generation == self.generation and not self.dropped(result.message):
                await self.lanes.deliver(result)

    def _release(self, message: Any) -> None:
        self.app.consumer.untrack(message)
        self._taken[message.tp].popleft()
        self._let_go()

    def _let_go(self) -> None:
        self.held -= 1
        if self.held <= 0:
            self._quiet.set()

    async def _guard(self, job: Callable[[], Awaitable[None]]) -> None:
        try:
            await job()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            self.fail(error)

    # --- what differs ---

    @abstractmethod
    async def _take(self, message: Any) -> None:
        """Take one new record of the current generation, waiting for room."""

    @abstractmethod
    def _drop_queued(self) -> None:
        """Give up records that are held but not in work yet."""

    def _drop_parked(self, partition: int) -> None:  # noqa: B027 - called by all, of use to some
        """Drop what is queued and cached of a partition that is being parked."""

    def _acknowledge(self, partition: int, missing: Missing) -> None:  # noqa: B027
        """Take records of another topic than the inputs, which are known to be lost, for passed."""

    def _jobs(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return ()

    def _forget(self, partitions: set[int]) -> None:  # noqa: B027 - a batch stage caches nothing
        """Drop what is cached of these partitions."""
