"""Kill -9 of every stage's worker with much in flight, again and again, on its own disk and on an empty one.

One turn kills the three stages' workers, each at a moment of its own, and starts all three again: most of the time that
a kill takes is the wait for the next worker.
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
FED = 2 * IN_FLIGHT_MIN
EMPTY_EVERY = 4
"""Every so many turns the next workers start on an empty disk."""
WAIT_S_MAX = 0.8
MARGIN = 40
"""A stage that has no more than these in flight beyond what counts is killed at once."""
AT_WORK_S_MAX = 120


def turn(made: Company, numbers: Sequence[int], _found: list[Violation]) -> list[str]:
    """Kill a worker for each number, of each stage in turn; those that had too little in flight are not counted."""
    scene = made.scene
    struck = [STAGES[number % len(STAGES)] for number in numbers]
    _at_work(made, struck)
    victims = {stage: made.owners[stage] for stage in struck}
    pile_up(made, list(victims.values()), FED)
    due = {stage: time.monotonic() + made.chance.uniform(0, WAIT_S_MAX) for stage in struck}
    rows = []
    fresh = numbers[0] // len(STAGES) % EMPTY_EVERY == 0
    while due:
        for stage in list(due):
            there = victims[stage].replica in members(scene.bed, names.GROUPS[stage])
            waiting = flight(made, stage)
            if time.monotonic() < due[stage] and waiting > IN_FLIGHT_MIN + MARGIN:
                continue
            scene.kill(victims[stage])
            del due[stage]
            if there and waiting > IN_FLIGHT_MIN and not scene.ended:
                rows.append(f"{stage} killed with {waiting} in flight{', then on an empty disk' if fresh else ''}")
    for stage, victim in victims.items():
        made.owners[stage] = scene.start(stage, f"k{numbers[0]}" if fresh else victim.replica)
    return rows


def _at_work(made: Company, stages: Sequence[str]) -> None:
    """Wait until stages have decided something since their workers were started. Raises StackError."""
    scene = made.scene
    for stage in stages:
        if not scene.joined(stage, made.owners[stage].replica):
            raise StackError(f"{stage} was given no partitions; {scene.ended or 'it still runs'}")
    made.after()
    if not scene.verdicts.until(set(scene.work.said), AT_WORK_S_MAX + ANSWERED_S_MAX, scene.alive):
        raise StackError(f"{stages} did not go on; {scene.ended or 'they still run'}")


GAME = Game(turn, len(STAGES))
