"""Planted crashes, for tests: ``MEMSLUICE_CRASH_AT=<point>:<n>`` kills the process at the n-th pass of a point.

A test facility. Without the variable every point is a comparison of two strings. The death is ``SIGKILL``: no
handler, no flush, no commit. What the point's name says has happened *has* happened: what :meth:`Faults.reach` is told
to wait for is confirmed by the broker first.
"""

import os
import signal
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from memsluice.errors import ConfigError

VARIABLE: Final = "MEMSLUICE_CRASH_AT"

BEFORE_CHANGELOG: Final = "before-changelog"
AFTER_CHANGELOG: Final = "after-changelog-before-output"
AFTER_OUTPUT: Final = "after-output-before-commit"
AFTER_PROCESS: Final = "after-process-before-output"
AFTER_COMMIT: Final = "after-commit-before-settle"
POINTS: Final = (BEFORE_CHANGELOG, AFTER_CHANGELOG, AFTER_OUTPUT, AFTER_PROCESS, AFTER_COMMIT)


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Faults:
    """At most one armed point. ``crash`` is what happens there (default: kill -9 of this process)."""

    def __init__(self, point: str = "", passes: int = 1, crash: Callable[[], None] = _kill) -> None:
        if point and point not in POINTS:
            raise ConfigError(f"{VARIABLE}: no point {point!r}; there are {', '.join(POINTS)}")
        if passes < 1:
            raise ConfigError(f"{VARIABLE}: the pass must be 1 or more")
        self.point = point
        self._left = passes
        self._crash = crash

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> "Faults":
        """Read ``MEMSLUICE_CRASH_AT``; unset or empty arms nothing. Raises ConfigError."""
        text = environment.get(VARIABLE, "")
        if not text:
            return cls()
        point, _, passes = text.partition(":")
        if not (passes or "1").isdecimal():
            raise ConfigError(f"{VARIABLE}: {text!r} is not <point>:<n>")
        return cls(point, int(passes or "1"))

    async def reach(self, point: str, confirmed: Callable[[], Awaitable[None]] | None = None) -> None:
        """Pass a point; at the armed pass wait until what was sent is ``confirmed``, and crash."""
        if point != self.point:
            return
        self._left -= 1
        if self._left == 0:
            if confirmed is not None:
                await confirmed()
            self._crash()
