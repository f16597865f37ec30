"""What the fence costs, and all that came since two trees of before: their workers beside this tree's, in turn."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

from memsluice.envelope.dsse import Signer
from memsluice.envelope.records import verdict_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.errors import ConfigError, StateError
from memsluice.topics import names
from memsluice_lab.figures.accounted import tenants_of
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

SIGNALS, FENCE, NOW = "before the signals", "before the fence", "now"
BEFORE = {SIGNALS: "3120c47", FENCE: "8d5a1a3"}
"""The last commits before the gate's signals were made anew, and before the broker fenced a former owner."""
ROUNDS, EVENTS = 3, 10_000
LIGHT_TURNS = 2
"""Each side of the fence has so many shares of the light load; who begins changes from turn to turn."""
PATH_VARIABLE = "PYTHONPATH"
POLICY = "import json; from memsluice_lab.figures.accounted import unhurried; print(json.dumps(unhurried()))"
"""Each tree runs by its own policy: it knows no fields of later ones."""


@contextmanager
def tree_of(commit: str) -> Iterator[Path]:
    """Check an earlier tree out, beside this one. Raises ConfigError where the history is not there."""
    here = Path(__file__).resolve().parent
    with tempfile.TemporaryDirectory(prefix="memsluice-before-") as folder:
        tree = Path(folder) / "tree"
        done = subprocess.run(
            ["git", "-C", str(here), "worktree", "add", "--detach", str(tree), commit],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise ConfigError(f"the tree of before, {commit}, cannot be checked out: {done.stderr.strip()}")
        try:
            yield tree
        finally:
            subprocess.run(["git", "-C", str(here), "worktree", "remove", "--force", str(tree)], check=False)


def _environment(tree: Path) -> Mapping[str, str]:
    """Return what makes a worker import that tree's packages."""
    return {PATH_VARIABLE: os.pathsep.join((str(tree / "pipeline"), os.environ.get(PATH_VARIABLE, "")))}


def _policy(environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the policy that a tree ships, without limits of a day. Raises ConfigError where it has none."""
    done = subprocess.run(
        [sys.executable, "-c", POLICY], env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise ConfigError(f"a tree of before does not say its policy: {done.stderr.strip()[-800:]}")
    policy: dict[str, Any] = json.loads(done.stdout)
    return policy


Sides = tuple[tuple[str, Bed, Mapping[tuple[str, str], Signer], Mapping[str, str]], ...]


@contextmanager
def _sides(setting: Setting) -> Iterator[tuple[Sequence[Path], Sides]]:
    """Yield the streams, and a stack of its own for each tree: their logs and groups are not each other's."""
    with streams(setting) as paths, ExitStack() as stacks:
        sides = []
        trees = {name: _environment(stacks.enter_context(tree_of(commit))) for name, commit in BEFORE.items()}
        for name, environment in {**trees, NOW: dict[str, str]()}.items():
            running = stacks.enter_context(bed(setting, policy=_policy(environment)))
            sides.append((name, running, running.signers(tenants_of(paths)), environment))
        yield paths, tuple(sides)


def fence_cost(setting: Setting) -> Measured:
    """Share of guarded throughput, in per cent, that the fence costs: landed writes a second in bursts."""
    return _cost(setting, FENCE, 0)


def ingest_cost(setting: Setting) -> Measured:
    """Share of throughput, in per cent, that the gate made anew costs: the same writes, each decided, and landed where
    it was to."""
    return _cost(setting, SIGNALS, 1)


def _cost(setting: Setting, side: str, which: int) -> Measured:
    rates = _measured(Setting(setting.data, _say))[0]
    rows = [(f"{ROUNDS} rounds in turn, a stack of its own for each side", f"{EVENTS:,} events each")]
    ratios = []
    for number, (then, today) in enumerate(zip(rates[side], rates[NOW], strict=True), 1):
        before, now = then[which], today[which]
        ratios.append(now.per_s / before.per_s)
        rows.append((f"round {number}: {side}; {NOW}; ratio", f"{before}; {now}; {ratios[-1]:.3f}"))
    return Measured(100 * (1 - median(ratios)), tuple(rows))


def fence_light_ms(setting: Setting) -> Measured:
    """Milliseconds by which the fence raises the light-load median, from produce to the record of what landed."""
    times = _measured(Setting(setting.data, _say))[1]
    rows = tuple((f"{name}: p50, p90", f"{spread(times[name])} of {len(times[name])}") for name in times)
    return Measured(median(times[NOW]) - median(times[FENCE]), rows)


def _say(text: str) -> None:
    """Tell on standard error; one and the same function for all figures, so that they share a run."""
    print(text, file=sys.stderr, flush=True)


@lru_cache(maxsize=1)
def _measured(setting: Setting) -> tuple[dict[str, list[tuple[Rate, Rate]]], dict[str, list[int]]]:
    """Measure all. The figures come from one run where they are measured together."""
    rates: dict[str, list[tuple[Rate, Rate]]] = {name: [] for name in (*BEFORE, NOW)}
    times: dict[str, list[int]] = {name: [] for name in (FENCE, NOW)}
    with _sides(setting) as (paths, sides):
        for number in range(ROUNDS):
            for name, running, signers, environment in sides if number % 2 == 0 else sides[::-1]:
                side = Burst(running, paths, signers, environment=environment, events=EVENTS)
                rates[name].append(_rates(side, f"g{number}"))
                landed, through = rates[name][-1]
                setting.say(f"round {number + 1}, {name}: landed {landed}, through {through}")
        fence = [side for side in sides if side[0] in times]
        for number in range(LIGHT_TURNS):
            for name, running, signers, environment in fence if number % 2 == 0 else fence[::-1]:
                times[name] += _light(running, paths, signers, environment, number)
                setting.say(f"light load, {name}: {spread(times[name])}")
    return rates, times


def _rates(side: Burst, name: str) -> tuple[Rate, Rate]:
    """Return what landed of a burst until the last of it did, and what was through until all of it was.

    Raises StateError where a write was not decided.
    """
    workers, writes = side.prepare(name)
    began, landed = side.through(writes)
    side.running.stop(*workers)
    ids = {event.payload.id for event in writes}
    decided = {event: at for event, (_, at) in _verdicts(side.running).items() if event in ids}
    if missing := len(ids) - len(decided):
        raise StateError(f"{missing} of {len(ids)} writes were not decided")
    last = max(*landed, *decided.values())
    return Rate(len(landed), (max(landed) - began) / 1_000), Rate(len(ids), (last - began) / 1_000)


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
    held = {event for event, (verdict, _) in _verdicts(running).items() if verdict.object_id is None}
    if missing := told.keys() - landed.keys() - held:
        raise StateError(f"{len(missing)} of {len(told)} writes were to land and did not")
    return [landed[event_id] - at for event_id, at in told.items() if event_id in landed]


def _verdicts(running: Bed) -> dict[str, tuple[Verdict, int]]:
    """Return each event's first verdict, and when the broker appended it (Unix ms)."""
    keyring, found = running.store.keyring(), dict[str, tuple[Verdict, int]]()
    for message in messages(running, names.AUDIT):
        verdict = verdict_from_bytes(keyring, message.key().decode(), message.value())
        found.setdefault(verdict.event_id, (verdict, message.timestamp()[1]))
    return found
