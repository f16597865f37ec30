"""Fenced delivery: a lane a partition, in which rows, outputs and the input's offset commit together or not at all.

A transaction takes whatever has gathered while the one before was being committed, and what is known to be coming: one
event alone waits for nobody, and under load a commit is shared by hundreds. What nobody waits for, such as an event
that is moved to the overflow, is gathered longer: a commit for each would take the broker's and the stages' time from
everybody else's events. Local rows are settled after it.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from threading import Event
from typing import Any, Final, Protocol

from aiokafka.structs import TopicPartition

from memsluice.errors import OutputTooLarge
from memsluice.log import get_logger
from memsluice.runtimes.kafka.delivery import Owner, RecordResult
from memsluice.runtimes.kafka.faults import AFTER_CHANGELOG, AFTER_COMMIT, AFTER_OUTPUT, AFTER_PROCESS
from memsluice.runtimes.kafka.fence import Fence
from memsluice.runtimes.kafka.packing import Packing, Sent
from memsluice.runtimes.kafka.restore import OpenLog, restore
from memsluice.runtimes.kafka.state import StateRows

LOG = get_logger(__name__)
IDLE_S: Final = 1.0
"""How long a lane is idle before it commits its place behind the markers that follow the last record."""

GATHER_S: Final = 0.25
"""How long results that are not urgent are gathered, where no urgent one comes."""
SHARE_S: Final = 0.05
"""How long an urgent one waits, at most, for others of its partition that the log was seen to have behind it."""
BACKLOG_OFFSETS_MIN: Final = 16
"""Where so many offsets, markers among them, were known behind the transaction before and are behind an urgent record,
it waits for a full one: it has waited for its turn, and one for each few records would take the broker's and the
stages' time from all."""
BACKLOG_S: Final = GATHER_S
"""How long it waits for that, at most."""
GATHERED_MAX: Final = 64
"""Most results that one transaction commits: what comes behind them waits for no longer one."""


class Restores(Protocol):
    """What a lane waits for once its fence is open, before a record of its partition is taken."""

    restoring: bool
    """Whether a thread is at it, which is waited for."""

    async def restore(self, given_up: Event) -> None:
        """Find out what the partition's logs say; end early, with less, once ``given_up`` is set."""


class Lane:
    """One partition's way to the broker. Its task ends with :meth:`close`, or by telling the owner of a failure."""

    def __init__(self, owner: Owner, fence: Fence, before: Restores | None, done: Callable[[int], None]) -> None:
        self.opened = asyncio.Event()
        self.restored = asyncio.Event()
        self._owner = owner
        self._fence = fence
        self._before = before
        self._rows = before if isinstance(before, LaneRows) else None
        self._done = done
        self._queue: deque[RecordResult] = deque()
        self._arrived = asyncio.Event()
        self._urgent = asyncio.Event()
        self._sharing: asyncio.TimerHandle | None = None
        """When what is urgent and queued waits for others no longer; None: nothing urgent waits for them."""
        self._backlog = False
        """Whether much was known to come behind the transaction before."""
        self._ending = False
        """Whether nothing more is taken in, so that nothing is worth waiting for."""
        self._given_up = Event()
        self._closed = False
        self._task: asyncio.Task[None] | None = None
        self.outstanding = 0
        """Records put and not committed."""

    def start(self) -> None:
        """Fence the partition, restore what it goes by, and commit what arrives."""
        self._task = asyncio.get_running_loop().create_task(self._guarded())

    def put(self, result: RecordResult) -> None:
        """Queue one result; the owner bounds how many there are."""
        self._queue.append(result)
        self.outstanding += 1
        self._arrived.set()
        comes = self._known_to_come(result.message)
        if result.urgent and self._sharing is None:
            long = self._backlog and self._is_backlog(result.message, comes)
            self._sharing = asyncio.get_running_loop().call_later(BACKLOG_S if long else SHARE_S, self.hurry)
        if self._ending or len(self._queue) >= GATHERED_MAX or (self._sharing is not None and not comes):
            self.hurry()

    def _known_to_come(self, message: Any) -> int:
        """Return how much of the partition is known to be on its way: behind the last record, a marker is not."""
        known: int = self._owner.app.consumer.known_behind(message)
        return max(0, known - int(message.topic in self._owner.spec.transactional))

    def _is_backlog(self, message: Any, comes: int) -> bool:
        """Tell whether much comes behind a record soon: what waits in the overflow comes as its quota allows."""
        return comes >= BACKLOG_OFFSETS_MIN and message.topic != self._owner.spec.overflow

    def hurry(self) -> None:
        """Gather no longer: somebody waits for what is queued, or for its room."""
        self._forget_hurry()
        self._urgent.set()

    def end(self) -> None:
        """Gather nothing any more: no more comes than what is in work."""
        self._ending = True
        self.hurry()

    def _forget_hurry(self) -> None:
        """Forget that anybody hurries, or would."""
        self._urgent.clear()
        if self._sharing is not None:
            self._sharing.cancel()
            self._sharing = None

    def give_up(self) -> None:
        """Release and settle nothing any more."""
        self._closed = True
        self._forget_hurry()
        self._given_up.set()
        self.opened.set()  # who waits looks at the generation then
        self.restored.set()

    async def close(self) -> None:
        """Give up, and leave nothing of an open transaction behind."""
        self.give_up()
        if self._task is not None:
            if self._before is None or not self._before.restoring:
                self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await self._fence.close()

    async def _guarded(self) -> None:
        try:
            await self._run()
        except asyncio.CancelledError:
            raise
        except Exception as error:
            if self._closed:
                return
            restoring = self.opened.is_set() and not self.restored.is_set()
            if restoring or isinstance(error, OutputTooLarge):  # what is wrong is wrong with this partition alone
                self._owner.fail_partition(self._fence.partition, error)
            else:
                self._owner.fail(error)

    async def _run(self) -> None:
        await self._fence.open()
        self.opened.set()
        if self._before is not None:
            await self._before.restore(self._given_up)
        self.restored.set()
        while not self._closed:
            if batch := await self._next():
                await self._commit(batch)
            elif not self._closed:
                await self._catch_up()

    async def _next(self) -> list[RecordResult]:
        """Return what has gathered, at most one transaction's records; nothing where none came for a while."""
        if not self._queue:
            self._arrived.clear()
            try:
                async with asyncio.timeout(IDLE_S):
                    await self._arrived.wait()
            except TimeoutError:
                return []
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GATHER_S):
                await self._urgent.wait()
        if self._closed:
            return []
        most = min(len(self._queue), self._owner.spec.tuning.transaction_records)
        batch = [self._queue.popleft() for _ in range(most)]
        if not self._queue:
            self._forget_hurry()
        last = batch[-1].message
        self._backlog = self._is_backlog(last, self._known_to_come(last))
        return batch

    async def _commit(self, batch: list[RecordResult]) -> None:
        rows: list[list[Sent]] = []

        async def work(packing: Packing) -> None:
            for result in batch:
                rows.append(await self._send(result, packing))

        offsets = _offsets(batch)
        try:
            await self._fence.transact(work, offsets)
        except OutputTooLarge as error:
            raise OutputTooLarge(f"{error}; it came of one of {_places(batch)}") from error
        await self._owner.faults.reach(AFTER_COMMIT)
        if self._closed:
            return
        for where, place in offsets.items():
            self._owner.app.consumer.committed_at(where, place)
        for result, written in zip(batch, rows, strict=True):
            if self._rows is not None and result.rows is not None and written:
                self._rows.state.settle(result.rows, written[-1].offset)
            self._owner.release(result.message)
        self.outstanding -= len(batch)
        self._done(len(batch))

    async def _send(self, result: RecordResult, packing: Packing) -> list[Sent]:
        """Send one record's rows, then its outputs; return where the rows lie."""
        faults = self._owner.faults
        await faults.reach(AFTER_PROCESS)
        written = []
        if self._rows is not None and result.rows is not None:
            for change in result.rows.changes:
                where = self._rows.changelog, result.rows.partition
                written.append(await packing.send(*where, change.key, change.value))
        await faults.reach(AFTER_CHANGELOG, packing.flush)
        for output in result.outputs:
            self._owner.check(output)
            await packing.send(output.topic, output.partition, output.key, output.value, output.headers)
        await faults.reach(AFTER_OUTPUT, packing.flush)
        return written

    async def _catch_up(self) -> None:
        """Commit the place behind the markers at the end of the input, so that an idle stage is not behind."""
        for topic in self._owner.spec.inputs:
            where = TopicPartition(topic, self._fence.partition)
            place = await self._owner.app.consumer.place_if_idle(where)
            if place is not None and not self._queue and not self._closed:
                await self._fence.transact(_nothing, {where: place})
                self._owner.app.consumer.committed_at(where, place)


class LaneRows:
    """The rows of one lane's partition: where they lie, and the changelog that they are restored from."""

    def __init__(self, state: StateRows, partition: int, changelog: str, open_log: OpenLog) -> None:
        self.state = state
        self.changelog = changelog
        self.restoring = False
        self._partition = partition
        self._open_log = open_log

    async def restore(self, given_up: Event) -> None:
        """Bring the local rows to the changelog's end, in a thread that is always waited for: it writes to them."""
        self.restoring = True
        try:
            self.state.open(self._partition)
            rows = await asyncio.to_thread(restore, self.state, self._partition, self._open_log, given_up)
        finally:
            self.restoring = False
        if rows:
            LOG.info("rows restored from the changelog", partition=self._partition, rows=rows)


def _offsets(batch: list[RecordResult]) -> dict[TopicPartition, int]:
    """Return the next offset of each input: results come in the order of their partition."""
    return {TopicPartition(each.message.topic, each.message.partition): each.message.offset + 1 for each in batch}


def _places(batch: list[RecordResult]) -> str:
    """Return which records these are, for a person."""
    offsets: dict[str, list[int]] = {}
    for each in batch:
        offsets.setdefault(each.message.topic, []).append(each.message.offset)
    return ", ".join(f"{topic} offset {min(each)} to {max(each)}" for topic, each in offsets.items())


async def _nothing(_: Packing) -> None:
    return None


class Lanes:
    """The lanes of the partitions that a stage owns: they bring results to the broker, in the order they are given."""

    def __init__(
        self, owner: Owner, make_fence: Callable[[int], Fence], make_rows: Callable[[int], Restores | None]
    ) -> None:
        self.outstanding = 0
        """Records given whose offsets are not committed yet."""
        self._owner = owner
        self._make_fence = make_fence
        self._make_rows = make_rows
        self._lanes: dict[int, Lane] = {}
        self._parked: dict[int, asyncio.Task[None]] = {}
        """The closing of each lane that was parked."""
        self._room = asyncio.Event()

    async def deliver(self, result: RecordResult) -> None:
        """Queue one result on its partition's lane; wait where too many are outstanding."""
        lanes = self._lanes
        while self.outstanding >= self._owner.spec.tuning.in_flight and lanes is self._lanes:
            self._room.clear()
            for each in lanes.values():
                each.hurry()
            await self._room.wait()
        lane = self._lanes.get(result.message.partition)
        if lanes is self._lanes and lane is not None and not self._owner.dropped(result.message):
            self.outstanding += 1
            lane.put(result)

    async def begin(self, partitions: set[int]) -> None:
        """Own these partitions and no other: close the lanes there are, which settle nothing more, and open theirs."""
        await self.stop()
        self._lanes = {partition: self._open(partition) for partition in sorted(partitions)}

    def _open(self, partition: int) -> Lane:
        lane = Lane(self._owner, self._make_fence(partition), self._make_rows(partition), self._committed)
        lane.start()
        return lane

    def park(self, partition: int) -> None:
        """Close one lane: what it had open is ended at the broker, what it held is released by nobody."""
        if (lane := self._lanes.pop(partition, None)) is None:
            return
        self.outstanding -= lane.outstanding
        lane.give_up()
        self._room.set()
        self._parked[partition] = asyncio.get_running_loop().create_task(lane.close())

    async def reopen(self, partition: int) -> None:
        """Open a parked partition's lane again, once the old one is closed, and wait until its fence is open."""
        lanes = self._lanes
        if (closing := self._parked.get(partition)) is not None:
            await asyncio.wait((closing,))
        if lanes is self._lanes and self._parked.pop(partition, None) is not None:
            lanes[partition] = self._open(partition)
            await lanes[partition].opened.wait()

    async def fenced(self) -> None:
        """Wait until every lane's fence is open: no former owner can write, and what is committed stands still."""
        await asyncio.gather(*(lane.opened.wait() for lane in self._lanes.values()))

    async def ready(self, partition: int) -> None:
        """Wait until the partition's rows are restored, and records of it may be taken."""
        if (lane := self._lanes.get(partition)) is not None:
            await lane.restored.wait()

    def is_restored(self, partition: int) -> bool:
        """Tell whether records of a partition may be taken; no other worker's partition is waited for."""
        lane = self._lanes.get(partition)
        return lane is None or lane.restored.is_set()

    def is_restoring(self, partition: int) -> bool:
        """Tell whether a partition is fenced, and what it goes by is being read."""
        lane = self._lanes.get(partition)
        return lane is not None and lane.opened.is_set() and not lane.restored.is_set()

    def is_ready(self) -> bool:
        """Tell whether every lane is restored."""
        return all(lane.restored.is_set() for lane in self._lanes.values())

    def give_up(self) -> None:
        """Let every lane settle and release nothing any more."""
        for lane in self._lanes.values():
            lane.give_up()
        self.outstanding = 0
        self._room.set()

    def end(self) -> None:
        """Have every lane commit what comes at once: nothing more is taken in."""
        for lane in self._lanes.values():
            lane.end()

    async def stop(self) -> None:
        """Close every lane."""
        self.give_up()
        lanes, self._lanes = self._lanes, {}
        parked, self._parked = self._parked, {}
        closing = (*(lane.close() for lane in lanes.values()), *parked.values())
        await asyncio.gather(*closing, return_exceptions=True)
        self.outstanding = 0

    def _committed(self, records: int) -> None:
        self.outstanding -= records
        self._room.set()
