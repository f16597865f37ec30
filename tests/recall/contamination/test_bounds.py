"""The theorems of seed 004: where they hold, and where the paper's own numbers refute them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsluice.errors import InvalidArgument
from memsluice.recall.contamination.bounds import (
    chi_squared,
    claim_holds,
    claimed_collapse,
    collapse,
    missed_at_most,
    prompts_needed,
)
from memsluice.recall.contamination.divergence import score

P, Q, ETA = np.array([0.999, 0.001]), np.array([0.0, 1.0]), 0.1


def divergence(p, q, eta) -> float:
    """Return KL of the mixture to P."""
    return score(np.log([(1 - eta) * p + eta * q]), np.log([p]))


def test_theorem_2_is_false_for_evidence_that_the_model_held_unlikely() -> None:
    """The counter-example: .371 nats where the paper allows .0056."""
    found = divergence(P, Q, ETA)
    assert found == pytest.approx(0.371, abs=5e-4)
    assert claimed_collapse(ETA) == pytest.approx(0.0056, abs=5e-5)
    assert found > claimed_collapse(ETA)
    assert not claim_holds(ETA, chi_squared(Q, P))
    assert found <= collapse(ETA, chi_squared(Q, P))


distributions = st.lists(st.floats(0.01, 1), min_size=4, max_size=4).map(lambda some: np.array(some) / sum(some))


@given(distributions, distributions, st.floats(0.001, 0.5))
def test_what_holds_of_it_holds_for_every_mixture(p, q, eta) -> None:
    """The bound by chi-squared always; the paper's wherever its condition, which the paper does not state, is met."""
    chi2, found = chi_squared(q, p), divergence(p, q, eta)
    assert found <= collapse(eta, chi2) + 1e-9
    if claim_holds(eta, chi2):
        assert found <= claimed_collapse(eta) + 1e-9


def test_theorem_4_asks_for_twenty_thousand_prompts() -> None:
    """With the paper's own gamma, T, gap and epsilon: 20,986, not 500."""
    assert prompts_needed(1, 64, 0.3, 0.05) == 20_986


def test_a_single_prompt_of_64_tokens_is_hardly_told_apart_by_the_lemma() -> None:
    """At the paper's gap the tail bound says next to nothing of one prompt; a larger gap says more."""
    assert missed_at_most(1, 64, 0.3) > 0.99
    assert missed_at_most(1, 64, 60.0) < 0.05


def test_arguments_out_of_range_are_refused() -> None:
    """No bound for a mixture that is none, or a gap of nothing."""
    with pytest.raises(InvalidArgument, match="argument eta"):
        claimed_collapse(0.6)
    with pytest.raises(InvalidArgument, match="argument chi2"):
        collapse(0.1, -1)
    with pytest.raises(InvalidArgument, match="above 0"):
        prompts_needed(1, 64, 0, 0.05)
    with pytest.raises(InvalidArgument, match="chi2"):
        collapse(0.1, float("nan"))
    with pytest.raises(InvalidArgument, match="gamma"):
        missed_at_most(0, 64, 0.3)


def test_evidence_of_no_weight_moves_nothing() -> None:
    """However far it lies from what the model held likely."""
    assert collapse(0, float("inf")) == 0
