"""The wall clock, for the edges to inject, and the one parser of durations; the core sees neither."""

import re
import time
from collections.abc import Callable

Clock = Callable[[], int]
"""Returns Unix milliseconds."""
UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d{1,6}(?:\.\d{1,3})?) ?(ms|s|m|h|d)", re.ASCII)


def wall_ms() -> int:
    """Return the time in Unix milliseconds."""
    return time.time_ns() // 1_000_000


def duration_ms(text: str) -> int | None:
    """Return the milliseconds of ``90s``, ``30m``, ``24h``, ``7d`` or ``1.5d``; None where a text is no duration."""
    found = _DURATION.fullmatch(text.strip())
    return None if found is None else round(float(found[1]) * UNITS_MS[found[2]])
