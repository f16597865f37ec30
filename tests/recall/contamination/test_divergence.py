"""The score: what it is of known distributions, and a bound from below where an API tells the likeliest tokens."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsluice.errors import InvalidArgument
from memsluice.recall.contamination.divergence import lower_bound, per_position, score

TOKENS = "abcdef"


def logs(*rows) -> np.ndarray:
    """Return logarithms of rows of probabilities."""
    with np.errstate(divide="ignore"):
        return np.log(np.array(rows, dtype=float))


def test_a_context_that_moves_nothing_scores_nothing() -> None:
    """Equal distributions: 0 at every position."""
    same = logs([0.5, 0.5, 0], [0.2, 0.3, 0.5])
    assert per_position(same, same).tolist() == [0, 0]


def test_the_score_is_the_sum_over_positions() -> None:
    """By hand: KL((.9, .1) || (.5, .5)) and 0."""
    rag, para = logs([0.9, 0.1], [0.5, 0.5]), logs([0.5, 0.5], [0.5, 0.5])
    by_hand = 0.9 * np.log(0.9 / 0.5) + 0.1 * np.log(0.1 / 0.5)
    assert score(rag, para) == pytest.approx(by_hand)
    assert score(logs([0.5, 0.5]), logs([1, 0])) == np.inf


@pytest.mark.parametrize(
    ("rag", "para", "why"),
    [
        (logs([1, 0]), logs([1, 0], [1, 0]), "one shape"),
        (logs([0.5, 0.4]), logs([1, 0]), "argument rag must hold"),
        (logs([1, 0]), logs([0.9, 0.2]), "argument para must hold"),
    ],
)
def test_what_is_no_distribution_is_refused(rag, para, why) -> None:
    """The argument is named."""
    with pytest.raises(InvalidArgument, match=why):
        score(rag, para)


distributions = st.lists(st.floats(0.001, 1), min_size=6, max_size=6).map(lambda some: np.array(some) / sum(some))


@given(distributions, distributions, st.integers(1, 6))
def test_the_likeliest_tokens_never_claim_more_than_there_is(p, q, k) -> None:
    """Whatever an API leaves out, the bound lies between 0 and the score; with all tokens it is the score."""

    def top(some, count):
        return {TOKENS[at]: float(np.log(some[at])) for at in np.argsort(-some)[:count]}

    whole = score(np.log([p]), np.log([q]))
    assert -1e-9 <= lower_bound([top(p, k)], [top(q, k)]) <= whole + 1e-9
    assert lower_bound([top(p, 6)], [top(q, 6)]) == pytest.approx(whole, abs=1e-5)


def test_positions_must_match_and_probabilities_add_up() -> None:
    """Two answers of other lengths are not compared; numbers that are no probabilities are refused."""
    with pytest.raises(InvalidArgument, match="as many positions"):
        lower_bound([{}], [])
    with pytest.raises(InvalidArgument, match="more than 1"):
        lower_bound([{"a": 0.0, "b": 0.0}], [{"a": -1.0, "b": -1.0}])
    with pytest.raises(InvalidArgument, match="no numbers"):
        lower_bound([{"a": float("nan")}], [{"a": -1.0}])
