"""One daemon thread that runs a stage's blocking calls, one after the other.

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


class StageThread:
    """Runs functions in order. The caller awaits each result, so the queue never holds more than it submitted."""

    def __init__(self, name: str) -> None:
        self._jobs: SimpleQueue[_Job | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    async def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call ``function(*arguments)`` in the thread and return what it returns, or raise what it raises."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put((loop, future, function, arguments))
        return await future

    def close(self) -> None:
        """Let the thread end after the call it is in. Does not wait for it."""
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
