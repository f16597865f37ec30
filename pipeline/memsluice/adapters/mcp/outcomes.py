"""What became of one caller's writes, as far as this process heard: what its resources show."""

import threading
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from memsluice.errors import MemsluiceError, NotRemembered
from memsluice.gate.reasons import words
from memsluice.memory.outcome import Outcome, Status

KEPT_MAX = 1_000
"""Writes that are told of; of more the oldest are forgotten."""
ABOUT = (
    "What became of your own writes that this process made, when it made them: a reviewer may have decided since. "
    "Nothing of other people's, and nothing of an earlier process, is here; `memsluice quarantine list` and "
    "`memsluice trace ID` tell an operator all."
)


class Outcomes:
    """Safe for several threads. ``held_days`` is how long a held write can be decided, None where that is unknown."""

    def __init__(self, now: Callable[[], datetime], held_days: int | None = None) -> None:
        self._now = now
        self._held = None if held_days is None else timedelta(days=held_days)
        self._lock = threading.Lock()
        self._told: OrderedDict[str, dict[str, Any]] = OrderedDict()

    def note(self, result: Outcome | MemsluiceError) -> None:
        """Keep what became of a write. Of one that can be no event there is nothing to tell."""
        if not isinstance(result, Outcome | NotRemembered) or not result.event_id:
            return
        at = self._now().astimezone(UTC)
        told: dict[str, Any] = {
            "event_id": result.event_id,
            "status": (result.status.value if isinstance(result, Outcome) else result.became) or "unknown",
            "reasons": [{"code": code, "meaning": words(code)} for code in result.reasons],
            "at": at.isoformat(timespec="seconds"),
        }
        if told["status"] == Status.HELD and self._held is not None:
            told["until"] = (at + self._held).isoformat(timespec="seconds")
        with self._lock:
            self._told[result.event_id] = told
            if len(self._told) > KEPT_MAX:
                self._told.popitem(last=False)

    def held(self) -> dict[str, Any]:
        """Return those that were held, the latest first, and what that says."""
        with self._lock:
            held = [one for one in self._told.values() if one["status"] == Status.HELD]
        return {"about": ABOUT, "held": held[::-1]}

    def of(self, event_id: str) -> dict[str, Any] | None:
        """Return what became of one write; None where that is not known here."""
        with self._lock:
            found = self._told.get(event_id)
        return None if found is None else {"about": ABOUT, **found}
