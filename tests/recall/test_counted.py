"""To count what a store has takes it long: seldom, beside the recalls, and no recall waits for a large count."""

import threading

import pytest

from memsluice.errors import StoreUnavailable
from memsluice.recall.counted import AT_ONCE_MAX, EVERY_S, Counted

PLACE, OTHER = ("acme", "guidance", "default"), ("bakery", "guidance", "default")


class Count:
    """Says how many are missing, and counts how often it was asked."""

    def __init__(self, *missing: int) -> None:
        self.missing = list(missing)
        self.asked = 0

    def __call__(self) -> int:
        """Return the next number."""
        self.asked += 1
        return self.missing.pop(0)


def test_the_first_count_of_a_small_place_is_waited_for_and_stands_for_a_while() -> None:
    """A question asked once is told at once; many questions cost one count a minute."""
    now, count = [0.0], Count(3, 1)
    counted = Counted(lambda: now[0])
    assert [counted.missing(PLACE, AT_ONCE_MAX, count) for _ in range(5)] == [3] * 5
    assert count.asked == 1
    now[0] = EVERY_S
    assert counted.missing(PLACE, AT_ONCE_MAX, count) == 3  # renewed beside it
    counted.settle()
    assert counted.missing(PLACE, AT_ONCE_MAX, count) == 1
    assert count.asked == 2


def test_a_large_place_is_counted_beside_the_recalls_one_at_a_time() -> None:
    """No recall waits, and a burst of tenants does not have the store count for all of them at once."""
    going, counted, other = threading.Event(), Counted(lambda: 0.0), Count(5)

    def slow() -> int:
        assert going.wait(30)
        return 7

    assert counted.missing(PLACE, AT_ONCE_MAX + 1, slow) == 0
    assert counted.missing(OTHER, AT_ONCE_MAX + 1, other) == 0
    assert other.asked == 0
    going.set()
    counted.settle()
    assert counted.missing(PLACE, AT_ONCE_MAX + 1, slow) == 7
    counted.missing(OTHER, AT_ONCE_MAX + 1, other)
    counted.settle()
    assert counted.missing(OTHER, AT_ONCE_MAX + 1, other) == 5


def test_a_count_that_fails_is_tried_again() -> None:
    """A store that is away fails the question that waited; what was counted beside one leaves the last count."""

    def fails() -> int:
        raise StoreUnavailable("away")

    counted = Counted(lambda: 0.0)
    with pytest.raises(StoreUnavailable):
        counted.missing(PLACE, 1, fails)
    assert counted.missing(PLACE, 1, fails) == 0  # beside it from now on
    counted.settle()
    assert counted.missing(PLACE, 1, Count(2)) == 0
    counted.settle()
    assert counted.missing(PLACE, 1, Count(9)) == 2
