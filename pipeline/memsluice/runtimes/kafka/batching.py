"""Batch stages: whatever has arrived goes to a thread of the stage as soon as one is free.

So an idle stage adds no waiting, and batches grow by themselves with the load. A thread that is done takes the next
batch while a longer one before it is at work; results are handed on in the order in which their batches were taken.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final, NamedTuple

from faust.types import TP

from memsluice.deployment.connection import Connection
from memsluice.errors import SealError, StateError
from memsluice.events.records import Output, Record
from memsluice.readers.kafka import KafkaTopic
from memsluice.runtimes.kafka.delivery import RecordResult
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.lanes import Restores
from memsluice.runtimes.kafka.overflow import HELD_MAX, Chosen, Overflow, Way
from memsluice.runtimes.kafka.records import to_record
from memsluice.runtimes.kafka.restore import OpenLog
from memsluice.runtimes.kafka.runner import LOG, StageRunner
from memsluice.runtimes.kafka.spec import Stage, StageSpec
from memsluice.runtimes.kafka.thread import StageThreads
from memsluice.stages.base import Forgets, Owning, Waits
from memsluice.stages.quota import TURN_EVENTS

PATIENCE_S: Final = 0.5
"""How long what waited for its quota lets those who are within theirs go first. Where the stage is never without
theirs, all that is due by then goes on: each tenant has a right to its quota."""
AT_ONCE_EVENTS: Final = TURN_EVENTS
"""So many go on for each thread, and then it is looked anew whether somebody else's event has come."""


class _Item(NamedTuple):
    """One record that was taken. ``chosen``: how it goes on, where its tenant has a quota."""

    generation: int
    message: Any
    chosen: Chosen | None = None


_UnderWay = tuple[list[_Item], "asyncio.Future[Any]"]
"""A batch, and what its thread will return."""


class BatchRunner(StageRunner):
    """Runs a :class:`~memsluice.stages.base.BatchStage`."""

    def __init__(self, spec: StageSpec, stage: Stage, faults: Faults, app: Any, connection: Connection) -> None:
        super().__init__(spec, stage, faults, app, connection)
        self._queue: deque[_Item] = deque()  # bounded by _take
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._threads = StageThreads(f"stage-{spec.name}", self.tuning.threads)
        self._telling = StageThreads(f"owns-{spec.name}")  # one: it is told in order
        self._free = asyncio.Semaphore(self.tuning.threads)
        batches_max = 2 * self.tuning.threads
        self._order = asyncio.Semaphore(batches_max)
        """Room for batches that were taken and not handed on: each thread that is done may go on with another while a
        longer one, taken before, is still at work."""
        self._under_way: asyncio.Queue[_UnderWay] = asyncio.Queue()  # bounded by _order
        self._at_work: deque[list[_Item]] = deque()
        """Batches that a thread has, or that wait for one before them."""
        self._returned_one = asyncio.Event()
        self._queued_max = (1 + self.tuning.threads) * self.tuning.batch_size
        unanswered_max = self._queued_max + (batches_max + 1) * self.tuning.batch_size  # one is being handed on
        self.overflow = Overflow(spec.overflow, self.stage, self._now_s, unanswered_max) if spec.overflow else None
        self._open_overflow: OpenLog = lambda given_up: KafkaTopic.of(
            connection, spec.user, spec.overflow, spec.app_id, given_up.is_set
        )

    @staticmethod
    def _now_s() -> float:
        return asyncio.get_running_loop().time()

    def _lane_rows(self, partition: int) -> Restores | None:
        if self.overflow is None:
            return None
        committed = partial(self._committed, TP(self.spec.overflow, partition))
        return self.overflow.restoring(partition, committed, self._open_overflow)

    async def _committed(self, tp: Any) -> tuple[int, bool]:
        base: tuple[int, bool] = await self.app.consumer.base_offset(tp)
        return base

    def held_back(self, topic: str, partition: int) -> bool:
        """Tell whether a partition is being restored, or enough of its overflow is held back."""
        overflowing = self.overflow is not None and self.overflow.held_back(topic, partition)
        return overflowing or super().held_back(topic, partition)

    def fetch_gathers(self) -> bool:
        """Tell whether a tenant over its quota goes on sending: a fetch for each of its events costs everybody's."""
        return self.overflow is not None and self.overflow.is_flooded()

    async def _seat(self) -> None:
        await self._tell_owned(set(self.partitions))

    async def revoked(self, partitions: set[int]) -> None:
        """Drop what is left after the drain; nothing is the stage's own until the next assignment."""
        await super().revoked(partitions)
        await self._tell_owned(set())

    async def stop(self) -> None:
        """Cancel the tasks; the threads end after the calls they are in, which nobody waits for."""
        await super().stop()
        self._end_waits()
        await self._tell_owned(set())
        self._telling.close()
        self._threads.close()

    async def _tell_owned(self, partitions: set[int]) -> None:
        if isinstance(self.stage, Owning):
            await self._telling.submit(self.stage.owns, partitions)

    def _abandon(self) -> None:
        super()._abandon()
        self._end_waits()

    def _end_waits(self) -> None:
        if isinstance(self.stage, Waits):
            self.stage.give_up()

    async def _take(self, message: Any) -> None:
        generation = self.generation
        if self.overflow is None or message.topic != self.spec.overflow:
            await self._queue_up(generation, message, self._choose)
            return
        try:
            self.overflow.hold(generation, message)
        except SealError as error:
            self.park(message.partition, error, message.topic, message.offset)

    def _choose(self, message: Any) -> Chosen | None:
        return None if self.overflow is None else self.overflow.choose(message)

    async def _queue_up(self, generation: int, message: Any, chosen: Callable[[Any], Chosen | None]) -> None:
        """Queue a record once there is room. Where it goes is asked then: in the order in which they are queued."""
        while len(self._queue) >= self._queued_max and generation == self.generation:
            self._room.clear()
            await self._room.wait()
        if self._closed_to(generation) or self.dropped(message):
            if generation == self.generation and not self.dropped(message):
                self._give_up(message)
            return
        self._queue.append(_Item(generation, message, chosen(message)))
        self._arrived.set()

    async def _go_on(self) -> None:
        """Take what waits in the overflow, as quotas allow it, a turn at once, and behind those who need not wait."""
        overflow = self.overflow
        if overflow is None:
            return
        while True:
            overflow.wake.clear()
            partition, wait_s = overflow.due()
            if partition is None or wait_s:
                try:
                    async with asyncio.timeout(wait_s):
                        await overflow.wake.wait()
                except TimeoutError:
                    pass
                continue
            limited = overflow.is_limited(partition)
            alone = await self._let_others(limited=limited)
            for _ in range(AT_ONCE_EVENTS if limited and alone else HELD_MAX):
                partition, wait_s = overflow.due()
                if partition is None or wait_s:
                    break
                held = overflow.take(partition)
                await self._queue_up(held.generation, held.message, partial(overflow.goes_on, held))

    async def _let_others(self, *, limited: bool) -> bool:
        """Wait until nothing of those who need not wait is queued or at work, and little of those who have a quota and
        waited; return whether that is so, and not because patience is over."""
        try:
            async with asyncio.timeout(PATIENCE_S):
                while not self._may_go_on(limited=limited):
                    self._returned_one.clear()
                    await self._returned_one.wait()
        except TimeoutError:
            return False
        return True

    def _may_go_on(self, *, limited: bool) -> bool:
        items = chain(self._queue, *self._at_work)
        ways = Counter(Way.STRAIGHT if item.chosen is None else item.chosen.way for item in items)
        others = ways.total() - ways[Way.MOVED] - ways[Way.WAITED]
        return not others and (not limited or ways[Way.WAITED] < AT_ONCE_EVENTS * self.tuning.threads)

    def _drop_queued(self) -> None:
        queue, self._queue = self._queue, deque()
        held = self.overflow.drop() if self.overflow is not None else []
        for generation, message in [*((item.generation, item.message) for item in queue), *held]:
            if generation == self.generation:
                self._give_up(message)
        self._room.set()

    def _drop_parked(self, partition: int) -> None:
        self._queue = deque(item for item in self._queue if item.message.partition != partition)
        if self.overflow is not None:
            self.overflow.forget(partition)
        self._room.set()

    async def _forget_parked(self, partition: int) -> None:
        if isinstance(self.stage, Forgets):
            await asyncio.to_thread(self.stage.forget, partition)

    def _give_up(self, message: Any) -> None:
        if times := self._taken.get(message.tp):
            times.pop()  # what is dropped came last: of those before it a batch is in work
        self.app.consumer.untrack(message)
        self._let_go()

    def _new_generation(self) -> None:
        super()._new_generation()
        self._queue.clear()
        if self.overflow is not None:
            self.overflow.clear()
        self._room.set()

    def _jobs(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (self._batches, self._hand_on, *([self._go_on] if self.overflow is not None else []))

    async def _batches(self) -> None:
        """Give batches to free threads."""
        was_full = False
        while True:
            await self._order.acquire()
            await self._free.acquire()
            items: list[_Item] = []
            while not items:
                items = await self._next_batch(linger=was_full)
            was_full = len(items) >= self.tuning.batch_size
            self._at_work.append(items)
            returned = self._submit(items)
            returned.add_done_callback(lambda _: self._free.release())
            self._under_way.put_nowait((items, returned))

    def _submit(self, items: Sequence[_Item]) -> "asyncio.Future[Any]":
        records = [to_record(item.message) for item in items]
        moves = [item.chosen if item.chosen and item.chosen.way is Way.MOVED else None for item in items]
        work = partial(_work, self.stage, records, moves) if any(moves) else partial(self.stage.process, records)
        return self._threads.submit(work)

    async def _hand_on(self) -> None:
        """Hand on what the threads returned, batch after batch."""
        while True:
            items, returned = await self._under_way.get()
            try:
                items, outputs = await self._returned(items, returned)
            except Exception as error:
                if any(map(self._counts, items)):
                    raise
                LOG.info("a batch that was given up has ended", stage=self.spec.name, why=type(error).__name__)
                continue
            finally:
                self._order.release()
                self._at_work.popleft()
                self._returned_one.set()
            if len(outputs) != len(items):
                raise StateError(f"stage {self.spec.name} returned {len(outputs)} results for {len(items)} records")
            for (generation, message, chosen), results in zip(items, outputs, strict=True):
                if generation != self.generation:
                    break
                if not self.dropped(message):
                    if self.overflow is not None:
                        self.overflow.answered(message, chosen, results)
                    urgent = chosen is None or chosen.way is not Way.MOVED
                    await self._results.put(RecordResult(message, generation, results, urgent=urgent))

    async def _returned(
        self, items: list[_Item], returned: "asyncio.Future[Any]"
    ) -> tuple[list[_Item], list[list[Output]]]:
        """Wait for a batch; return what came of which of it. Raises what the stage raises.

        A record of the overflow was believed when it was held back; where its key was revoked since, its partition is
        parked, and the stage is asked once more about the others.
        """
        while True:
            try:
                return items, await returned
            except SealError:
                self._park_unsealed(items)
                left = [item for item in items if self._counts(item)]
                if len(left) == len(items):
                    raise
            items, returned = left, self._submit(left)

    def _counts(self, item: _Item) -> bool:
        return item.generation == self.generation and not self.dropped(item.message)

    def _park_unsealed(self, items: Sequence[_Item]) -> None:
        """Park the partitions of what waited in the overflow and is not believed any more."""
        for item in filter(self._counts, items):
            try:
                if self.overflow is not None:
                    self.overflow.believe(item.message)
            except SealError as error:
                self.park(item.message.partition, error, item.message.topic, item.message.offset)

    async def _next_batch(self, *, linger: bool) -> list[_Item]:
        """Return what is there, at most a full batch; wait for the first record only (or the linger, under load)."""
        while not self._queue:
            self._arrived.clear()
            await self._arrived.wait()
        if linger and len(self._queue) < self.tuning.batch_size and self.tuning.linger_s > 0:
            await asyncio.sleep(self.tuning.linger_s)
        items: list[_Item] = []
        size = 0
        while self._queue and len(items) < self.tuning.batch_size and size < self.tuning.batch_bytes:
            item = self._queue.popleft()
            if item.generation == self.generation:
                items.append(item)
                size += len(item.message.key or b"") + len(item.message.value or b"")
        self._room.set()
        return items


def _work(stage: Any, records: Sequence[Record], moves: Sequence[Chosen | None]) -> list[list[Output]]:
    """Have a stage process some records, and move the others to its overflow. In a thread of the stage."""
    kept = [record for record, move in zip(records, moves, strict=True) if move is None]
    done = iter(stage.process(kept) if kept else ())
    return [
        next(done) if move is None else stage.moved(record, move.tenant, move.after)
        for record, move in zip(records, moves, strict=True)
    ]
