"""Work piles up before workers that hang for a moment, so that each has its hands full when it is struck.

The last stage hangs first, and what is said meanwhile piles up before it; then the one before it, and the first.
"""

import time
from collections.abc import Callable, Sequence

from memsluice_lab.chaos.following import in_hands
from memsluice_lab.chaos.stages import Company
from memsluice_lab.figures.bed import STAGES, Worker

IN_FLIGHT_MIN = 100
FED = 3 * IN_FLIGHT_MIN
FED_S_MAX = 6.0
"""Below the ten seconds after which a group goes on without a member that hangs."""


def flight(made: Company, stage: str) -> int:
    """Return how many records a stage has not committed yet (with a commit marker or two among them)."""
    return sum(in_hands(made.scene.bed, stage).values())


def pile_up(made: Company, workers: Sequence[Worker]) -> None:
    """Give every stage of these workers a backlog. All go on at one moment."""
    nemesis = made.scene.nemesis
    began = time.monotonic()
    try:
        for stage in reversed(STAGES):
            there = [worker for worker in workers if worker.stages == (stage,)]
            for worker in there:
                nemesis.pause(worker)
            if there:
                made.before()
                _until(lambda stage=stage: flight(made, stage) > FED, began)  # type: ignore[misc]
    finally:
        for worker in workers:
            nemesis.resume(worker)


def _until(done: Callable[[], bool], began: float) -> None:
    while not done() and time.monotonic() - began < FED_S_MAX:
        time.sleep(0.02)
