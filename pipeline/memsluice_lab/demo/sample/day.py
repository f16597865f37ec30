"""Writes the script of one working day from the worlds' sentences: the same seed gives the same day."""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from memsluice_lab.demo.sample.attacks import attacks
from memsluice_lab.demo.sample.clinic import CLINIC
from memsluice_lab.demo.sample.freight import FREIGHT
from memsluice_lab.demo.sample.household import HOUSEHOLD
from memsluice_lab.demo.sample.script import Act, Scene
from memsluice_lab.demo.sample.world import World

WORLDS = (CLINIC, FREIGHT, HOUSEHOLD)
DAY_MINUTES = 600
SESSIONS_A_TENANT = 24
SEED = 20
_SLOT = re.compile(r"\{(\w+)\}")


class _Sentences:
    """Fills templates. Each sentence comes once a day; when a list is used up, other slots give new ones."""

    def __init__(self, world: World, rng: random.Random) -> None:
        self._world = world
        self._rng = rng
        self._waiting: dict[str, list[str]] = {}
        self._used: set[str] = set()

    def next(self, kind: str, templates: Sequence[str]) -> str:
        for _ in range(50):
            if not self._waiting.get(kind):
                self._waiting[kind] = self._rng.sample(list(templates), len(templates))
            text = self._filled(self._waiting[kind].pop())
            if text not in self._used:
                break
        self._used.add(text)
        return text

    def _filled(self, template: str) -> str:
        text = _SLOT.sub(lambda match: self._rng.choice(self._world.slots[match[1]]), template)
        return text[0].upper() + text[1:]


def _session(world: World, number: int, sentences: _Sentences, rng: random.Random) -> Iterator[Scene]:
    """Yield one session: opened by the platform, some questions, some writes, now and then outside content."""
    people = tuple(world.people)
    principal, agent = people[number % len(people)], rng.choice(world.agents)
    start = (number + rng.random()) * (DAY_MINUTES - 40) / SESSIONS_A_TENANT
    scene = Scene(start, world.tenant, Act.OPEN, f"{world.tenant}/s{number:02d}", agent, principal, source="runtime")
    yield scene
    minute = start
    asked = False
    reads = number % 4 == 3
    steps = ["ask"] * rng.choice((1, 1, 2)) + ["type"] * rng.choice((1, 1, 2)) + ["note"] * rng.choice((0, 1, 1))
    rng.shuffle(steps)
    if reads:
        steps.insert(rng.randint(0, len(steps)), "see")
    for step in steps:
        minute += rng.uniform(0.3, 4)
        at = replace(scene, minute=minute)
        if step == "ask":
            asked = True
            yield replace(at, act=Act.ASK, source="reader", text=sentences.next("ask", world.asked))
        elif step == "type":
            yield replace(at, act=Act.WRITE, source="user", text=sentences.next("type", world.typed))
        elif step == "note":
            parents = ("*",) if asked and rng.random() < 0.4 else ()
            yield replace(at, act=Act.WRITE, source="agent", text=sentences.next("note", world.noted), parents=parents)
        else:
            origin, text = world.seen[number // 4 % len(world.seen)]
            yield replace(at, act=Act.SEE, source="runtime", origin=origin, text=text)


def _feeds(world: World, rng: random.Random) -> Iterator[Scene]:
    """Yield what tools and pages write by themselves, each in a session of its own."""
    for number, (source, text) in enumerate(world.fed):
        minute = 30 + (number + rng.random()) * (DAY_MINUTES - 80) / len(world.fed)
        principal = tuple(world.people)[number % len(world.people)]
        scene = Scene(
            minute, world.tenant, Act.OPEN, f"{world.tenant}/feed{number}", world.agents[0], principal, source="runtime"
        )
        yield scene
        yield replace(scene, minute=minute + 0.5, act=Act.WRITE, source=source, text=text)


def day(seed: int = SEED) -> list[Scene]:
    """Return the day's scenes in order of the clock: at least 300, three tenants, every class of attack."""
    rng = random.Random(seed)  # noqa: S311 - a story, not a secret
    scenes: list[Scene] = []
    for world in WORLDS:
        sentences = _Sentences(world, rng)
        for number in range(SESSIONS_A_TENANT):
            scenes += _session(world, number, sentences, rng)
        scenes += _feeds(world, rng)
    scenes += attacks()
    scenes.sort(key=lambda scene: scene.minute)
    return [replace(scene, seq=number) for number, scene in enumerate(scenes)]
