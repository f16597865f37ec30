"""A stage's worker is paused with work in its hands, another takes over and goes on, and the first one wakes up.

To make sure that it has something in its hands, the broker hangs for a moment first: what the worker decides meanwhile
waits in its own memory for a broker that answers. Then the worker hangs, and the broker goes on.
"""

import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from memsluice.events.models import Zone
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics import names
from memsluice_lab.chaos.following import Verdicts, members, wait
from memsluice_lab.chaos.nemesis import KAFKA, Nemesis
from memsluice_lab.chaos.workload import Workload
from memsluice_lab.figures.bed import Bed, Place, Worker, tail

TREE_VARIABLE = "MEMSLUICE_CHAOS_TREE"
"""Folder ``pipeline/`` of another checkout whose code the workers run: to see what an older tree does."""
HELD_BACK_S = 1.5
"""How long the broker hangs: the worker goes on deciding what it has read."""
TAKEN_OVER_S_MAX = 180
AWAKE_S_MIN = 5
"""A worker that goes on finds out within so long that others have its partitions; what it had is sent by then."""
BACK_S_MAX = 25
ANSWERED_S_MAX = 180


def of_tree(variables: Mapping[str, str]) -> dict[str, str]:
    """Return the variables by which a worker runs another checkout's code, where one is named."""
    tree = variables.get(TREE_VARIABLE)
    return {"PYTHONPATH": tree} if tree else {}


@dataclass(slots=True)
class Scene:
    """One stack, what is said on it, who works, and what the workers' ends were."""

    bed: Bed
    work: Workload
    verdicts: Verdicts
    nemesis: Nemesis
    environment: Mapping[str, str] = field(default_factory=lambda: of_tree(os.environ))
    """Variables of the workers that are started."""
    ended: dict[str, int] = field(default_factory=dict)
    """Exit codes of workers that ended by themselves, by stage and replica."""

    def start(self, stage: str, replica: str) -> Worker:
        """Start a worker of a stage."""
        return self.bed.start(stage, replica=replica, environment=self.environment)

    def alive(self) -> bool:
        """Note which workers have ended; whether none has."""
        for worker in list(self.bed.workers):
            if worker.process.poll() is not None:
                self._note(worker)
                self.bed.workers.remove(worker)
        return not self.ended

    def answered(self, places: set[Place], seconds_max: float = ANSWERED_S_MAX) -> bool:
        """Wait until places have a verdict, unless a worker ends meanwhile."""
        return self.verdicts.until(places, seconds_max, self.alive)

    def said(self) -> set[Place]:
        """Wait for the broker's acknowledgements; return the new places."""
        return self.work.settle()

    def joined(self, stage: str, replica: str) -> bool:
        """Wait until a worker has partitions."""
        return wait(lambda: replica in members(self.bed, names.GROUPS[stage]) or not self.alive(), TAKEN_OVER_S_MAX)

    def kill(self, *workers: Worker) -> None:
        """Kill -9 those that still run; one that had ended by itself before is noted."""
        for worker in workers:
            if worker in self.bed.workers:
                self.bed.kill(worker)
                if worker.process.returncode != -signal.SIGKILL:
                    self._note(worker)

    def _note(self, worker: Worker) -> None:
        name, code = f"{worker.stages[0]}-{worker.replica}", worker.process.wait()
        self.ended[name] = code
        self.bed.setting.say(f"{name} ended with {code}:\n{tail(worker.log)}")

    def dismiss(self) -> dict[str, int]:
        """Forget who ended, and return it: what follows is another worker's."""
        ended, self.ended = self.ended, {}
        return ended

    def close(self) -> None:
        """End all that was started."""
        self.nemesis.close()
        for worker in list(self.bed.workers):
            self.bed.kill(worker)
        self.work.close()
        self.verdicts.close()
        self.bed.close()


def hand_over(scene: Scene, workers: Sequence[Worker], feed: Callable[[], None], caught: Callable[[], bool]) -> None:
    """Leave workers hanging with decided, unsent work in their hands.

    ``feed`` gives them a backlog while they hang for a moment, shorter than their groups notice; ``caught`` says when
    they have begun on that.
    """
    for worker in workers:
        scene.nemesis.pause(worker)
    try:
        feed()
    finally:
        for worker in workers:
            scene.nemesis.resume(worker)
    hang(scene, workers, caught)


def hang(scene: Scene, workers: Sequence[Worker], caught: Callable[[], bool]) -> None:
    """Stop workers once ``caught`` says that they are at work: the broker hangs first, so that it stays with them."""
    wait(lambda: caught() or not scene.alive(), ANSWERED_S_MAX, 0.005)
    scene.nemesis.pause(KAFKA)
    time.sleep(HELD_BACK_S)
    for worker in workers:
        scene.nemesis.pause(worker)
    scene.nemesis.resume(KAFKA)


def wake(scene: Scene, worker: Worker, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Let a worker go on whose partitions others have by now, and wait until it is back in the group or has ended.

    ``meanwhile`` is called again and again until then.
    """
    stage = worker.stages[0]
    scene.nemesis.resume(worker)
    began = time.monotonic()
    while (awake_s := time.monotonic() - began) < BACK_S_MAX and scene.alive():
        meanwhile()
        if awake_s > AWAKE_S_MIN and worker.replica in members(scene.bed, names.GROUPS[stage]):
            return
        time.sleep(0.2)


def sealed(scene: Scene, number: int) -> Callable[[], bool]:
    """Return a test whether so many more records are sealed than now."""
    goal = sum(scene.bed.ends(names.SEALED)) + number
    return lambda: sum(scene.bed.ends(names.SEALED)) >= goal


def lying(scene: Scene, tenant: str, zone: Zone) -> int:
    """Return how many objects of a tenant the store holds."""
    store = WeaviateStore.of(scene.bed.connection, names.WEAVIATE_ADMIN)
    try:
        return store.count(tenant, zone)
    finally:
        store.close()
