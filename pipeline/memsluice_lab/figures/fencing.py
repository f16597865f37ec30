"""What the fence costs: the workers of the tree before it beside those of this tree, in turn, the same real events."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from statistics import median

from memsluice.envelope.dsse import Signer
from memsluice.envelope.records import verdict_from_bytes
from memsluice.errors import ConfigError, StateError
from memsluice.topics import names
from memsluice_lab.figures.accounted import tenants_of, unhurried
from memsluice_lab.figures.bed import STAGES, Bed, bed, messages
from memsluice_lab.figures.ingest import (
    THROUGH_S_MAX,
    Burst,
    Rate,
    burst,
    landed_at,
    light_events,
    lightly,
    spread,
)
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting

BEFORE = "8d5a1a3"
"""The last commit whose workers sent rows, outputs and offsets apart, and without a fence."""
ROUNDS, EVENTS = 3, 5_000
LIGHT_TURNS = 2
"""Each side has so many shares of the light load; who begins changes from turn to turn."""
PATH_VARIABLE = "PYTHONPATH"


@contextmanager
def tree_before() -> Iterator[Path]:
    """Check the tree before the fence out, beside this one. Raises ConfigError where the history is not there."""
    here = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory(prefix="memsluice-before-") as folder:
        tree = Path(folder) / "tree"
        done = subprocess.run(
            ["git", "-C", str(here), "worktree", "add", "--detach", str(tree), BEFORE],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ConfigError(f"the tree before the fence, {BEFORE}, cannot be checked out: {done.stderr.strip()}")
        try:
            yield tree
        finally:
            subprocess.run(["git", "-C", str(here), "worktree", "remove", "--force", str(tree)], check=False)


def _environment(tree: Path) -> Mapping[str, str]:
    """Return what makes a worker import that tree's packages."""
    return {PATH_VARIABLE: os.pathsep.join((str(tree / "pipeline"), os.environ.get(PATH_VARIABLE, "")))}


Sides = tuple[tuple[str, Bed, Mapping[tuple[str, str], Signer], Mapping[str, str]], ...]


@contextmanager
def _sides(setting: Setting) -> Iterator[tuple[Sequence[Path], Sides]]:
    """Yield the streams, and a stack of its own for each tree: their logs and groups are not each other's."""
    with streams(setting) as paths, tree_before() as tree, ExitStack() as stacks:
        sides = []
        for name, environment in (("before", _environment(tree)), ("fenced", {})):
            policy = unhurried()
            if environment:
                del policy["intake"]  # the tree before has no quotas, and refuses what it does not know
            running = stacks.enter_context(bed(setting, policy=policy))
            sides.append((name, running, running.signers(tenants_of(paths)), environment))
        yield paths, tuple(sides)


def fence_cost(setting: Setting) -> Measured:
    """Share of guarded throughput, in per cent, that the fence costs: landed writes a second in bursts."""
    rates = _measured(Setting(setting.data, _say))[0]
    rows = [(f"{ROUNDS} rounds in turn, a stack of its own for each side", f"{EVENTS:,} events each")]
    ratios = []
    for number, (before, fenced) in enumerate(zip(rates["before"], rates["fenced"], strict=True), 1):
        ratios.append(fenced.per_s / before.per_s)
        rows.append((f"round {number}: before; fenced; ratio", f"{before}; {fenced}; {ratios[-1]:.3f}"))
    return Measured(100 * (1 - median(ratios)), tuple(rows))


def fence_light_ms(setting: Setting) -> Measured:
    """Milliseconds by which the fence raises the light-load median, from produce to the record of what landed."""
    times = _measured(Setting(setting.data, _say))[1]
    rows = tuple((f"{name}: p50, p90", f"{spread(times[name])} of {len(times[name])}") for name in times)
    return Measured(median(times["fenced"]) - median(times["before"]), rows)


def _say(text: str) -> None:
    """Tell on standard error; one and the same function for both figures, so that they share a run."""
    print(text, file=sys.stderr, flush=True)


@lru_cache(maxsize=1)
def _measured(setting: Setting) -> tuple[dict[str, list[Rate]], dict[str, list[int]]]:
    """Measure both. The two figures come from one run where they are measured together."""
    rates: dict[str, list[Rate]] = {"before": [], "fenced": []}
    times: dict[str, list[int]] = {"before": [], "fenced": []}
    with _sides(setting) as (paths, sides):
        for number in range(ROUNDS):
            for name, running, signers, environment in sides if number % 2 == 0 else sides[::-1]:
                side = Burst(running, paths, signers, environment=environment, events=EVENTS)
                rates[name].append(side.guarded(f"{name[0]}{number}"))
                setting.say(f"round {number + 1}, {name}: {rates[name][-1]}")
        for number in range(LIGHT_TURNS):
            for name, running, signers, environment in sides if number % 2 == 0 else sides[::-1]:
                times[name] += _light(running, paths, signers, environment, number)
                setting.say(f"light load, {name}: {spread(times[name])}")
    return rates, times


def _light(
    running: Bed,
    paths: Sequence[Path],
    signers: Mapping[tuple[str, str], Signer],
    environment: Mapping[str, str],
    number: int,
) -> list[int]:
    """Return how long each write of a turn's light load took to its record on memory.store.v1, in ms.

    Raises StateError where one neither landed nor has a verdict by which nothing is to land.
    """
    workers = [running.start(stage, environment=environment) for stage in STAGES]
    opened, writes = light_events(paths, f"l{number}")
    burst(running, opened, signers)
    running.drain(THROUGH_S_MAX)
    told = lightly(running, writes[number::LIGHT_TURNS], signers)
    running.drain(THROUGH_S_MAX)
    landed = landed_at(running)
    running.stop(*workers)
    if missing := told.keys() - landed.keys() - _held(running):
        raise StateError(f"{len(missing)} of {len(told)} writes were to land and did not")
    return [landed[event_id] - at for event_id, at in told.items() if event_id in landed]


def _held(running: Bed) -> set[str]:
    """Return the events that are decided, and by their verdicts land nothing."""
    keyring, found = running.store.keyring(), set[str]()
    for message in messages(running, names.AUDIT):
        verdict = verdict_from_bytes(keyring, message.key().decode(), message.value())
        if verdict.object_id is None:
            found.add(verdict.event_id)
    return found
