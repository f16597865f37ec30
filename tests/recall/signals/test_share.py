"""How surprising a number of hits is: the Beta-binomial's tails."""

from math import comb

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsluice.recall.signals.share import Share, at_least, at_most


@given(st.integers(1, 200), st.data())
def test_without_a_past_every_number_is_as_likely(trials, data) -> None:
    """With the even prior, Beta(1, 1), each of 0 to n hits has the chance 1 / (n + 1): the closed form."""
    hits = data.draw(st.integers(0, trials))
    assert at_least(hits, trials, 1.0, 1.0) == pytest.approx((trials - hits + 1) / (trials + 1))


@given(st.integers(1, 60), st.floats(0.1, 50), st.floats(0.1, 50), st.data())
def test_the_two_tails_meet(trials, alpha, beta, data) -> None:
    """P[X >= h] and P[X <= h - 1] are all there is."""
    hits = data.draw(st.integers(1, trials))
    assert at_least(hits, trials, alpha, beta) + at_most(hits - 1, trials, alpha, beta) == pytest.approx(1.0)


def test_a_long_past_makes_it_the_binomial() -> None:
    """With a share known to the digit the tail is the binomial's; with a short past it is heavier."""
    binomial = sum(comb(20, k) * 0.1**k * 0.9 ** (20 - k) for k in range(8, 21))
    assert at_least(8, 20, 1e7, 9e7) == pytest.approx(binomial, rel=1e-3)
    assert at_least(8, 20, 2.0, 18.0) > 10 * binomial


def test_the_past_fades_and_never_weighs_more_than_its_bound() -> None:
    """A past halves as time goes by, and its share stays; more than the bound's trials are as many as the bound."""
    one = Share().after(10, 40, 0.5, 200)
    assert one == Share(10, 40)
    assert one.after(0, 0, 0.5, 200) == Share(5, 20)
    long = Share(100, 200).after(100, 200, 1.0, 200)
    assert (long.hits, long.trials) == (pytest.approx(100), pytest.approx(200))
