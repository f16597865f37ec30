"""The bound of gate and vote together: no better than either alone can justify, and never above 1."""

import pytest

from memsluice.errors import InvalidArgument
from memsluice.recall.smoothing.certificate import Plan
from memsluice.recall.smoothing.end_to_end import end_to_end

PLAN = Plan()


@pytest.mark.parametrize("independent", [False, True])
def test_a_gate_that_misses_all_leaves_the_vote_alone(independent) -> None:
    """Where every attempt lands, the bound is the certificate for all of them."""
    for attempts in (0, 1, 3, 60):
        assert end_to_end(PLAN, attempts, 1, independent=independent) == pytest.approx(PLAN.delta(attempts))


def test_a_gate_that_misses_nothing_wins() -> None:
    """Nothing lands, so nothing wins."""
    assert end_to_end(PLAN, 50, 0) == end_to_end(PLAN, 50, 0, independent=True) == 0


def test_by_hand() -> None:
    """One attempt in ten lands on average: the worst gate lets none land or three at once, where delta / t is largest.

    If the misses are independent, the certificates are weighed by the binomial.
    """
    plan = Plan(pool=5, shown=1, runs=3)
    assert [round(plan.delta(t), 3) for t in range(6)] == [0, 0.104, 0.352, 0.648, 0.896, 1]
    assert end_to_end(plan, 5, 0.02) == pytest.approx(0.1 / 4 * plan.delta(4))
    assert end_to_end(PLAN, 1, 0.05, independent=True) == pytest.approx(0.05 * PLAN.delta(1))
    twice = 2 * 0.1 * 0.9 * plan.delta(1) + 0.1**2 * plan.delta(2)
    assert end_to_end(plan, 2, 0.1, independent=True) == pytest.approx(twice)


def test_no_gate_with_that_miss_rate_does_worse() -> None:
    """However the misses hang together, of any two counts that land the mean loss is within the bound, and one pair
    reaches it: the bound is true and cannot be made smaller."""
    for attempts, missed in ((3, 0.3), (10, 0.05), (40, 0.11)):
        mean = attempts * missed
        losses = [
            PLAN.delta(few) + (PLAN.delta(many) - PLAN.delta(few)) * (mean - few) / (many - few)
            for few in range(attempts + 1)
            for many in range(few + 1, attempts + 1)
            if few <= mean <= many
        ]
        assert max(losses) == pytest.approx(end_to_end(PLAN, attempts, missed))


@pytest.mark.parametrize("independent", [False, True])
def test_a_small_store_is_not_certified_by_a_pool_that_it_does_not_fill(independent) -> None:
    """One entry of eleven weighs more than one of 51: the bound is that of a pool of eleven, and larger."""
    small = Plan(pool=11, shown=5, runs=5)
    both = [end_to_end(plan, 4, 0.1, independent=independent, available=11) for plan in (PLAN, small)]
    assert both[0] == pytest.approx(both[1])
    assert both[0] > 5 * end_to_end(PLAN, 4, 0.1, independent=independent)
    assert end_to_end(PLAN, 4, 1, independent=independent, available=5) == 1
    assert end_to_end(PLAN, 4, 0.1, independent=independent, available=500) == pytest.approx(
        end_to_end(PLAN, 4, 0.1, independent=independent)
    )


@pytest.mark.parametrize("honest", [1, 6, 12, 40, 60])
def test_what_an_attack_adds_to_a_small_store_makes_no_bound_smaller_than_it_is(honest) -> None:
    """He who is told how many there are without the attack is told no less than what holds with it."""
    for landed in range(12):
        assert PLAN.delta(landed, honest + landed) <= PLAN.delta(landed, honest) + 1e-12


def test_millions_of_attempts_are_counted_at_once() -> None:
    """An attacker who may try as often as he likes wins surely, and the command that says so ends."""
    for independent in (False, True):
        assert end_to_end(PLAN, 2_000_000_000, 0.001, independent=independent) == pytest.approx(1)


def test_independence_is_worth_something_and_never_costs() -> None:
    """The bound that assumes less is never the smaller one."""
    for attempts in (1, 5, 20):
        for missed in (0.01, 0.1, 0.5):
            assert end_to_end(PLAN, attempts, missed, independent=True) <= end_to_end(PLAN, attempts, missed) + 1e-12


def test_what_is_no_probability_is_refused() -> None:
    """The message names the argument."""
    with pytest.raises(InvalidArgument, match="argument missed"):
        end_to_end(PLAN, 1, 1.5)
    with pytest.raises(InvalidArgument, match="argument attempts"):
        end_to_end(PLAN, -1, 0.5)
    with pytest.raises(InvalidArgument, match="argument available"):
        end_to_end(PLAN, 1, 0.5, available=-1)
