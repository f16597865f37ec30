"""How a worker's stages get on: their commits, the logs' ends, what they hold. What liveness and readiness go by."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from memsluice.envelope.partition_orders import PartitionState


@dataclass(frozen=True, slots=True)
class PartitionProgress:
    """One assigned input partition. ``committed`` and ``end`` are next offsets; None while unknown.

    ``taken``: records taken in and not committed. ``restoring``: none is taken yet, what it goes by is being read.
    """

    stage: str
    topic: str
    partition: int
    committed: int | None
    end: int | None
    taken: int = 0
    restoring: bool = False

    @property
    def lag(self) -> int | None:
        """Records that are in the log and not committed."""
        return None if self.committed is None or self.end is None else max(0, self.end - self.committed)

    @property
    def is_due(self) -> bool:
        """Whether there is something to commit: also the first records of a partition that never was."""
        return bool(self.lag) or (self.committed is None and self.taken > 0)


@dataclass(frozen=True, slots=True)
class StageProgress:
    """One stage of this process. ``parked`` are the partitions that stand still by themselves, which are not among
    ``partitions``: they are no sign that the stage is stuck.

    ``ready``: it has joined its group, its state is recovered and it takes records. ``oldest_ms`` is the append time
    (Unix ms) of the oldest record taken in and not committed, None where there is none. ``refused_s``: for how long
    what it writes to has been refusing it.
    """

    stage: str
    ready: bool
    oldest_ms: int | None
    partitions: tuple[PartitionProgress, ...]
    parked: tuple[PartitionState, ...] = ()
    refused_s: float = 0.0
    waiting: tuple[tuple[int, int], ...] | None = None
    """Events that wait in the overflow, of each partition; None: the stage has none."""
    waiting_since_ms: int | None = None
    """When the one of them that goes on next was appended to its intake topic (Unix ms)."""


def stage_progress(app: Any) -> StageProgress:
    """Return the progress of an app's stage."""
    runner = app.runner
    rows = tuple(row for row in progress(app) if row.partition not in runner.parked)
    parked, overflow = tuple(runner.parked.values()), runner.overflow
    return StageProgress(
        runner.spec.name,
        runner.is_ready(),
        runner.oldest_ms(),
        rows,
        parked,
        refused_s=runner.refused_s(),
        waiting=None if overflow is None else tuple(overflow.waiting().items()),
        waiting_since_ms=None if overflow is None else overflow.oldest_ms(),
    )


def progress(app: Any) -> Sequence[PartitionProgress]:
    """Return the progress of every input partition assigned to ``app``, sorted; empty before the first assignment.

    ``committed`` is what this process committed, or found committed, since it started.
    """
    consumer = app.consumer
    if not consumer.started or not app.topics.acking_topics:
        return ()
    runner = app.runner
    spec, found = runner.spec, []
    for tp in sorted(consumer.assignment()):
        if tp.topic in spec.inputs:
            try:
                committed, end = consumer._committed_offset.get(tp), consumer.highwater(tp)
            except (AssertionError, AttributeError):  # aiokafka's way to say that it is another's since a moment
                continue
            taken, restoring = runner.taken(tp), runner.lanes.is_restoring(tp.partition)
            found.append(PartitionProgress(spec.name, tp.topic, tp.partition, committed, end, taken, restoring))
    return tuple(found)
