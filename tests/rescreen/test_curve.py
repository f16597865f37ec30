"""The curve by hand: area, interval, points, and the drawing."""

import math

import pytest

from memsluice.operations.rescreen.curve import Z_95, RocPoint, area, chart, interval, points


def test_the_area_by_hand() -> None:
    """Of the six pairs of {1, 3} good and {2, 3, 4} bad, bad is above in four and level in one: 4.5 / 6."""
    assert area([1, 3], [2, 3, 4]) == pytest.approx(4.5 / 6)
    assert area([0, 0], [1]) == 1.0
    assert area([1], [0]) == 0.0
    assert area([5, 5], [5]) == 0.5


def test_the_points_by_hand() -> None:
    """One point a score, highest first, from nothing held to everything held; ties move both at once."""
    assert points([1.0, 2.0], [2.0, 3.0]) == [
        RocPoint(math.inf, 0, 0), RocPoint(3.0, 0.5, 0), RocPoint(2.0, 1.0, 0.5), RocPoint(1.0, 1.0, 1.0),
    ]  # fmt: skip


@pytest.mark.parametrize(("estimate", "good", "bad"), [(0.75, 10, 6), (0.5, 3, 40), (0.93, 200, 50)])
def test_the_bounds_solve_newcombes_equation(estimate: float, good: int, bad: int) -> None:
    """Each bound lies z standard errors of its own from the estimate."""
    for t in interval(estimate, good, bad):
        extra = (good + bad) / 2 - 1
        variance = t * (1 - t) * (1 + extra * ((1 - t) / (2 - t) + t / (1 + t))) / (good * bad)
        assert abs(t - estimate) == pytest.approx(Z_95 * math.sqrt(variance), rel=1e-6)


def test_few_labels_say_little_even_if_all_agree() -> None:
    """Perfect separation of two and two is still an interval down to below one half; more labels narrow it."""
    low, high = interval(1.0, 2, 2)
    assert (low < 0.5, high) == (True, 1.0)
    assert interval(1.0, 50, 50)[0] > 0.9
    assert interval(0.0, 2, 2)[0] == 0.0


def test_the_chart_is_as_wide_as_it_says_and_holds_both_ends() -> None:
    """A perfect curve runs along the left and the top, chance is dotted; no line is wider than a terminal's column."""
    lines = chart(points([0.0], [1.0]))
    assert lines[0] == "100 % │" + "█" * 41
    assert all(line[7] == "█" for line in lines[:11])
    assert "·" in lines[5]
    assert max(map(len, lines)) <= 60
