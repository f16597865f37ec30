"""Figures of the harness against the real components: what a paused and a killed worker can break."""

import os
import time
from collections.abc import Callable, Mapping, Sequence

from memsluice.errors import StackError
from memsluice_lab.chaos import faults, kills, outage, results, rounds
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.figures.bed import STAGES
from memsluice_lab.figures.dependencies import here
from memsluice_lab.figures.registry import FIGURES, Measured, Setting

ZOMBIE_ROUNDS = dict.fromkeys(STAGES, 34)
"""A hundred, and two."""
ZOMBIE_SCENE = 36
"""Rounds on one stack, between two checks."""
KILLS = dict.fromkeys(STAGES, 100)
KILL_SCENE = 45
Play = Callable[[Setting, Sequence[int], str], tuple[list[str], list[Violation]]]


def zombie_violations(setting: Setting) -> Measured:
    """Promises broken over rounds in which a paused worker wakes up after another took over."""
    return _played(setting, "zombie_violations", rounds.GAME.play, ZOMBIE_ROUNDS, ZOMBIE_SCENE)


def kill9_violations(setting: Setting) -> Measured:
    """Promises broken over kills of each stage with more than a hundred records in flight."""
    return _played(setting, "kill9_violations", kills.GAME.play, KILLS, KILL_SCENE)


def fault_violations(setting: Setting) -> Measured:
    """Promises broken over faults of the network, the servers, the group and the clocks, one after the other."""
    return _played(setting, "fault_violations", faults.GAME.play, {"": faults.FAULTS}, faults.FAULTS)


def outage_lost(setting: Setting) -> Measured:
    """Promises broken while the store is down for minutes and the broker is restarted, both under load."""
    found, rows = outage.play(setting, f"o{os.getpid() % 10_000}")
    words = results.Outcome.of("", (), 0, found).words
    return Measured(float(len(found)), tuple(rows), words[:20])


def _played(setting: Setting, name: str, play: Play, wanted: Mapping[str, int], scene: int) -> Measured:
    """Add what is missing of the rounds on this code, as many as this run may; the figure is of all of them.

    ``wanted``: how many rounds, by how a round's row begins. Round number n is of the kind at n modulo their number.
    Raises StackError where less was played, on this run and earlier ones: what is not whole is no figure.
    """
    digest = here().digest(FIGURES[name])
    left = results.allowed(sum(wanted.values()))
    while numbers := _due(name, digest, wanted)[: min(left, scene)]:
        began = time.monotonic()
        done, found = play(setting, numbers, f"c{os.getpid() % 10_000}-{numbers[0]}")
        results.add(name, results.Outcome.of(digest, done, time.monotonic() - began, found))
        left -= len(numbers)  # a round that does not count is played again, on a later run
    outcomes = results.done(name, digest)
    rounds_done = [one for outcome in outcomes for one in outcome.rounds]
    if still := len(_due(name, digest, wanted)):
        raise StackError(
            f"{len(rounds_done)} rounds are played on this code, {still} are still wanted; what was played is kept in "
            f"{results.file(name)}, and the same command goes on from there"
        )
    table = (
        ("rounds", f"{len(rounds_done)}, on {len(outcomes)} stacks, each checked after compaction"),
        ("time", f"{sum(one.seconds for one in outcomes) / 60:.0f} min"),
        *((f"round {number}", what) for number, what in enumerate(rounds_done)),
    )
    words = [word for outcome in outcomes for word in outcome.words]
    return Measured(float(sum(one.broken for one in outcomes)), table, tuple(words[:20]))


def _due(name: str, digest: str, wanted: Mapping[str, int]) -> list[int]:
    """Return the numbers of the rounds that are still to be played on this code."""
    rounds_done = [one for outcome in results.done(name, digest) for one in outcome.rounds]
    due: list[int] = []
    for place, (kind, number) in enumerate(wanted.items()):
        had = sum(one.startswith(kind) for one in rounds_done)
        due += range(had * len(wanted) + place, number * len(wanted), len(wanted))
    return sorted(due)
