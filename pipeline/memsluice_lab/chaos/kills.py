"""Kill -9 of every stage's worker with much in flight, again and again, on its own disk and on an empty one.

One turn strikes each stage several times: work piles up, the three workers are killed, each at a moment of its own, and
the next ones are struck as soon as they have partitions, in the middle of what the last ones left. Before the next turn
everything that was said is decided.
"""

import time
from collections.abc import Sequence

from memsluice.errors import StackError
from memsluice.topics import names
from memsluice_lab.chaos.backlog import flight, pile_up
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.chaos.following import members
from memsluice_lab.chaos.playing import Game
from memsluice_lab.chaos.stages import Company
from memsluice_lab.chaos.zombies import ANSWERED_S_MAX
from memsluice_lab.figures.bed import STAGES

IN_FLIGHT_MIN = 100
FED = 200
STRIKES = 5
"""How often a turn kills each stage's worker."""
EMPTY_EVERY = 4
"""Every so many strikes the next workers start on an empty disk."""
WAIT_S_MAX = 2.0
MARGIN = 40
"""A stage that has no more than these in flight beyond what counts is killed at once."""
AT_WORK_S_MAX = 120


def turn(made: Company, numbers: Sequence[int], _found: list[Violation]) -> list[str]:
    """Kill a worker for each number, of each stage in turn; those that had too little in flight are not counted."""
    _at_work(made)
    rows: list[str] = []
    for first in range(0, len(numbers), len(STAGES)):
        some = numbers[first : first + len(STAGES)]
        stages = list(dict.fromkeys(STAGES[number % len(STAGES)] for number in some))
        rows += _strike(made, stages, some[0] // len(STAGES))
        if not made.scene.alive():
            break
    return rows


def _strike(made: Company, stages: Sequence[str], number: int) -> list[str]:
    """Kill the workers of these stages once they have partitions and much to do, and start the next ones."""
    scene, rows = made.scene, []
    victims = {stage: made.settled(made.owners[stage]) for stage in stages}
    pile_up(made, list(victims.values()), FED)
    due = {stage: time.monotonic() + made.chance.uniform(0, WAIT_S_MAX) for stage in stages}
    end = ", then on an empty disk" if (fresh := number % EMPTY_EVERY == 0) else ""
    while due:
        for stage in list(due):
            there = victims[stage].replica in members(scene.bed, names.GROUPS[stage])
            waiting = flight(made, stage)
            if time.monotonic() < due[stage] and waiting > IN_FLIGHT_MIN + MARGIN:
                continue
            scene.kill(victims[stage])
            del due[stage]
            if there and waiting > IN_FLIGHT_MIN and not scene.ended:
                rows.append(f"{stage} killed with {waiting} in flight{end}")
    for stage, victim in victims.items():
        made.owners[stage] = scene.start(stage, f"k{number}" if fresh else victim.replica)
    return rows


def _at_work(made: Company) -> None:
    """Wait until all that was said is decided, and more was said since. Raises StackError."""
    scene = made.scene
    for stage in STAGES:
        made.settled(made.owners[stage])
    made.after()
    if not scene.verdicts.until(set(scene.work.said), AT_WORK_S_MAX + ANSWERED_S_MAX, scene.alive):
        raise StackError(f"the stages did not go on; {scene.ended or 'they still run'}")


GAME = Game(turn, STRIKES * len(STAGES))
