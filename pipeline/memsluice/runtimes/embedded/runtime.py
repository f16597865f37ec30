"""Moves records through *seal*, *screen* and *land* in one process, each step one transaction.

A step is: read a batch, let the stage decide, then in **one** transaction append the outputs, apply the row changes and
move the position. A crash before the commit leaves nothing behind and the step is done again; a crash after it finds
the step done. *land* writes to the vector store before the transaction: the store's writes are idempotent by design.
An output carries its input's append time, so that a step done again gives the same records to the last byte.
"""

import heapq
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memsluice.deployment.local_log import LocalLog
from memsluice.errors import StateError
from memsluice.events.records import Headers, Output, Record
from memsluice.stages.base import BatchStage, StatefulStage
from memsluice.topics.names import ACCEPTED, COMMANDS, EVENTS, PARTITIONS, SEALED, STORE

SEAL, SCREEN, LAND = "seal", "screen", "land"
INPUTS: dict[str, tuple[str, ...]] = {SEAL: (EVENTS, COMMANDS), SCREEN: (SEALED,), LAND: (ACCEPTED,)}
RETENTION_MS: dict[str, int] = {EVENTS: 7 * 86_400_000, COMMANDS: 7 * 86_400_000, SEALED: 7 * 86_400_000}
"""What :meth:`Embedded.retain` deletes once consumed; accepted, quarantine, audit and dead letters are kept."""
RETAIN_EVERY_MS = 86_400_000

Hook = Callable[[str], None]
Listener = Callable[["StepReport"], None]


@dataclass(frozen=True, slots=True)
class StepLimits:
    """Largest batch of each stage, in records (1 to 1,024)."""

    seal: int = 256
    screen: int = 64
    land: int = 256


@dataclass(frozen=True, slots=True)
class Task:
    """One stage with something to do. ``partition`` is None for the batched stages: they take from all partitions."""

    stage: str
    partition: int | None
    waiting: int


@dataclass(frozen=True, slots=True)
class StepReport:
    """One committed step: the stage, the records it consumed and each one's outputs, aligned."""

    stage: str
    records: Sequence[Record]
    outputs: Sequence[Sequence[Output]]


class Scheduler(Protocol):
    """Decides which stage runs next, and how much it takes."""

    def choose(self, tasks: Sequence[Task], limits: StepLimits) -> tuple[Task, int]:
        """Return one of ``tasks`` (never empty) and the batch size."""


class RoundRobin:
    """Downstream first, so that an event is through before the next one comes in; full batches."""

    def choose(self, tasks: Sequence[Task], limits: StepLimits) -> tuple[Task, int]:
        """Return the task furthest downstream."""
        task = max(tasks, key=lambda task: ((SEAL, SCREEN, LAND).index(task.stage), -(task.partition or 0)))
        return task, getattr(limits, task.stage)


class SeededScheduler:
    """Any order and any batch size, reproducible from a seed: for simulation."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a schedule, not a secret

    def choose(self, tasks: Sequence[Task], limits: StepLimits) -> tuple[Task, int]:
        """Return a random task and a random batch size."""
        task = self._random.choice(tasks)
        return task, self._random.randint(1, getattr(limits, task.stage))


def _ignore(_: object) -> None:
    return None


class Embedded:
    """The embedded runtime. Not thread-safe; one process at a time steps a file (a second one raises StateError).

    ``land`` None leaves memory.accepted.v1 unread (experiments that look at verdicts only). ``now_ms`` is the append
    clock (Unix ms). ``hook`` is called with the name of every point inside a step at which a crash would be
    interesting; a simulation raises from it. ``listener`` is told every committed step.
    """

    def __init__(
        self,
        path: Path | str,
        *,
        seal: BatchStage,
        screen: StatefulStage,
        land: BatchStage | None,
        now_ms: Callable[[], int],
        partitions: int = PARTITIONS,
        durable: bool = True,
        scheduler: Scheduler | None = None,
        limits: StepLimits | None = None,
        hook: Hook = _ignore,
        listener: Listener = _ignore,
    ) -> None:
        self.log = LocalLog(path, partitions=partitions, durable=durable)
        self._batched: dict[str, BatchStage] = {SEAL: seal} | ({LAND: land} if land is not None else {})
        self._screen = screen
        self._now_ms = now_ms
        self._scheduler = scheduler or RoundRobin()
        self._limits = limits or StepLimits()
        self._hook = hook
        self._listener = listener
        self._retained_ms: int | None = None
        self._positions: dict[tuple[str, str, int], int] = {}
        for stage in self._stages():
            for topic in INPUTS[stage]:
                for partition in range(partitions):
                    self._positions[stage, topic, partition] = self.log.position(stage, topic, partition)

    def _stages(self) -> Iterator[str]:
        yield from (stage for stage in (SEAL, SCREEN, LAND) if stage == SCREEN or stage in self._batched)

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        append_ms: int | None = None,
        partition: int | None = None,
    ) -> tuple[int, int]:
        """Append one record durably; return (partition, offset). ``append_ms`` None: the injected clock's time."""
        stamp = self._now_ms() if append_ms is None else append_ms
        return self.log.append(topic, key, value, headers, append_ms=stamp, partition=partition)

    def read(self, topic: str, from_offset: int = 0, *, partition: int | None = None) -> Iterator[Record]:
        """Yield a topic's records, partition by partition."""
        return self.log.read(topic, from_offset, partition=partition)

    def close(self) -> None:
        """Close the log."""
        self.log.close()

    def tasks(self) -> list[Task]:
        """Return every stage (and partition) with records waiting."""
        found = []
        for stage in self._stages():
            waiting = [
                (partition, sum(self._waiting(stage, topic, partition) for topic in INPUTS[stage]))
                for partition in range(self.log.partitions)
            ]
            if stage == SCREEN:
                found += [Task(stage, partition, count) for partition, count in waiting if count]
            elif total := sum(count for _, count in waiting):
                found.append(Task(stage, None, total))
        return found

    def _waiting(self, stage: str, topic: str, partition: int) -> int:
        return self.log.end(topic, partition) - self._positions[stage, topic, partition]

    def step(self) -> bool:
        """Do one step; return False where nothing was waiting. An error leaves the log as it was before the step."""
        tasks = self.tasks()
        if not tasks:
            return False
        task, size = self._scheduler.choose(tasks, self._limits)
        if task.partition is None:
            self._step_batch(task.stage, size)
        else:
            self._step_screen(task.partition, size)
        return True

    def run_until_idle(self, steps_max: int | None = None) -> int:
        """Step until nothing is waiting, or ``steps_max`` steps are done; return how many were.

        With nothing waiting, retention is applied: at the first time, then once a day of the injected clock.
        """
        done = 0
        while steps_max is None or done < steps_max:
            if not self.step():
                self._retain_daily()
                break
            done += 1
        return done

    def _retain_daily(self) -> None:
        now_ms = self._now_ms()
        if self._retained_ms is None or now_ms - self._retained_ms >= RETAIN_EVERY_MS:
            self._retained_ms = now_ms
            self.retain()

    def _take(self, stage: str, size: int) -> list[Record]:
        """Return the next records of all the stage's inputs, merged by append time; each partition keeps its order."""
        lanes = [
            self.log.fetch(topic, partition, self._positions[stage, topic, partition], size)
            for topic in INPUTS[stage]
            for partition in range(self.log.partitions)
            if self._waiting(stage, topic, partition)
        ]
        merged = heapq.merge(*lanes, key=lambda record: record.timestamp_ms)
        return [record for record, _ in zip(merged, range(size), strict=False)]

    def _check_position(self, stage: str, record: Record) -> None:
        """Raise StateError where another process moved on, or an offset was skipped (pair of :meth:`_advance`)."""
        stored = self.log.position(stage, record.topic, record.partition)
        if stored != record.offset:
            raise StateError(
                f"{stage} expected offset {stored} of {record.topic}[{record.partition}], read {record.offset}"
            )

    def _advance(self, stage: str, record: Record) -> None:
        self.log.advance(stage, record.topic, record.partition, record.offset + 1)

    def _committed(self, stage: str, records: Sequence[Record], outputs: Sequence[Sequence[Output]]) -> None:
        for record in records:
            self._positions[stage, record.topic, record.partition] = record.offset + 1
        self._hook(f"{stage}:committed")
        self._listener(StepReport(stage, records, outputs))

    def _step_batch(self, stage: str, size: int) -> None:
        records = self._take(stage, size)
        self._hook(f"{stage}:read")
        outputs = self._batched[stage].process(records)
        if len(outputs) != len(records):
            raise StateError(f"{stage} gave {len(outputs)} results for {len(records)} records")
        self._hook(f"{stage}:processed")
        with self.log.transaction():
            for record, produced in zip(records, outputs, strict=True):
                self._check_position(stage, record)
                for output in produced:
                    self.log.put(output, record.timestamp_ms)
                self._hook(f"{stage}:outputs")
                self._advance(stage, record)
            self._hook(f"{stage}:commit")
        self._committed(stage, records, outputs)

    def _step_screen(self, partition: int, size: int) -> None:
        records = self.log.fetch(SEALED, partition, self._positions[SCREEN, SEALED, partition], size)
        rows, outputs = self.log.rows(partition), []
        try:
            with self.log.transaction():
                for record in records:
                    self._check_position(SCREEN, record)
                    step = self._screen.process(record, rows)
                    self._hook(f"{SCREEN}:processed")
                    for change in step.changes:
                        rows.apply(change)
                    self._hook(f"{SCREEN}:changes")
                    for output in step.outputs:
                        self.log.put(output, record.timestamp_ms)
                    self._hook(f"{SCREEN}:outputs")
                    self._advance(SCREEN, record)
                    outputs.append(step.outputs)
                self._hook(f"{SCREEN}:commit")
        except BaseException:
            self._screen.forget(partition)  # its cache may hold rows that were rolled back
            raise
        self._committed(SCREEN, records, outputs)

    def retain(self) -> int:
        """Apply retention (stated in ``RETENTION_MS``) and compaction; return how many records were deleted."""
        removed, now = self.log.compact(STORE), self._now_ms()
        for topic, keep_ms in RETENTION_MS.items():
            stage = SCREEN if topic == SEALED else SEAL

            def consumed(partition: int, stage: str = stage, topic: str = topic) -> int:
                return self.log.position(stage, topic, partition)

            removed += self.log.prune(topic, before_ms=now - keep_ms, consumed_to=consumed)
        return removed
