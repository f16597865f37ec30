"""One run of a task for all who wait for it, where each needs a run that began after he asked."""

import threading
from collections.abc import Callable
from copy import copy


class Joined:
    """Runs a task, one run at a time; those who ask while one is under way share the next. Safe for several threads."""

    def __init__(self, task: Callable[[], None]) -> None:
        self._task = task
        self._turn = threading.Condition()
        self._begun = self._ended = 0
        self._running = False
        self._failed: BaseException | None = None
        """How the run that ended last failed."""

    def run(self) -> None:
        """Return once a run has ended that began after this call. Raises what that run raised."""
        with self._turn:
            wanted = self._begun + 1
            while self._running and self._ended < wanted:
                self._turn.wait()
            if self._ended >= wanted and self._failed is None:
                return
            if self._ended >= wanted and isinstance(self._failed, Exception):
                raise copy(self._failed)  # each thread its own: a traceback is of one thread
            self._running = True
            self._begun += 1
        failed: BaseException | None = None
        try:
            self._task()
        except BaseException as error:
            failed = error
            raise
        finally:
            with self._turn:
                self._running, self._ended = False, self._begun
                self._failed = None if failed is None else failed.with_traceback(None)
                self._turn.notify_all()
