"""What telemetry makes of the stages' work, put off until some of it can be made in one go.

Between two events a processor does other things, and what telemetry's code and tables were is in none of its caches any
more: at once, an event's metrics and spans cost several times what each of a row of them does.
"""

from collections import deque
from collections.abc import Callable
from threading import Event, Lock, Thread
from typing import Final

from memsluice.log import get_logger

LOG = get_logger(__name__)

MANY: Final = 64
"""Records of which something waits; with that of one more batch of theirs, they are all that is kept in memory."""
EVERY_S: Final = 1.0
"""How long something waits where fewer come. Whoever asks for metrics does not wait: it is done then."""


class Later:
    """Does jobs in the order in which they came, once they are of ``many`` records; 1: at once. For several threads."""

    def __init__(self, many: int = 1) -> None:
        self._many = many
        self._waiting: deque[Callable[[], None]] = deque()
        self._records = 0
        self._doing = Lock()
        self._ended = Event()
        if many > 1:
            Thread(target=self._now_and_then, name="telemetry-later", daemon=True).start()

    def put(self, job: Callable[[], None], records: int = 1) -> None:
        """Take a job about so many records. Never raises what a job does."""
        self._waiting.append(job)
        self._records += records  # of two threads one may not be counted: then EVERY_S is soon enough
        if self._records >= self._many:
            self.do()

    def do(self) -> None:
        """Do all that waits. A job that fails is a defect of ours: it is logged, and ends no stage."""
        with self._doing:
            self._records = 0
            while self._waiting:
                try:
                    self._waiting.popleft()()
                except Exception as error:
                    LOG.error("telemetry failed", error=type(error).__name__)

    def close(self) -> None:
        """Do what is left; what comes from now on is done at once."""
        self._many = 1
        self._ended.set()
        self.do()

    def _now_and_then(self) -> None:
        while not self._ended.wait(EVERY_S):
            if self._waiting:
                self.do()
