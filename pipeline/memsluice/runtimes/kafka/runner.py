"""What a batch stage and a stateful stage have in common: taking records in, sending results out, draining.

A record is *held* from the moment it is accepted until its offset may be committed. The generation goes up with every
assignment; whatever belongs to an older one is dropped and never acknowledged.
"""

import asyncio
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memsluice.errors import StateError
from memsluice.events.records import Output, Record
from memsluice.log import get_logger, said
from memsluice.runtimes.kafka.acker import Acker
from memsluice.runtimes.kafka.faults import AFTER_CHANGELOG, AFTER_OUTPUT, AFTER_PROCESS, Faults
from memsluice.runtimes.kafka.gaps import GapDetector
from memsluice.runtimes.kafka.spec import Stage, StageSpec
from memsluice.runtimes.kafka.tracked_table import TrackedTable, TrackedWrite

LOG = get_logger(__name__)


@dataclass(slots=True)
class RecordResult:
    """What one record led to, on its way to the broker."""

    message: Any
    generation: int
    outputs: Sequence[Output]
    write: TrackedWrite | None = None


def to_record(message: Any) -> Record:
    """Return Faust's message as a stage sees it: raw bytes, every header, the log-append time."""
    return Record(
        topic=message.topic,
        partition=message.partition,
        offset=message.offset,
        key=message.key,
        value=message.value,
        headers=tuple(message.headers or ()),
        timestamp_ms=round(message.timestamp * 1000),
    )


class StageRunner(ABC):
    """Drives one stage inside one app. Everything but a batch stage's ``process`` runs on the event loop."""

    def __init__(self, spec: StageSpec, stage: Stage, faults: Faults) -> None:
        self.spec = spec
        self.stage: Any = stage
        self.tuning = spec.tuning
        self.fetch_wait_s = spec.tuning.fetch_wait_s
        self.faults = faults
        self.app: Any = None
        self.table: TrackedTable | None = None
        self.generation = 0
        self.held = 0
        self.draining = True
        self.failure: BaseException | None = None
        self.failed = asyncio.Event()
        self.acker = Acker(self._release, self.fail)
        self._gaps = GapDetector()
        self._results: asyncio.Queue[RecordResult] = asyncio.Queue(maxsize=spec.tuning.in_flight)
        self._tasks: list[asyncio.Task[None]] = []
        self._quiet = asyncio.Event()
        self._outputs = frozenset(spec.outputs)
        self._taken: dict[Any, deque[int]] = {}
        """Append times of the records held, a partition each; released in the order in which they were taken."""

    # --- life cycle ---

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

    def fail(self, error: BaseException) -> None:
        """End the worker loudly; nothing is acknowledged from here on."""
        if self.failure is not None:
            return
        self.failure = error
        self.acker.close()
        LOG.critical("stage failed", stage=self.spec.name, error=said(error), held=self.held)
        self.failed.set()
        self._quiet.set()

    # --- the assignment ---

    def begin(self, partitions: set[int]) -> None:
        """Start a generation: nothing of the one before is acknowledged any more."""
        self._new_generation()
        self._forget(partitions)
        self.draining = False

    def revoked(self, partitions: set[int]) -> None:
        """Drop what is left after the drain."""
        self._new_generation()
        self._forget(partitions)

    async def drain(self) -> None:
        """Take no more records; wait at most ``drain_s`` for those in work, then give them up (they are read again)."""
        self.draining = True
        self._drop_queued()
        if self.held and self.failure is None:
            self._quiet.clear()
            try:
                await asyncio.wait_for(self._quiet.wait(), self.tuning.drain_s)
            except TimeoutError:
                self._abandon()

    def _abandon(self) -> None:
        if self.acker.outstanding:  # nothing of ours may reach the log after what the next owner sends
            self.app.producer.poison(StateError(f"{self.acker.outstanding} records with unconfirmed sends given up"))
            return
        LOG.warning("records given up, to be read again", stage=self.spec.name, records=self.held)
        self._new_generation()

    def _new_generation(self) -> None:
        self.generation += 1
        self.held = 0
        if self.failure is None:
            self.acker.clear()
        self._gaps.clear()
        self._taken.clear()

    def oldest_ms(self) -> int | None:
        """Return the append time (Unix ms) of the oldest record held, or None."""
        return min((times[0] for times in self._taken.values() if times), default=None)

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
        if not self._gaps.knows(message.tp) and not self._closed_to(self.generation):
            await self._start_partition(message)
        if self._closed_to(self.generation) or not self._gaps.knows(message.tp):
            self.app.consumer.untrack(message)
        elif self._gaps.see(message.tp, message.offset):
            self.held += 1
            self._taken.setdefault(message.tp, deque()).append(round(message.timestamp * 1000))
            await self._take(message)
        else:
            self.app.consumer.untrack(message)  # the first copy is in work

    async def _start_partition(self, message: Any) -> None:
        generation = self.generation
        base, committed = await self.app.consumer.base_offset(message.tp)
        if generation == self.generation:
            # A log's start moves with retention; a record below it was there a moment ago and is no repetition.
            self._gaps.start(message.tp, base if committed else min(base, message.offset))

    def _closed_to(self, generation: int) -> bool:
        return self.draining or self.failure is not None or generation != self.generation

    # --- out ---

    async def _emit(self) -> None:
        """Send results in order. Outputs follow their confirmed changelog: no verdict is seen before it is durable."""
        while True:
            result = await self._results.get()
            await self.acker.below(self.tuning.in_flight)
            if result.generation != self.generation:
                continue
            if result.write is not None and not await self._confirm(result, result.write):
                continue
            await self.faults.reach(AFTER_PROCESS)
            sends = [await self._send(output) for output in result.outputs]
            if result.generation == self.generation:
                self.acker.add(result.message, sends)
                await self.faults.reach(AFTER_OUTPUT, sends)

    async def _confirm(self, result: RecordResult, write: TrackedWrite) -> bool:
        for future in write.futures:
            await future
        if result.generation != self.generation or self.table is None:
            return False
        self.table.settle(write)
        await self.faults.reach(AFTER_CHANGELOG)
        return True

    async def _send(self, output: Output) -> "asyncio.Future[Any]":
        if output.topic not in self._outputs:
            raise StateError(f"stage {self.spec.name} may not send to {output.topic}")
        future: asyncio.Future[Any] = await self.app.producer.append(
            output.topic, output.partition, output.key, output.value, output.headers
        )
        return future

    def _release(self, message: Any) -> None:
        self.app.consumer.release(message)
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

    def _jobs(self) -> Sequence[Callable[[], Awaitable[None]]]:
        return ()

    def _forget(self, partitions: set[int]) -> None:  # noqa: B027 - a batch stage caches nothing
        """Drop what is cached of these partitions."""
