"""The threshold: it flags what is low among clean prompts, no more of them than alpha, and it follows drift."""

import numpy as np
import pytest

from memsluice.errors import InvalidArgument
from memsluice.recall.contamination.threshold import Tau, settings

RNG = np.random.default_rng(4)


def calibrated(scores, **options) -> Tau:
    """Return the threshold of some clean scores."""
    tau = Tau(settings(**options))
    for number, one in enumerate(scores):
        tau = tau.clean(f"p{number}", float(one))
    return tau


def test_an_answer_that_the_context_did_not_move_is_flagged() -> None:
    """Far below all clean scores: flagged; among them: not."""
    tau = calibrated(RNG.normal(5, 1, 200))
    assert tau.judge(0.01).flagged
    assert not tau.judge(5.0).flagged


def test_without_clean_prompts_nothing_is_flagged() -> None:
    """Nobody knows what is low yet."""
    assert not Tau().judge(0.0).flagged


def test_what_scores_as_clean_prompts_do_is_not_flagged() -> None:
    """A score that is all of the clean prompts' own is no lower than they are, whatever digits it has."""
    tau = calibrated([np.log(7)] * 100)
    assert not tau.judge(np.log(7)).flagged
    assert tau.judge(np.log(7) - 1e-5).flagged


@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_no_more_clean_prompts_are_flagged_than_alpha(alpha) -> None:
    """Of 4,000 further clean prompts about alpha, at most a third more."""
    tau = calibrated(RNG.gamma(2, 2, 400), alpha=alpha)
    flagged = sum(tau.judge(float(one)).flagged for one in RNG.gamma(2, 2, 4_000))
    assert flagged / 4_000 <= alpha * 4 / 3


def test_the_threshold_follows_the_clean_prompts() -> None:
    """After the model changed, what was usual before is low: the window moves on, and the same score is judged anew."""
    tau = calibrated(RNG.normal(2, 0.2, 400))
    assert not tau.judge(2.0).flagged
    for number in range(400):
        tau = tau.clean(f"later-{number}", float(RNG.normal(6, 0.2)))
    assert tau.judge(2.0).flagged


def test_the_level_falls_where_more_is_flagged_than_the_budget_allows() -> None:
    """With gamma the level moves within its bounds; without, it stays."""
    tau = calibrated(RNG.normal(5, 1, 200), gamma=0.01)
    for number in range(50):
        tau = tau.seen(f"s{number}", 0.0, flagged=True)
    assert tau.judge(5.0).level < 0.05
    assert calibrated([1.0]).seen("s", 0.0, flagged=True).judge(5.0).level == 0.05


@pytest.mark.parametrize("score", [float("inf"), float("-inf")])
def test_infinitely_far_is_far_and_can_be_kept(score) -> None:
    """A context may bring a token that cannot come without it. The row that is kept of it has finite numbers."""
    tau = Tau(settings(0.05))
    for number in range(100):
        tau = tau.clean(str(number), score if number % 2 else float(number))
    assert np.isfinite(tau.state.dumped().values).all()
    assert tau.judge(float("-inf")).flagged is (score > 0)
    assert not tau.judge(float("inf")).flagged


def test_no_number_is_no_score() -> None:
    """A model that gave NaN must not become a clean prompt, nor an answer that nothing moved."""
    for use in (Tau().judge, lambda score: Tau().clean("x", score), lambda score: Tau().seen("x", score, flagged=True)):
        with pytest.raises(InvalidArgument, match="score"):
            use(float("nan"))
