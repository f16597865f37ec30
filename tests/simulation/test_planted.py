"""A bug planted in the code that runs is found: a judge that misses one would be worth nothing."""

from functools import cache
from unittest.mock import patch

import pytest

from memsluice.stages.screen import ScreenStage
from memsluice_lab.simulation import campaign
from memsluice_lab.simulation.campaign import examined, found
from memsluice_lab.simulation.planted import PLANTED, bug

pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
"""A process that was killed awaits nothing any more."""
WITHIN = 40
RARE = (
    "counted for another tenant",
    "fence removed",
    "read back skipped",
    "refused with the one before",
    "restored before the fence",
    "restored from a stale offset",
    "restored with what was not committed",
    "rows kept that were not committed",
    "settled before the commit",
    "sweep skips a zone",
)
"""Bugs that show only when several things come together: the figure `planted_found` has the time for them."""


@cache
def whole(seed: int) -> tuple[None, list[str]]:
    """Return what is broken in a history without a plant: the same for every plant, and played once."""
    return None, examined(seed)[1]


@pytest.mark.parametrize("name", sorted(set(PLANTED) - set(RARE)))
def test_a_planted_bug_is_found(name: str, monkeypatch) -> None:
    """Within few histories something is broken, and the judge says so; a plant that only crashes is none."""
    monkeypatch.setattr(
        campaign, "examined", lambda seed, planted="": examined(seed, planted=planted) if planted else whole(seed)
    )
    assert found(name, WITHIN) is not None


def test_a_plant_that_does_not_fit_the_code_is_not_found(monkeypatch) -> None:
    """A bug whose patch raises by itself would be found whatever the judge is worth."""
    wrong = patch.object(ScreenStage, "_has_its_row", lambda self: False)
    monkeypatch.setitem(PLANTED, "wrong", lambda: iter([wrong]))
    with pytest.raises(RuntimeError, match="'wrong' does not fit the code"):
        found("wrong", 1)


def test_a_seed_that_is_broken_without_the_plant_says_nothing_about_it() -> None:
    """A bug of the tree itself would have every plant found on its first seed."""
    with bug("verify skipped"):
        assert examined(0)[1]
        assert found("clock runs back", 1) is None


def test_the_rare_bugs_are_planted_all_the_same() -> None:
    """The figure counts them: none is left out by a wrong name, and there are sixteen bugs at least."""
    assert set(RARE) < set(PLANTED)
    assert len(PLANTED) >= 16


def test_what_was_planted_is_gone_afterwards() -> None:
    """The judge, and the next history, run the code as it is."""
    assert examined(0, planted="verify skipped")[1]
    assert examined(0)[1] == []
