"""The interface of a strategy, and the one that settings name."""

from typing import Protocol

from memsluice.gate.detectors.calibration.base import Judged, Settings
from memsluice.gate.detectors.calibration.conformal import Conformal
from memsluice.gate.detectors.calibration.drift import Drift
from memsluice.gate.detectors.calibration.moments import Moments
from memsluice.gate.detectors.calibration.state import State


class Strategy(Protocol):
    """One rule. Pure: it changes no state; :meth:`State.landed` and :meth:`State.screened` do."""

    @property
    def settings(self) -> Settings:
        """What the policy says."""

    def judge(self, value: float, state: State) -> Judged:
        """Judge one score against what landed before it."""


def strategy(settings: Settings) -> Strategy:
    """Return the rule of that name."""
    if settings.name == "conformal":
        return Conformal(settings)
    return Drift(settings) if settings.name in ("page_hinkley", "adwin") else Moments(settings)
