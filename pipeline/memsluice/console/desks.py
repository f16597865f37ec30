"""Desks that requests borrow: a desk is used from one thread at a time, and opening one on a broker takes a while."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from threading import Lock
from typing import Generic, TypeVar

from memsluice.deployment.home import Home
from memsluice.operations.held import desk as held_desk
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.target import opened

IDLE_MAX = 4
"""Desks that are kept open for the next request."""
D = TypeVar("D")


class Desks(Generic[D]):
    """Gives whoever asks a desk of his own. One that failed is closed, and the next request opens another.

    ``opening`` gives a desk, and whether another thread may go on with it: an embedded log is its own thread's.
    """

    def __init__(self, opening: Callable[[], AbstractContextManager[tuple[D, bool]]]) -> None:
        self.opening = opening
        self._idle: list[tuple[D, bool, ExitStack]] = []
        self._lock = Lock()

    @contextmanager
    def borrowed(self) -> Iterator[D]:
        """Give a desk. Raises ConfigError where there is neither a stack nor a log, BrokerUnavailable."""
        with self._lock:
            found = self._idle.pop() if self._idle else None
        desk, lasting, closing = found or self._opened()
        try:
            yield desk
        except BaseException:
            with suppress(Exception):
                closing.close()
            raise
        with self._lock:
            if kept := lasting and len(self._idle) < IDLE_MAX:
                self._idle.append((desk, lasting, closing))
        if not kept:
            closing.close()

    def _opened(self) -> tuple[D, bool, ExitStack]:
        closing = ExitStack()
        desk, lasting = closing.enter_context(self.opening())
        return desk, lasting, closing

    def close(self) -> None:
        """Close the desks that nobody has."""
        with self._lock:
            idle, self._idle = self._idle, []
        for *_, closing in idle:
            closing.close()


def held_desks(home: Path | None) -> Desks[HeldDesk]:
    """Return the desks of a home's running stack or embedded log, or of the deployment that the environment names."""

    def on_kafka(named: Path | None, closing: ExitStack) -> tuple[HeldDesk, bool]:
        return held_desk.on_kafka(named, closing), True

    def embedded(place: Home, closing: ExitStack) -> tuple[HeldDesk, bool]:
        return held_desk.embedded(place, closing), False

    return Desks(lambda: opened(home, on_kafka, embedded))
