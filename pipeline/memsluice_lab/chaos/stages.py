"""A scene with one worker a stage, and the traffic of a round: what taints, replaces, removes, and what does not."""

import os
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from memsluice.client.requests import Session
from memsluice.errors import StackError
from memsluice_lab.chaos.following import Verdicts
from memsluice_lab.chaos.nemesis import Nemesis
from memsluice_lab.chaos.proxy import Proxy
from memsluice_lab.chaos.workload import Workload, tenants_apart
from memsluice_lab.chaos.zombies import Scene, of_tree
from memsluice_lab.figures.accounted import unhurried
from memsluice_lab.figures.bed import STAGES, Bed, Worker, bed
from memsluice_lab.figures.registry import Setting

TENANTS = 7
"""Each on a partition of its own; one partition has none."""
SESSIONS = 10
TAINTED = 30
"""Of all sessions of a round: those that were opened first are the likeliest in the hands of who was struck."""
KEYS = 12
KEPT = 4_000
"""Sessions and entries of earlier rounds that later ones come back to."""


@dataclass(slots=True)
class Company:
    """Who works at each stage, and what was opened and written so far."""

    scene: Scene
    chance: random.Random
    owners: dict[str, Worker] = field(default_factory=dict)
    sessions: list[Session] = field(default_factory=list)
    fresh: list[Session] = field(default_factory=list)
    """Opened in this round, before whoever is struck; some read the web in its second half."""
    entries: list[str] = field(default_factory=list)
    proxy: Proxy | None = None
    """What stands between workers and servers, where something does."""
    _joined: int = 0

    def crew(self, stage: str) -> list[Worker]:
        """Return who works at a stage."""
        return [worker for worker in self.scene.bed.workers if worker.stages == (stage,)]

    def join(self, stage: str) -> Worker:
        """Start one more worker of a stage, on a disk of its own."""
        self._joined += 1
        return self.scene.start(stage, f"j{self._joined}")

    def settled(self, worker: Worker) -> Worker:
        """Wait until a worker has partitions. Raises StackError where it gets none."""
        (stage,) = worker.stages
        if not self.scene.joined(stage, worker.replica):
            ended = self.scene.ended or "it still runs"
            raise StackError(f"{stage} {worker.replica} was given no partitions; {ended}")
        return worker

    def staff(self, replica: str) -> None:
        """Start a worker of every stage and wait until each has partitions. Raises StackError where one gets none."""
        for stage in STAGES:
            self.owners[stage] = self.scene.start(stage, replica)
        for stage in STAGES:
            self.settled(self.owners[stage])

    def replace_ended(self) -> list[str]:
        """Start a worker for each that has ended by itself, as whoever runs them does; return who they were."""
        self.scene.alive()
        ended = self.scene.dismiss()
        for stage, worker in list(self.owners.items()):
            if worker not in self.scene.bed.workers:
                self.owners[stage] = self.scene.start(stage, worker.replica)
        return [f"{name} ended with {code}" for name, code in ended.items()]

    def before(self) -> None:
        """Open sessions, write in them and in older ones, under keys and without."""
        work = self.scene.work
        opened = [session for tenant in work.tenants for session in work.open(tenant, SESSIONS)]
        self.fresh += opened
        work.settle()  # what a session did follows its opening in the log
        for session in opened[::3]:
            self.entries.append(work.write(session))
        for session in self._older(SESSIONS):
            work.write(session)
            work.recall(session)
        writers = {session.tenant: session for session in opened}
        for tenant, session in writers.items():
            self.entries += [work.write(session, "web", key=f"{tenant}-{number}") for number in range(KEYS)]
        self.scene.said()

    def after(self) -> None:
        """Taint some of what was opened, replace and remove what was written, and go on writing in it."""
        work = self.scene.work
        tainted = self.chance.sample(self.fresh, min(TAINTED, len(self.fresh) // 2))
        for session in tainted:
            work.taint(session)
        work.settle()
        for session in tainted:
            work.write(session)
        writers = {session.tenant: session for session in self.fresh}
        for tenant, session in writers.items():
            for number in range(0, KEYS, 2):
                self.entries.append(work.write(session, "web", key=f"{tenant}-{number}"))
        self.scene.said()
        for event_id in self.chance.sample(self.entries, min(KEYS, len(self.entries))):
            work.withdraw(event_id)
        self.scene.said()
        self.sessions = [*self.sessions, *self.fresh][-KEPT:]
        self.fresh = []
        self.entries = self.entries[-KEPT:]

    def light(self) -> None:
        """Say one thing in each tenant but the last: what is quiet shows what busy ones hide."""
        for tenant in self.scene.work.tenants[:-1]:
            self.scene.work.open(tenant, 1)
        self.scene.said()

    def _older(self, number: int) -> list[Session]:
        return self.chance.sample(self.sessions, min(number, len(self.sessions)))


@contextmanager
def company(setting: Setting, run: str, seed: int) -> Iterator[Company]:
    """Yield a stack of its own with one worker a stage. Raises StackError."""
    with bed(setting, policy=unhurried()) as running:
        nemesis = Nemesis(running)
        with staffed(running, nemesis, run, seed, of_tree(os.environ)) as made:
            yield made


@contextmanager
def staffed(running: Bed, nemesis: Nemesis, run: str, seed: int, environment: Mapping[str, str]) -> Iterator[Company]:
    """Yield one worker a stage on a stack, with these variables, and tenants of their own. Raises StackError."""
    work = Workload(running, tenants_apart(run, TENANTS), run)
    scene = Scene(running, work, Verdicts(running), nemesis, environment)
    try:
        made = Company(scene, random.Random(seed))  # noqa: S311 - chooses victims and moments, guards nothing
        made.staff("a")
        yield made
    finally:
        _leave(scene)


def _leave(scene: Scene) -> None:
    """Close what is the scene's own; the bed closes itself."""
    scene.nemesis.close()
    scene.work.close()
    scene.verdicts.close()


def everything(made: Company, seconds_max: float) -> bool:
    """Wait until all that was said is decided."""
    return made.scene.verdicts.until(set(made.scene.work.said), seconds_max, made.scene.alive)
