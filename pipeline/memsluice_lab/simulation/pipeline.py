"""The pipeline of one history: its world, its store and its stages, on the scheduler."""

import random
from dataclasses import dataclass
from typing import Any, Final

from memsluice_lab.simulation.scheduler import Scheduler
from memsluice_lab.simulation.staging import Staging
from memsluice_lab.simulation.worker import Worker
from memsluice_lab.simulation.world import World

EVENTS: Final = 220
"""Events of one history, commands and repetitions included."""
CALM: Final = 0.15
PATIENT: Final = 0.7
POLICIES: Final = {"plain": 6, "strict": 3, "shipped": 1}


@dataclass(frozen=True, slots=True)
class Options:
    """What a history is made of."""

    events: int = EVENTS
    faults_min: int = 3
    faults_max: int = 8
    trace: bool = False
    drop: frozenset[int] = frozenset()
    """Numbers of faults that are left out, to shrink a failing history."""


class Pipeline(Scheduler):
    """What faults shake: everything but the events."""

    def __init__(self, seed: int, options: Options | None = None) -> None:
        self.options = options or Options()
        chance = random.Random(f"history/{seed}")  # noqa: S311 - a history that can be played again
        super().__init__(chance, trace=self.options.trace)
        self.seed = seed
        self.policy = chance.choices(tuple(POLICIES), tuple(POLICIES.values()))[0]
        self.world = World(self.policy)
        self.staging = Staging(self, self.world)
        self.store = self.staging.store
        self.published = 0
        self.calm = chance.random() < CALM
        """Whether its faults leave no late writes to the store: then store and log agree before anything is mended."""
        self.eagerness = chance.choice((0.02, 0.06, 0.2))
        self.pace_s = chance.choice((0.3, 0.3, 2.0))
        self.patient = chance.random() < PATIENT
        """Whether its faults come to their own end, takeovers after long pauses among them."""
        self.starving = chance.choice((0.0, 0.005, 0.02))

    def make(self, stage: str, worker: Worker) -> Any:
        """Return a process's stage object."""
        return self.staging.make(stage, worker)

    def may_publish(self) -> bool:
        """Whether there are events left."""
        return self.published < self.options.events
