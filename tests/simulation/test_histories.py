"""The pipeline under a seeded scheduler: nothing that was promised is broken, and a seed is a history."""

import os
import subprocess
import sys

import pytest

from memsluice_lab.simulation.campaign import Tally, examined, played
from memsluice_lab.simulation.pipeline import EVENTS, Options
from memsluice_lab.simulation.workload import KINDS

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
"""A process that was killed awaits nothing any more."""
HISTORIES = 24
"""Some twenty seconds of one core; the figure `simulated_violations` plays 10,000."""


@pytest.fixture(scope="module")
def tally() -> Tally:
    """Return what the first histories came to."""
    return played(range(HISTORIES))


def test_no_history_breaks_a_promise(tally: Tally) -> None:
    """Crashes, pauses, rebalances, rotations, outages: nothing lost, doubled, unsigned, clean or out of order."""
    assert tally.failing == []
    assert tally.histories == HISTORIES


def test_the_histories_are_of_the_stated_size_and_really_go_wrong(tally: Tally) -> None:
    """Each has 200 events and three faults at least; every kind of event occurs, and a former owner is refused."""
    assert EVENTS >= 200
    assert tally.events == HISTORIES * EVENTS
    assert tally.fewest_faults >= 3
    assert set(tally.kinds) == set(KINDS)
    faults = {name for name in tally.told if name.startswith("fault: ")}
    assert len(faults) >= 15
    assert tally.refused > 0


def test_a_seed_is_a_history(tmp_path) -> None:
    """The same seed gives the same trace to the last byte, in another process with other hashes of strings."""
    history, broken = examined(5, Options(trace=True))
    command = [sys.executable, "-m", "memsluice_lab.simulation", "--seed", "5"]
    again = subprocess.run(
        command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONHASHSEED": "77"}, cwd=tmp_path
    )
    assert broken == []
    assert f"digest {history.told.digest.hexdigest()}" in again.stdout
    assert history.told.trace[-1] in again.stdout


def test_what_is_remembered_changes_nothing() -> None:
    """A history in which every function is worked out anew is the same, step by step, and breaks the same: nothing."""
    history, broken = examined(7)
    anew, broken_anew = examined(7, remember=False)
    assert history.told.digest.hexdigest() == anew.told.digest.hexdigest()
    assert broken == broken_anew == []


def test_another_seed_is_another_history() -> None:
    """Seeds draw their own events, faults and order."""
    assert examined(60)[0].told.digest.digest() != examined(61)[0].told.digest.digest()


def test_a_fault_can_be_left_out() -> None:
    """Shrinking drops a fault by its number; the others happen."""
    history, _ = examined(3)
    fewer, _ = examined(3, Options(drop=frozenset({0})))
    assert fewer.plan.fired == history.plan.fired[1:]
