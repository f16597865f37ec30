"""Daemon threads that run a stage's blocking calls, started in order.

Not a ``ThreadPoolExecutor``: the interpreter joins those at exit, so a stage that hangs on a dead sink would keep
the process alive for ever.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

_Job = tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[..., Any], tuple[Any, ...]]


class StageThreads:
    """``threads`` threads that take calls in order. The caller bounds how many calls wait."""

    def __init__(self, name: str, threads: int = 1) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True) for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def submit(self, function: Callable[..., Any], *arguments: Any) -> "asyncio.Future[Any]":
        """Call ``function(*arguments)`` in a thread; the future gives what it returns, or raises what it raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put((loop, future, function, arguments))
        return future

    def close(self) -> None:
        """Let each thread end after the call it is in. Does not wait for them."""
        for _ in self._threads:
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            loop, future, function, arguments = job
            result: Any = None
            error: BaseException | None = None
            try:
                result = function(*arguments)
            except BaseException as raised:  # carried to the loop, where it ends the worker
                error = raised
            with contextlib.suppress(RuntimeError):  # the loop is gone: the worker has been stopped meanwhile
                loop.call_soon_threadsafe(_settle, future, result, error)


def _settle(future: "asyncio.Future[Any]", result: Any, error: BaseException | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    elif isinstance(error, StopIteration):
        future.set_exception(RuntimeError("the stage raised StopIteration"))  # a future refuses it
    else:
        future.set_exception(error)
