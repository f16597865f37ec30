"""Strategies that look for a change and forget what was before it: Page-Hinkley and ADWIN, both by ``river``.

river's detectors keep what they saw in private attributes (ADWIN's even outside of Python), so there is no row to make
of them. The row is the window of scores itself, and the detector is run over it anew: 400 scores take some 0.13 ms
(ADWIN) or 0.3 ms (Page-Hinkley). A restart therefore decides as before, and no state is older than the window.

The tenant is ``drifting`` from a change until ``full`` scores have come after it.
"""

from msgspec import Struct

from memsluice.gate.detectors.calibration.base import Judged, Settings, Values
from memsluice.gate.detectors.calibration.moments import M_STAR_MIN, by_moments
from memsluice.gate.detectors.calibration.state import State

KEPT = 30
"""Scores that are kept when Page-Hinkley finds a change: it says that there was one, not where; river's least."""
HINKLEY_DELTA, HINKLEY_THRESHOLD = 0.25, 10.0
"""In deviations of the whole window: a shift by half a deviation is what is looked for."""
ADWIN_DELTA = 0.002


class Drift(Struct, frozen=True):
    """Both strategies, by the name in the settings."""

    settings: Settings

    def judge(self, value: float, state: State) -> Judged:
        """Judge one score by the mean and deviation of what came since the last change."""
        values, known = state.values, len(state.values)
        start = hinkley(values) if self.settings.name == "page_hinkley" else adwin(values)
        since = values[max(0, min(start, known - M_STAR_MIN)) :]
        drifting = start > 0 and len(since) < self.settings.full
        return by_moments(value, since, self.settings, known=known, drifting=drifting)


def hinkley(values: Values) -> int:
    """Return where what followed the last change begins, by the Page-Hinkley test; 0 where nothing changed."""
    from river.drift import PageHinkley

    if len(values) <= KEPT:
        return 0
    start, scores = 0, values / (float(values.std(ddof=1)) or 1.0)
    while len(scores) - start > KEPT:
        detector = PageHinkley(min_instances=KEPT, delta=HINKLEY_DELTA, threshold=HINKLEY_THRESHOLD)
        for at in range(start, len(scores)):
            detector.update(float(scores[at]))
            if detector.drift_detected:
                start = at + 1 - KEPT if at + 1 - KEPT > start else at + 1
                break
        else:
            break
    return start


def adwin(values: Values) -> int:
    """Return where what followed the last change begins, by ADWIN; 0 where nothing changed."""
    from river.drift import ADWIN

    start, at = 0, 0
    detector = ADWIN(delta=ADWIN_DELTA, clock=1)
    while at < len(values):
        detector.update(float(values[at]))
        at += 1
        if detector.drift_detected:
            start = at - int(detector.width)
            detector = ADWIN(delta=ADWIN_DELTA, clock=1)  # river's own forgets its window with the next value
            for value in values[start:at]:
                detector.update(float(value))
    return start
