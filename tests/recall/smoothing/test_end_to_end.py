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
    """Ten attempts, one in twenty missed: delta(t) + 10 * .05 / (t + 1) is least at one of t = 0 to 10; if they are
    independent, the certificates are weighed by the binomial."""
    least = min(PLAN.delta(t) + (0.5 / (t + 1) if t < 10 else 0) for t in range(11))
    assert end_to_end(PLAN, 10, 0.05) == pytest.approx(least)
    assert least < 0.3
    once = end_to_end(PLAN, 1, 0.05, independent=True)
    assert once == pytest.approx(0.05 * PLAN.delta(1))


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
