"""One run for all who wait: nobody is told by a run that began before he asked."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.patience import HANG_S

from memsluice.errors import BrokerUnavailable
from memsluice.recall.joined import Joined


class Task:
    """Counts its runs; each waits until it is let go."""

    def __init__(self) -> None:
        self.runs = 0
        self.under_way = threading.Event()
        self.go = threading.Semaphore(0)
        self.error: Exception | None = None

    def __call__(self) -> None:
        """Run until let go; fail where it is to."""
        self.runs += 1
        self.under_way.set()
        assert self.go.acquire(timeout=HANG_S)
        if self.error is not None:
            raise self.error


def _waiting(joined: Joined, count: int) -> None:
    """Wait until so many threads wait for a run to end."""
    until = time.monotonic() + HANG_S
    while len(joined._turn._waiters) < count:  # type: ignore[attr-defined]
        assert time.monotonic() < until
        time.sleep(0.001)


def test_those_who_ask_meanwhile_share_the_next_run() -> None:
    """A run under way may have looked before they asked: they wait for another, and all of them for the same one."""
    task = Task()
    joined = Joined(task)
    with ThreadPoolExecutor(6) as pool:
        first = pool.submit(joined.run)
        assert task.under_way.wait(HANG_S)
        others = [pool.submit(joined.run) for _ in range(5)]
        _waiting(joined, 5)
        task.go.release()
        first.result(HANG_S)
        assert not any(other.done() for other in others)
        task.go.release()
        for other in others:
            other.result(HANG_S)
    assert task.runs == 2


def test_a_run_that_fails_fails_for_all_who_waited_for_it_and_for_nobody_else() -> None:
    """Where the broker is away nobody is answered, and each does not wait for his own timeout after the others'."""
    task = Task()
    joined = Joined(task)
    with ThreadPoolExecutor(3) as pool:
        first = pool.submit(joined.run)
        assert task.under_way.wait(HANG_S)
        others = [pool.submit(joined.run) for _ in range(2)]
        _waiting(joined, 2)
        task.go.release()
        first.result(HANG_S)
        task.error = BrokerUnavailable("away")
        task.go.release()
        for other in others:
            with pytest.raises(BrokerUnavailable, match="away"):
                other.result(HANG_S)
    assert task.runs == 2
    task.error = None
    task.go.release()
    joined.run()
    assert task.runs == 3
