"""The strategy that settings name."""

from memsluice.gate.detectors.calibration.base import Settings, Strategy
from memsluice.gate.detectors.calibration.conformal import Conformal
from memsluice.gate.detectors.calibration.drift import Drift
from memsluice.gate.detectors.calibration.moments import Moments


def strategy(settings: Settings) -> Strategy:
    """Return the rule of that name."""
    if settings.name == "conformal":
        return Conformal(settings)
    return Drift(settings) if settings.name in ("page_hinkley", "adwin") else Moments(settings)
