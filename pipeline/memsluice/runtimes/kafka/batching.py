"""Batch stages: whatever has arrived goes to a thread of the stage as soon as one is free.

So an idle stage adds no waiting, and batches grow by themselves with the load. While one batch's results are being
sent, the next one is already in a thread; results are handed on in the order in which their batches were taken.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from memsluice.errors import StateError
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.runner import LOG, RecordResult, StageRunner, to_record
from memsluice.runtimes.kafka.spec import Stage, StageSpec
from memsluice.runtimes.kafka.thread import StageThreads
from memsluice.stages.base import Waits

_Item = tuple[int, Any]
"""Generation and message."""
_UnderWay = tuple[list[_Item], "asyncio.Future[Any]"]
"""A batch, and what its thread will return."""


class BatchRunner(StageRunner):
    """Runs a :class:`~memsluice.stages.base.BatchStage`."""

    def __init__(self, spec: StageSpec, stage: Stage, faults: Faults) -> None:
        super().__init__(spec, stage, faults)
        self._queue: deque[_Item] = deque()  # bounded by _take
        self._arrived = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        self._threads = StageThreads(f"stage-{spec.name}", self.tuning.threads)
        self._free = asyncio.Semaphore(self.tuning.threads)
        self._under_way: asyncio.Queue[_UnderWay] = asyncio.Queue()  # bounded by _free

    async def stop(self) -> None:
        """Cancel the tasks; the threads end after the calls they are in, which nobody waits for."""
        await super().stop()
        self._end_waits()
        self._threads.close()

    def _abandon(self) -> None:
        super()._abandon()
        self._end_waits()

    def _end_waits(self) -> None:
        if isinstance(self.stage, Waits):
            self.stage.give_up()

    async def _take(self, message: Any) -> None:
        generation = self.generation
        while len(self._queue) >= (1 + self.tuning.threads) * self.tuning.batch_size and generation == self.generation:
            self._room.clear()
            await self._room.wait()
        if self._closed_to(generation):
            if generation == self.generation:
                self._give_up(message)
            return
        self._queue.append((generation, message))
        self._arrived.set()

    def _drop_queued(self) -> None:
        queue, self._queue = self._queue, deque()
        for generation, message in queue:
            if generation == self.generation:
                self._give_up(message)
        self._room.set()

    def _give_up(self, message: Any) -> None:
        self.app.consumer.untrack(message)
        self._let_go()

    def _new_generation(self) -> None:
        super()._new_generation()
        self._queue.clear()
        self._room.set()

    def _jobs(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return (self._batches, self._hand_on)

    async def _batches(self) -> None:
        """Give batches to free threads."""
        was_full = False
        while True:
            await self._free.acquire()
            items: list[_Item] = []
            while not items:
                items = await self._next_batch(linger=was_full)
            was_full = len(items) >= self.tuning.batch_size
            records = [to_record(message) for _, message in items]
            self._under_way.put_nowait((items, self._threads.submit(self.stage.process, records)))

    async def _hand_on(self) -> None:
        """Hand on what the threads returned, batch after batch."""
        while True:
            items, returned = await self._under_way.get()
            try:
                outputs = await returned
            except Exception as error:
                if items[-1][0] == self.generation:
                    raise
                LOG.info("a batch that was given up has ended", stage=self.spec.name, why=type(error).__name__)
                continue
            finally:
                self._free.release()
            if len(outputs) != len(items):
                raise StateError(f"stage {self.spec.name} returned {len(outputs)} results for {len(items)} records")
            for (generation, message), results in zip(items, outputs, strict=True):
                if generation != self.generation:
                    break
                await self._results.put(RecordResult(message, generation, results))

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
            generation, message = self._queue.popleft()
            if generation == self.generation:
                items.append((generation, message))
                size += len(message.key or b"") + len(message.value or b"")
        self._room.set()
        return items
