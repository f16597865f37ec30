"""Kill -9 of each stage's worker, five times, each with more than a hundred records in flight, on the real stack.

A hundred of each, on more stacks and with a compaction before the check, are the figure ``kill9_violations``.
"""

from uuid import uuid4

import pytest
from tests.chaos.conftest import broken, say

from memsluice_lab.chaos import checking, kills
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.chaos.nemesis import Nemesis
from memsluice_lab.chaos.stages import everything, staffed
from memsluice_lab.figures.bed import STAGES, Bed

pytestmark = [pytest.mark.stack, pytest.mark.timeout(2_400)]

KILLS = 3
"""Of each stage; the figure `kill9_violations` makes a hundred."""
TURN = KILLS * len(STAGES)
TURNS_MAX = 5
"""A kill that strikes a stage with little in its hands is not counted, and is made again."""
DRAINED_S_MAX = 600


def test_kills_of_each_stage_break_no_promise(bed: Bed) -> None:
    """Every acknowledged event is decided once and lands, no row goes back, and the store is what its log says."""
    found, counted = list[Violation](), dict.fromkeys(STAGES, 0)
    with staffed(bed, Nemesis(bed), f"k{uuid4().hex[:6]}", 1, {}) as made:
        since, number = checking.begin(made.scene), 0
        while min(counted.values()) < KILLS and number < TURNS_MAX * TURN:
            for row in kills.turn(made, range(number, number + TURN), found):
                counted[row.split()[0]] += 1
                say(row)
            number += TURN
        assert min(counted.values()) >= KILLS, counted
        assert everything(made, DRAINED_S_MAX)
        assert [*found, *broken(made.scene, since)] == []
        assert made.scene.ended == {}
