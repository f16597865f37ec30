"""Kill -9 of each stage's worker, three times, each with more than a hundred records in flight, on the real stack.

A hundred of each, on more stacks and with a compaction before the check, are the figure ``kill9_violations``.
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.chaos.conftest import say

from memsluice.clock import wall_ms
from memsluice.keystore.store import KeyStore
from memsluice.topics import names
from memsluice_lab.chaos import checking, kills, logs
from memsluice_lab.chaos.checker import Violation, read, verdict_violations
from memsluice_lab.chaos.landed import store_violations
from memsluice_lab.chaos.nemesis import Nemesis
from memsluice_lab.chaos.rows import row_violations
from memsluice_lab.chaos.stages import Company, everything, staffed
from memsluice_lab.figures.bed import STAGES, Bed
from memsluice_lab.figures.registry import Setting

pytestmark = [pytest.mark.stack, pytest.mark.timeout(1200)]

KILLS = 3
TURNS_MAX = 8
"""A kill that strikes a stage with little in its hands is not counted, and is made again."""
DRAINED_S_MAX = 120


@pytest.fixture
def made(stack: Any) -> Iterator[Company]:
    """A worker of each stage."""
    bed = Bed(stack.home, stack.connection, KeyStore.init(stack.home, wall_ms()), Setting(None, say))
    try:
        with staffed(bed, Nemesis(bed), f"k{uuid4().hex[:6]}", 1, {}) as company:
            yield company
    finally:
        bed.close()


def test_kills_of_each_stage_break_no_promise(made: Company) -> None:
    """Every acknowledged event is decided once and lands, no row goes back, and the store is what its log says."""
    scene, since, found = made.scene, checking.begin(made.scene), list[Violation]()
    counted = dict.fromkeys(STAGES, 0)
    for turn in range(TURNS_MAX):
        due = [number for number, stage in enumerate(STAGES) if counted[stage] < KILLS]
        if not due:
            break
        for row in kills.turn(made, [turn * len(STAGES) + number for number in due], found):
            counted[row.split()[0]] += 1
            say(row)
    assert min(counted.values()) >= KILLS, counted
    assert everything(made, DRAINED_S_MAX)
    assert checking.landed(scene, since)
    keyring, picture = scene.bed.store.keyring(), logs.take(scene.bed, scene.work.tenants, since)
    reading = read(picture, keyring, scene.work.tenants)
    found += verdict_violations(reading, scene.work.said)
    found += row_violations(picture.of(names.SCREEN_CHANGELOG), scene.work.said, reading)
    found += store_violations(picture, reading, keyring, now_ms=wall_ms())
    assert found == []
    assert scene.ended == {}
