"""A tenant's calibration over time, from the audit: every scored write, where the line lay, and the phases. Pure.

Of a strategy of mean and deviation the value is the score and the line its threshold; of the conformal one the value is
-log10 of the p-value (2: one honest write in a hundred is as unusual) and the line -log10 of the level in force. Either
way what lies above the line is beyond what is usual. Bounded: the last POINTS_MAX points and CHANGES_MAX changes.
"""

import math
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Literal

from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Score, Usual, Verdict
from memsluice.events.records import Record
from memsluice.operations.trace.verdicts import read

POINTS_MAX = 10_000
CHANGES_MAX = 200
P_LEAST = 1e-6
Detector = Literal["default", "memsad"]


@dataclass(frozen=True, slots=True)
class ScoredWrite:
    """One scored write: when (Unix ms), its event, what was decided, its value, the line (None: none yet), the phase.

    ``size`` is how many reference scores counted. ``flagged`` is what the verdict says where it does not tell the line:
    of MEMSAD by ranks it has the p-value, and not the level.
    """

    at_ms: int
    event_id: str
    decision: str
    value: float
    line: float | None
    phase: str
    strategy: str
    size: int
    flagged: bool = False

    @property
    def ranked(self) -> bool:
        """Whether value and line are of ranks, and not of scores."""
        return self.strategy == "conformal"

    @property
    def beyond(self) -> bool:
        """Whether the write was beyond the line."""
        return self.flagged or (self.line is not None and self.value > self.line)


@dataclass(frozen=True, slots=True)
class PhaseChange:
    """A phase, and the time (Unix ms) and number of scored writes from which on it held."""

    at_ms: int
    number: int
    phase: str


@dataclass(slots=True)
class History:
    """What one detector's calibration did for one tenant; takes the audit's records in the order of their offsets."""

    tenant: str
    keyring: Keyring
    points: dict[Detector, deque[ScoredWrite]] = field(default_factory=dict)
    changes: dict[Detector, deque[PhaseChange]] = field(default_factory=dict)
    totals: dict[Detector, int] = field(default_factory=dict)
    read: int = 0
    unverified: int = 0
    _last: dict[tuple[str, int], int] = field(default_factory=dict)

    def take(self, record: Record) -> None:
        """Learn from one record; what is not this tenant's, or was sent before, says nothing."""
        self.read += 1
        if (record.key or b"") != self.tenant.encode():
            return
        verdict = read(self.keyring, record)
        if verdict is None:
            self.unverified += 1
            return
        place = (verdict.topic, verdict.partition)
        if verdict.offset <= self._last.get(place, -1):
            return
        self._last[place] = verdict.offset
        for name, point in (("default", _by_default(verdict)), ("memsad", _by_memsad(verdict))):
            if point is not None:
                self._add("default" if name == "default" else "memsad", point)

    def _add(self, detector: Detector, point: ScoredWrite) -> None:
        self.totals[detector] = self.totals.get(detector, 0) + 1
        points = self.points.setdefault(detector, deque(maxlen=POINTS_MAX))
        changes = self.changes.setdefault(detector, deque(maxlen=CHANGES_MAX))
        if not points or points[-1].phase != point.phase:
            changes.append(PhaseChange(point.at_ms, self.totals[detector], point.phase))
        points.append(point)

    @property
    def deciding(self) -> Detector | None:
        """The detector that decided the last scored write; None where none was."""
        last = {name: points[-1].at_ms for name, points in self.points.items()}
        if not last:
            return None
        return "default" if last.get("default", -1) >= last.get("memsad", -1) else "memsad"


def _by_default(verdict: Verdict) -> ScoredWrite | None:
    told = verdict.usual
    if not told:
        return None
    value, line = told.score, told.threshold
    if told.p is not None and told.level is not None:
        value, line = _rarity(told.p), _rarity(told.level)
    return _point(verdict, told, value, line, told.size)


def _by_memsad(verdict: Verdict) -> ScoredWrite | None:
    told = verdict.score
    if not told or told.score is None:
        return None
    if told.p is None:
        return _point(verdict, told, told.score, told.threshold, told.window_size)
    flagged = verdict.has("memsad.above_threshold")
    return replace(_point(verdict, told, _rarity(told.p), None, told.window_size), flagged=flagged)


def _point(verdict: Verdict, told: Score | Usual, value: float, line: float | None, size: int) -> ScoredWrite:
    return ScoredWrite(
        verdict.decided_ms, verdict.event_id, verdict.decision, value, line, told.phase, told.strategy, size
    )


def _rarity(p: float) -> float:
    return max(0.0, -math.log10(max(p, P_LEAST)))
