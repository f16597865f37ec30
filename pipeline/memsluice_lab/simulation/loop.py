"""An event loop that runs nothing by itself: the scheduler gives it one step after another, in a time of its own.

Within a process the order is asyncio's own, first in, first out. Which process goes on, and when, is the scheduler's.
A process that is not stepped is paused; one whose loop was killed is dead: nothing of it runs any more.
"""

import asyncio
import heapq
from asyncio import events
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any


class Clock:
    """The one time of a history, in seconds since it began. Only the scheduler moves it."""

    def __init__(self) -> None:
        self.now_s = 0.0


class Job:
    """A call that a process makes in a thread of its own: the scheduler says when it runs."""

    __slots__ = ("call", "future")

    def __init__(self, call: Callable[[], Any], future: "asyncio.Future[Any]") -> None:
        self.call = call
        self.future = future


class WorkerLoop(asyncio.AbstractEventLoop):
    """The loop of one process. ``told`` hears of exceptions that nobody awaited."""

    def __init__(self, clock: Clock, told: Callable[[BaseException], None]) -> None:
        self._clock = clock
        self._told = told
        self._ready: deque[asyncio.Handle] = deque()
        self._timers: list[tuple[float, int, asyncio.TimerHandle]] = []
        self._number = 0
        self.jobs: deque[Job] = deque()
        self.dead = False

    # --- for the scheduler ---

    def kill(self) -> None:
        """End the process: whatever was to be done is not done."""
        self.dead = True
        self._ready.clear()
        self._timers.clear()
        self.jobs.clear()

    def wake(self) -> None:
        """Make callbacks ready whose time has come."""
        while self._timers and (self._timers[0][0] <= self._clock.now_s or self._timers[0][2].cancelled()):
            _, _, handle = heapq.heappop(self._timers)
            if not handle.cancelled():
                self._ready.append(handle)

    def due_s(self) -> float | None:
        """Return when the next timer fires; None where there is none."""
        while self._timers and self._timers[0][2].cancelled():
            heapq.heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def is_ready(self) -> bool:
        """Whether a step would run something."""
        return bool(self._ready)

    def run(self, steps: int) -> int:
        """Run at most so many callbacks; return how many were run."""
        done = 0
        before = events._get_running_loop()
        events._set_running_loop(self)
        try:
            ready = self._ready
            while ready and done < steps:
                handle = ready.popleft()
                if not handle.cancelled():
                    handle._run()
                    done += 1
        finally:
            events._set_running_loop(before)
        return done

    # --- what asyncio asks of a loop ---

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:  # type: ignore[override]
        """Queue a callback."""
        handle = asyncio.Handle(callback, args, self, context)
        if not self.dead:
            self._ready.append(handle)
        return handle

    call_soon_threadsafe = call_soon  # type: ignore[assignment]

    def call_later(self, delay: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]
        """Queue a callback for later."""
        return self.call_at(self._clock.now_s + delay, callback, *args, context=context)

    def call_at(self, when: float, callback: Any, *args: Any, context: Context | None = None) -> Any:  # type: ignore[override]
        """Queue a callback for a time."""
        handle = asyncio.TimerHandle(when, callback, args, self, context)
        if not self.dead:
            self._number += 1
            heapq.heappush(self._timers, (when, self._number, handle))
        return handle

    def _timer_handle_cancelled(self, handle: asyncio.TimerHandle) -> None:
        """Do nothing: a cancelled timer is passed over when its time comes."""

    def time(self) -> float:
        """Return the history's time, in seconds."""
        return self._clock.now_s

    def create_future(self) -> "asyncio.Future[Any]":
        """Return a future of this loop."""
        return asyncio.Future(loop=self)

    def create_task(self, coro: Any, *, name: Any = None, context: Any = None) -> Any:
        """Return a task of this loop."""
        return asyncio.Task(coro, loop=self, name=name, context=context)

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """Queue a call for a thread: the scheduler runs it."""
        future = self.create_future()
        if not self.dead:
            self.jobs.append(Job(lambda: func(*args), future))
        return future

    def get_debug(self) -> bool:
        """Return False: asyncio's own checks are off."""
        return False

    def is_running(self) -> bool:
        """Whether a callback of this loop is being run."""
        return events._get_running_loop() is self

    def is_closed(self) -> bool:
        """Whether the process is dead."""
        return self.dead

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """Tell of an exception that nobody awaited; a dead process says nothing."""
        error = context.get("exception")
        if error is not None and not self.dead:
            self._told(error)
