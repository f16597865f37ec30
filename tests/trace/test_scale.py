"""The drawn score: what is seen never contradicts the numbers."""

from hypothesis import given
from hypothesis import strategies as st

from memsluice.operations.trace.scale import SCORE, THRESHOLD, scale

numbers = st.floats(-1, 1, allow_nan=False)


def test_a_score_above_its_window_is_drawn_as_it_is() -> None:
    """Mean, one deviation to both sides, threshold and score stand where their numbers are; the ends are labelled."""
    drawn = scale(0.9, 0.7, 0.5, 0.1, cells=26)
    assert drawn.cells == "·[────μ───]····│········●·"
    assert (round(drawn.low, 3), round(drawn.high, 3)) == (0.37, 0.93)


def test_without_a_window_only_score_and_declared_threshold_are_drawn() -> None:
    """A window that is not full has no mean yet: none is drawn."""
    assert set(scale(0.2, 0.6).cells) == {SCORE, THRESHOLD, "·"}


@given(numbers, numbers, st.none() | numbers, st.floats(0, 1), st.integers(8, 60))
def test_score_and_threshold_stand_in_the_order_of_their_numbers(score, threshold, mu, sigma, cells) -> None:
    """However close they are, and whatever else is drawn, the score is seen on its own side of the threshold."""
    drawn = scale(score, threshold, mu, None if mu is None else sigma, cells).cells
    assert len(drawn) == cells
    assert drawn.count(SCORE) == 1
    if score == threshold:
        assert THRESHOLD not in drawn
    else:
        assert (drawn.index(SCORE) > drawn.index(THRESHOLD)) == (score > threshold)
