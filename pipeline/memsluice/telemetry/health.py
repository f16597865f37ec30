"""Whether a worker is alive and ready, from its stages' progress and what it depends on.

*Alive* means that committed offsets advance while there is something to commit and what the stage depends on answers
and does not refuse it: a restart mends a worker that is stuck, and no broker and no store. *Ready* means that every
stage has joined its group, recovered its state and takes records, and that broker and store answer and take writes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from memsluice.runtimes.kafka.broker_watch import Dependency
from memsluice.runtimes.kafka.progress import StageProgress

STALL_S = 300.0
"""A partition with a lag whose commit stands still for longer is stuck. Time in which its broker or its store does not
answer, or refuses, is not counted, nor the time before: it begins anew when they do. Nor is time in which what it goes
by is being restored: a restart would begin that from the start."""
SILENT_S = 30.0
"""A worker whose event loop has reported nothing for longer is stuck, whatever its commits were."""

_Partition = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class StageProblem:
    """One thing that is wrong: which stage, and what, in words for an operator."""

    stage: str
    problem: str


class Health:
    """What is known of one worker, and of what it depends on, which ``depends`` returns. Times in monotonic s."""

    def __init__(
        self,
        stages: Sequence[str],
        now_s: float,
        *,
        stall_s: float = STALL_S,
        depends: Callable[[], Sequence[Dependency]] = tuple,
    ) -> None:
        self._stages = tuple(stages)
        self._depends = depends
        self._stall_s = stall_s
        self._reported_s = now_s
        self._latest: dict[str, StageProgress] = {}
        self._moved: dict[_Partition, tuple[int | None, float]] = {}

    def report(self, stages: Sequence[StageProgress], now_s: float) -> None:
        """Take in a snapshot of all stages."""
        self._reported_s = now_s
        self._latest = {stage.stage: stage for stage in stages}
        moved: dict[_Partition, tuple[int | None, float]] = {}
        depends = self._depends()
        for stage in stages:
            waits = stage.refused_s > 0 or any(one.stops(stage.stage) for one in depends)
            for row in stage.partitions:
                key = (stage.stage, row.topic, row.partition)
                committed, since = self._moved.get(key, (row.committed, now_s))
                still = row.committed == committed and row.is_due and not (waits or row.restoring)
                moved[key] = (row.committed, since if still else now_s)
        self._moved = moved

    def not_alive(self, now_s: float) -> tuple[StageProblem, ...]:
        """Return what shows that the worker is stuck; empty while it is alive."""
        silent = now_s - self._reported_s
        if silent > SILENT_S:
            return (StageProblem("worker", f"its event loop has reported nothing for {silent:.0f} s"),)
        return tuple(
            StageProblem(
                stage, f"{topic}/{partition} has a lag and its commit has stood still for {now_s - since:.0f} s"
            )
            for (stage, topic, partition), (_, since) in sorted(self._moved.items())
            if now_s - since > self._stall_s
        )

    def not_ready(self, now_s: float) -> tuple[StageProblem, ...]:
        """Return why the worker takes no records; empty when every stage does."""
        found = [StageProblem(one.name, problem) for one in self._depends() if (problem := one.problem())]
        found += self.not_alive(now_s)
        for name in self._stages:
            stage = self._latest.get(name)
            if stage is None or not stage.ready:
                found.append(StageProblem(name, "has not joined its group, or recovers its state"))
            elif stage.refused_s > 0:
                found.append(StageProblem(name, f"what it writes to has been refusing it for {stage.refused_s:.0f} s"))
        return tuple(found)
