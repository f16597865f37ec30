"""Whether a worker is alive and ready, from its stages' progress. Pure: snapshots and times in, findings out.

*Alive* means that committed offsets advance while there is something to commit. *Ready* means that every stage has
joined its group, recovered its state and takes records.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from memsluice.runtimes.kafka.progress import StageProgress

STALL_S = 300.0
"""A partition with a lag whose commit stands still for longer is stuck. A store that is down for that long counts too:
the restart that follows costs nothing, since nothing was committed, and the log says what it waits for."""
SILENT_S = 30.0
"""A worker whose event loop has reported nothing for longer is stuck, whatever its commits were."""

_Partition = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class StageProblem:
    """One thing that is wrong: which stage, and what, in words for an operator."""

    stage: str
    problem: str


class Health:
    """What is known of one worker. Times are seconds of a monotonic clock."""

    def __init__(self, stages: Sequence[str], now_s: float, *, stall_s: float = STALL_S) -> None:
        self._stages = tuple(stages)
        self._stall_s = stall_s
        self._reported_s = now_s
        self._latest: dict[str, StageProgress] = {}
        self._moved: dict[_Partition, tuple[int | None, float]] = {}

    def report(self, stages: Sequence[StageProgress], now_s: float) -> None:
        """Take in a snapshot of all stages."""
        self._reported_s = now_s
        self._latest = {stage.stage: stage for stage in stages}
        moved: dict[_Partition, tuple[int | None, float]] = {}
        for stage in stages:
            for row in stage.partitions:
                key = (stage.stage, row.topic, row.partition)
                committed, since = self._moved.get(key, (row.committed, now_s))
                moved[key] = (row.committed, now_s if row.committed != committed or not row.lag else since)
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
        found = list(self.not_alive(now_s))
        for name in self._stages:
            stage = self._latest.get(name)
            if stage is None or not stage.ready:
                found.append(StageProblem(name, "has not joined its group, or recovers its state"))
        return tuple(found)
