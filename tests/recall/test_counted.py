"""To count what a store has takes it long: seldom, and no recall waits for a large count."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.patience import HANG_S

from memsluice.errors import BrokerUnavailable, StoreUnavailable
from memsluice.recall.counted import AT_ONCE_MAX, EVERY_S, Counted

PLACE, OTHER = ("acme", "guidance", "default"), ("bakery", "guidance", "default")
LARGE = AT_ONCE_MAX + 1


class Count:
    """Says how many are missing, and counts how often it was asked."""

    def __init__(self, *missing: int) -> None:
        self.missing = list(missing)
        self.asked = 0

    def __call__(self) -> int:
        """Return the next number."""
        self.asked += 1
        return self.missing.pop(0)


def test_a_small_place_is_counted_once_a_minute_and_waited_for() -> None:
    """Who asks once, or once a day, is told what is missing now."""
    now, count = [0.0], Count(3, 1)
    counted = Counted(lambda: now[0])
    assert [counted.missing(PLACE, AT_ONCE_MAX, count) for _ in range(5)] == [3] * 5
    assert count.asked == 1
    now[0] = EVERY_S
    assert counted.missing(PLACE, AT_ONCE_MAX, count) == 1


def test_questions_that_come_together_wait_for_one_count() -> None:
    """The second is not told that nothing is missing because the first has not counted yet."""
    begun, going, counted = threading.Event(), threading.Event(), Counted(lambda: 0.0)

    def slow() -> int:
        begun.set()
        assert going.wait(HANG_S)
        return 7

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(counted.missing, PLACE, 1, slow)
        assert begun.wait(HANG_S)
        second = pool.submit(counted.missing, PLACE, 1, Count())
        assert counted.missing(OTHER, 1, Count(2)) == 2  # another place waits for nothing
        going.set()
        assert (first.result(HANG_S), second.result(HANG_S)) == (7, 7)


def test_a_large_place_is_counted_beside_the_recalls_one_at_a_time() -> None:
    """No recall waits, and a burst of tenants does not have the store count for all of them at once."""
    now, going, other = [0.0], threading.Event(), Count(5)
    counted = Counted(lambda: now[0])

    def slow() -> int:
        assert going.wait(HANG_S)
        return 7

    assert counted.missing(PLACE, LARGE, slow) == 0
    assert counted.missing(OTHER, LARGE, other) == 0
    assert other.asked == 0
    going.set()
    counted.settle(HANG_S)
    assert counted.missing(PLACE, LARGE, slow) == 7
    counted.missing(OTHER, LARGE, other)
    counted.settle(HANG_S)
    assert counted.missing(OTHER, LARGE, other) == 5


def test_a_count_that_fails_fails_who_waited_and_is_tried_again() -> None:
    """A store that is away fails the question; the next one counts, and is not told that nothing is missing."""

    def fails() -> int:
        raise StoreUnavailable("away")

    counted = Counted(lambda: 0.0)
    for _ in range(2):
        with pytest.raises(StoreUnavailable):
            counted.missing(PLACE, 1, fails)
    assert counted.missing(PLACE, 1, Count(2)) == 2


def test_a_count_beside_that_fails_leaves_the_last_and_waits_its_turn(capsys) -> None:
    """Whatever it raises is told in the log; another tenant's count comes before it is tried again."""
    now = [0.0]

    def fails() -> int:
        raise BrokerUnavailable("away")

    counted = Counted(lambda: now[0])
    counted.missing(PLACE, LARGE, Count(4))
    counted.settle(HANG_S)
    now[0] = EVERY_S
    assert counted.missing(PLACE, LARGE, fails) == 4
    counted.settle(HANG_S)
    assert "BrokerUnavailable" in "".join(capsys.readouterr())
    untried = Count()
    assert counted.missing(PLACE, LARGE, untried) == 4
    counted.settle(HANG_S)
    assert untried.asked == 0


def test_nothing_is_counted_beside_what_was_closed() -> None:
    """Store and broker are closed then."""
    counted, late = Counted(lambda: 0.0), Count()
    counted.close()
    assert counted.missing(PLACE, LARGE, late) == 0
    counted.settle(HANG_S)
    assert late.asked == 0
