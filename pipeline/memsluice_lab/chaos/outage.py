"""The store is down for minutes and the broker is restarted, both under load, and nobody does anything about it.

The load goes on all the while, the three workers run, and what every process occupies is noted: a stage that can not go
on must wait, and not collect what it was given.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from memsluice_lab.chaos import checking
from memsluice_lab.chaos.backlog import flight
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.chaos.nemesis import KAFKA, WEAVIATE
from memsluice_lab.chaos.playing import DRAINED_S_MAX, counted
from memsluice_lab.chaos.stages import Company, company, everything
from memsluice_lab.figures.bed import STAGES
from memsluice_lab.figures.registry import Setting

DOWN_S = 300.0
BEFORE = "before"
BEFORE_S = 30.0
"""Load without a fault, at the end of which the memory is what the rest is held against."""
BROKER_S = 20.0
"""Load before the broker is killed, and after it is back."""
GROWTH_MAX = 2.0
"""How many times what it occupied before a stage may occupy: what piles up in five minutes must stay on the broker."""
EVERY_S = 1.0
AT_A_TIME = 12
"""Writes a second, in older sessions and new ones."""
CAUGHT_UP = 60
"""In flight, where nothing piles up: what was just said, and commit markers."""
CAUGHT_UP_S_MAX = 300


@dataclass(slots=True)
class Watch:
    """Keeps the load up, and notes what each process occupies, by phase."""

    made: Company
    occupied: dict[str, dict[str, int]] = field(default_factory=dict)
    """The most of each process, in MiB, by phase."""
    said: int = 0

    def go_on(self, phase: str, seconds: float, done: Callable[[], bool] = lambda: False) -> float:
        """Keep the load up for so long, or until something is true; return the seconds that it took."""
        began = time.monotonic()
        while (spent_s := time.monotonic() - began) < seconds and not done():
            self._say()
            most = self.occupied.setdefault(phase, {})
            for name, mebibytes in self.made.scene.nemesis.memory().items():
                most[name] = max(mebibytes, most.get(name, 0))
            time.sleep(max(0.0, EVERY_S - (time.monotonic() - began - spent_s)))
        return spent_s

    def _say(self) -> None:
        work = self.made.scene.work
        for number in range(AT_A_TIME):
            tenant = work.tenants[number % len(work.tenants)]
            if number < len(work.tenants) and self.said % 10 == 0:
                self.made.sessions += work.open(tenant, 1)
            mine = [session for session in self.made.sessions[-100:] if session.tenant == tenant]
            if mine:
                work.write(self.made.chance.choice(mine), "web" if number % 2 else "agent")
        self.said += 1
        work.settle()


def play(setting: Setting, run: str) -> tuple[list[Violation], list[tuple[str, str]]]:
    """Play it all; return what was broken, and the rows that tell of it."""
    found, rows = list[Violation](), list[tuple[str, str]]()
    with counted(found), company(setting, run, 5) as made:
        with counted(found):
            rows += _scene(setting, made, found)
        found += [Violation("ended", f"{name} with {code}") for name, code in made.scene.dismiss().items()]
    return found, rows


def _scene(setting: Setting, made: Company, found: list[Violation]) -> list[tuple[str, str]]:
    """Play the store that goes and the broker that is killed; return the rows that tell of it."""
    scene, watch = made.scene, Watch(made)
    since = checking.begin(scene)
    watch.go_on(BEFORE, BEFORE_S)
    with scene.nemesis.server_down(WEAVIATE):
        setting.say("the store is down")
        watch.go_on("store down", DOWN_S)
        piled = flight(made, "land")
    setting.say(f"the store is back; {piled} records wait for land")
    caught_s = watch.go_on("after it", CAUGHT_UP_S_MAX, lambda: flight(made, "land") < CAUGHT_UP)
    setting.say(f"land has caught up after {caught_s:.0f} s")
    found += late("land", caught_s)
    watch.go_on("before the restart", BROKER_S)
    made.before()
    scene.nemesis.kill_server(KAFKA)
    broker_s = watch.go_on("after the broker's restart", CAUGHT_UP_S_MAX, lambda: _idle(made))
    found += late("a stage", broker_s)
    watch.go_on("after the broker's restart", BROKER_S)
    setting.say(f"all stages have caught up {broker_s:.0f} s after the broker was back")
    found += grown(watch.occupied)
    if not everything(made, DRAINED_S_MAX):
        found.append(Violation("lost", f"not all decided within {DRAINED_S_MAX} s"))
    _third, after = checking.from_nothing(scene, "third", made.sessions)
    checking.landed(scene, since)
    found += after + checking.violations(scene, *checking.pictures(scene, since))
    rows = [
        ("load", f"{len(scene.work.said):,} events acknowledged, {len(scene.work.unsure)} unsure"),
        ("store down", f"{DOWN_S:.0f} s; {piled:,} records waited for land, caught up {caught_s:.0f} s after it"),
        ("broker killed under load", f"caught up {broker_s:.0f} s after it was back"),
    ]
    return [*rows, *memory(watch.occupied)]


def _idle(made: Company) -> bool:
    return all(flight(made, stage) < CAUGHT_UP for stage in STAGES)


def late(who: str, spent_s: float) -> list[Violation]:
    """Return the violation where a wait for whoever caught up ran out."""
    return [Violation("stuck", f"{who} has not caught up in {spent_s:.0f} s")] if spent_s >= CAUGHT_UP_S_MAX else []


def grown(occupied: dict[str, dict[str, int]]) -> list[Violation]:
    """Return a violation for each stage that occupied far more in some phase than before any fault."""
    return [
        Violation("memory", f"{stage} occupied {most[stage]} MiB in the phase {phase!r}, {before} before")
        for stage, before in occupied[BEFORE].items()
        if stage in STAGES
        for phase, most in occupied.items()
        if most.get(stage, 0) > GROWTH_MAX * before
    ]


def memory(occupied: dict[str, dict[str, int]]) -> Sequence[tuple[str, str]]:
    """Return a row for each process: the most that it occupied in each phase."""
    processes = sorted({name for most in occupied.values() for name in most})
    return [
        (
            f"{name}, MiB at most",
            ", ".join(f"{phase} {most[name]:,}" for phase, most in occupied.items() if name in most),
        )
        for name in processes
    ]
