"""How a worker's stages get on: their commits, the logs' ends, what they hold. What liveness and readiness go by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """One assigned input partition. ``committed`` and ``end`` are next offsets; None while unknown."""

    stage: str
    topic: str
    partition: int
    committed: int | None
    end: int | None

    @property
    def lag(self) -> int | None:
        """Records that are in the log and not committed."""
        return None if self.committed is None or self.end is None else max(0, self.end - self.committed)


@dataclass(frozen=True, slots=True)
class StageProgress:
    """One stage of this process.

    ``ready``: it has joined its group, its state is recovered and it takes records. ``oldest_ms`` is the append time
    (Unix ms) of the oldest record taken in and not committed, None where there is none.
    """

    stage: str
    ready: bool
    oldest_ms: int | None
    partitions: tuple[PartitionProgress, ...]


def stage_progress(app: Any) -> StageProgress:
    """Return the progress of an app's stage."""
    runner = app.runner
    ready = not runner.draining and runner.failure is None and not app.tables.recovery.in_recovery
    return StageProgress(runner.spec.name, ready, runner.oldest_ms(), tuple(progress(app)))


def progress(app: Any) -> Sequence[PartitionProgress]:
    """Return the progress of every input partition assigned to ``app``, sorted; empty before the first assignment.

    ``committed`` is what this process committed, or found committed, since it started.
    """
    consumer = app.consumer
    if not consumer.started or not app.topics.acking_topics:
        return ()
    spec = app.runner.spec
    found = []
    for tp in sorted(consumer.assignment()):
        if tp.topic in spec.inputs:
            committed, end = consumer._committed_offset.get(tp), consumer.highwater(tp)
            found.append(PartitionProgress(spec.name, tp.topic, tp.partition, committed, end))
    return tuple(found)
