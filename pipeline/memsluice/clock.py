"""The wall clock, for the edges to inject; the core never sees it."""

import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns Unix milliseconds."""


def wall_ms() -> int:
    """Return the time in Unix milliseconds."""
    return time.time_ns() // 1_000_000
