"""Work piles up before workers, so that each has its hands full when it is struck.

Before *land*, because the store hangs; before *screen*, because its workers hang for a moment; before *seal*, because
more is said than it can do. All go on at one moment.
"""

import time
from collections.abc import Sequence

from memsluice_lab.chaos.following import uncommitted
from memsluice_lab.chaos.nemesis import WEAVIATE
from memsluice_lab.chaos.stages import Company
from memsluice_lab.figures.bed import STAGES, Worker

STORE_S_MAX = 90.0
"""How long the store hangs at most. Nobody is shut out for that."""
HANGS_S_MAX = 6.0
"""Below the ten seconds after which a group goes on without a member that hangs."""
LOOK_S = 0.1
_SEAL, _SCREEN, _LAND = STAGES


def flight(made: Company, stage: str) -> int:
    """Return how many records a stage has not committed yet (with a commit marker or two among them)."""
    return sum(uncommitted(made.scene.bed, stage).values())


def pile_up(made: Company, workers: Sequence[Worker], enough: int) -> None:
    """Let more than ``enough`` records wait for every stage of these workers, where so many do not yet."""
    nemesis = made.scene.nemesis
    short = {stage for worker in workers for stage in worker.stages if flight(made, stage) <= enough}
    screens = [worker for worker in workers if worker.stages == (_SCREEN,) and _SCREEN in short]
    if _LAND in short:
        nemesis.pause(WEAVIATE)
    try:
        if _LAND in short:
            _feed(made, _LAND, enough, STORE_S_MAX)
        for worker in screens:
            nemesis.pause(worker)
        if screens:
            _feed(made, _SCREEN, enough, HANGS_S_MAX)
        if short:
            made.before()  # *seal* is through with what was said before as fast as it is looked at
    finally:
        for worker in screens:
            nemesis.resume(worker)
        if _LAND in short:
            nemesis.resume(WEAVIATE)


def _feed(made: Company, stage: str, enough: int, seconds_max: float) -> None:
    """Say more and more until enough waits for a stage, or the time is over; the first stage never runs dry."""
    began = time.monotonic()
    while flight(made, stage) <= enough and time.monotonic() - began < seconds_max:
        if flight(made, _SEAL) <= enough:
            made.before()
        time.sleep(LOOK_S)
