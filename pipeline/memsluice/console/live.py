"""What changed, told to open pages at once: names and counts, never content. Between threads and the event loop."""

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from memsluice.errors import RequestRefused

LISTENERS_MAX = 200
OF_ONE_MAX = 10
"""Pages of one visitor that are told at once; a further one is refused, and shows what it showed."""


class Listener:
    """One open page. It is told that something may have changed, however often it did."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop, self._event = loop, asyncio.Event()

    def tell(self) -> None:
        """Wake the page up; from any thread."""
        self._loop.call_soon_threadsafe(self._event.set)

    async def waits(self, timeout_s: float) -> bool:
        """Wait until something may have changed, at most so long; return whether it may have."""
        try:
            await asyncio.wait_for(self._event.wait(), timeout_s)
        except TimeoutError:
            return False
        self._event.clear()
        return True


class Live:
    """The pages that are open."""

    def __init__(self) -> None:
        self._listeners: dict[Listener, str] = {}
        self._lock = Lock()

    @contextmanager
    def listening(self, name: str) -> Iterator[Listener]:
        """Give a listener of a visitor, within a running event loop. Raises RequestRefused where there are too many."""
        listener = Listener(asyncio.get_running_loop())
        with self._lock:
            if len(self._listeners) >= LISTENERS_MAX or Counter(self._listeners.values())[name] >= OF_ONE_MAX:
                raise RequestRefused(503, "busy", "too many pages are open: close some")
            self._listeners[listener] = name
        try:
            yield listener
        finally:
            with self._lock:
                del self._listeners[listener]

    def changed(self) -> None:
        """Tell every open page that something may have changed."""
        with self._lock:
            listeners = list(self._listeners)
        for one in listeners:
            try:
                one.tell()
            except RuntimeError:  # its loop ended with the server
                continue
