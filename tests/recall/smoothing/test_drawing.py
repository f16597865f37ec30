"""What each run is shown: so many, uniformly, anew, and of an author all or nothing."""

from collections import Counter
from itertools import combinations
from random import Random

import pytest

from memsluice.recall.smoothing.certificate import Plan
from memsluice.recall.smoothing.drawing import by_entry, drawn

DRAWS = 6_000


def test_every_choice_is_equally_likely() -> None:
    """Each of the C(5, 2) draws comes up about as often (chi-squared, 9 degrees of freedom, far below one in 10^6)."""
    plan = Plan(pool=5, shown=2, runs=99)
    found, source = Counter[tuple[int, ...]](), Random(3)
    while found.total() < DRAWS:
        found.update(drawn(by_entry(range(5)), plan, source))
    expected = found.total() / 10
    assert set(found) == set(combinations(range(5), 2))
    assert sum((many - expected) ** 2 / expected for many in found.values()) < 45


def test_runs_are_drawn_anew() -> None:
    """Two runs of one recall are no copies of each other, and no entry comes twice in one."""
    runs = drawn(by_entry(range(40)), Plan(40, 5, 9), Random(1))
    assert len(set(runs)) > 1
    assert all(len(set(run)) == 5 for run in runs)


def test_nothing_behind_the_pool_is_shown() -> None:
    """The certificate counts the pool: what was recalled beyond it is in no draw."""
    runs = drawn(by_entry(range(60)), Plan(10, 5, 99), Random(2))
    assert max(max(run) for run in runs) == 9


def test_an_author_is_shown_whole_or_not_at_all() -> None:
    """A stratum's entries come together, in their order: what an author wrote elsewhere changes no other's chances."""
    strata = [("a1", "a2", "a3"), ("b1",), ("c1", "c2")]
    for run in drawn(strata, Plan(3, 2, 50), Random(4)):
        assert run in {("a1", "a2", "a3", "b1"), ("a1", "a2", "a3", "c1", "c2"), ("b1", "c1", "c2")}


@pytest.mark.parametrize("available", [0, 1, 3])
def test_a_store_with_less_than_a_run_is_shown_gives_what_it_has(available) -> None:
    """Too few entries are no error: each run is shown all of them."""
    runs = drawn(by_entry(range(available)), Plan(20, 5, 3), Random(5))
    assert runs == [tuple(range(available))] * 3
