"""A thread in which everything is done that belongs to one thread, such as a connection to SQLite."""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import ParamSpec, TypeVar

from memsluice.errors import WriterClosed

_P = ParamSpec("_P")
_T = TypeVar("_T")


class OneThread:
    """Runs calls one after the other, in one thread; a call from within that thread runs at once."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="memsluice-gate")
        self._inside = self._pool.submit(threading.get_ident).result()
        self._process = os.getpid()
        self._closed = False

    def run(self, call: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
        """Return what the call returns, or raise what it raises.

        Raises WriterClosed after :meth:`close`, and in a process that was forked: the thread is not in it.
        """
        if os.getpid() != self._process:
            raise WriterClosed("the gate was opened before this process was forked: open one here", event_id="")
        if threading.get_ident() == self._inside:
            return call(*args, **kwargs)
        try:
            doing = self._pool.submit(self._unless_closed, partial(call, *args, **kwargs))
        except RuntimeError:
            raise WriterClosed("the gate is closed", event_id="") from None
        return doing.result()

    def _unless_closed(self, call: Callable[[], _T]) -> _T:
        if self._closed:
            raise WriterClosed("the gate is closed", event_id="")
        return call()

    def close(self, last: Callable[[], None]) -> None:
        """Do a last thing and end the thread; what waits for its turn raises WriterClosed. Again it does nothing."""

        def end() -> None:
            if not self._closed:
                self._closed = True
                last()

        if os.getpid() == self._process:
            with suppress(RuntimeError):  # the pool has ended
                self._pool.submit(end).result()
            self._pool.shutdown()
