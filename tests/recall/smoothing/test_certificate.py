"""The certificate of seed 003, component 2: the paper's own numbers, the definition, and what no plan can promise."""

from fractions import Fraction
from itertools import combinations

import pytest

from memsluice.errors import InvalidArgument
from memsluice.recall.smoothing.certificate import (
    POOL_MAX,
    Plan,
    certifying,
    contamination,
    least_pool,
    majority,
)


@pytest.mark.parametrize(("hostile", "percent"), [(0, 0.0), (1, 10.35), (2, 40.2), (3, 68.4)])
def test_the_papers_setting_has_the_papers_bounds(hostile, percent) -> None:
    """m = 20, k = 5, n = 5: the certified worst case that seed 003 prints for each number of injected entries."""
    assert 100 * Plan(pool=20, shown=5, runs=5).delta(hostile) == pytest.approx(percent, abs=0.05)


def test_a_small_store_is_certified_by_what_it_holds() -> None:
    """Ten honest entries and one injected (m' = 11): 41.52 %, whatever pool was asked for; a store that a run is shown
    whole certifies nothing."""
    plan = Plan(pool=20, shown=5, runs=5)
    assert plan.delta(1, available=11) == pytest.approx(0.4152, abs=5e-5)
    assert plan.delta(1, available=5) == plan.delta(1, available=1) == 1
    assert plan.delta(0, available=0) == 0
    assert plan.delta(1, available=40) == plan.delta(1)


def test_five_percent_against_two_entries_needs_a_pool_of_51() -> None:
    """What the issue's own question comes to: k = n = 5, t = 2; one stratum less does not do."""
    plan = least_pool(5, 5, hostile=2, delta_max=0.05)
    assert plan == Plan(51, 5, 5) == Plan()
    assert Plan(50, 5, 5).delta(2) > 0.05 >= plan.delta(2)


def test_the_chance_of_a_hostile_stratum_is_counted_out() -> None:
    """p is the share of all draws of k of m that hold one of t: counted one by one for every small pool."""
    for pool in range(1, 8):
        for shown in range(1, pool + 1):
            for hostile in range(pool + 1):
                draws = list(combinations(range(pool), shown))
                bad = sum(min(draw) < hostile for draw in draws)
                assert contamination(pool, shown, hostile) == Fraction(bad, len(draws))


def test_a_majority_is_more_than_half() -> None:
    """Of two runs both must be won, of three two: half the votes win nothing."""
    half = Fraction(1, 2)
    assert majority(1, half) == half
    assert majority(2, half) == Fraction(1, 4)
    assert majority(3, half) == half
    assert majority(4, half) == Fraction(5, 16)


def test_more_hostile_strata_than_the_pool_has_win_for_certain() -> None:
    """Whoever wrote everything that is recalled decides every run, and the bound says so."""
    assert Plan(20, 5, 5).delta(20) == Plan(20, 5, 5).delta(1_000) == 1


def test_no_pool_that_an_event_can_name_certifies_everything() -> None:
    """The pool ends at RETURNED_MAX: beyond, None instead of a plan that cannot be carried out."""
    assert least_pool(10, 1, hostile=10, delta_max=0.01) is None
    with pytest.raises(InvalidArgument, match=f"pool must be an integer from 1 to {POOL_MAX}"):
        Plan(pool=POOL_MAX + 1)


@pytest.mark.parametrize(
    ("fields", "word"),
    [({"shown": 0}, "shown"), ({"pool": 4}, "shown"), ({"runs": 0}, "runs"), ({"pool": True}, "pool")],
)
def test_an_impossible_plan_is_refused_by_name(fields, word) -> None:
    """The message names the argument that is out of range."""
    with pytest.raises(InvalidArgument, match=f"argument {word} "):
        Plan(**fields)


def test_a_hostile_count_below_zero_is_refused() -> None:
    """No bound is given against fewer than no attackers."""
    with pytest.raises(InvalidArgument, match="argument hostile "):
        Plan().delta(-1)


def test_every_plan_that_is_offered_certifies_and_none_with_a_smaller_pool_does() -> None:
    """Of each k and n the smallest pool is offered; k = n = 5 is among them."""
    plans = list(certifying(2, 0.05))
    assert Plan(51, 5, 5) in plans
    assert len({(plan.shown, plan.runs) for plan in plans}) == len(plans)
    for plan in plans:
        assert plan.delta(2) <= 0.05
        assert plan.pool == plan.shown or Plan(plan.pool - 1, plan.shown, plan.runs).delta(2) > 0.05
