"""Strategies of mean and deviation: a score is beyond the line above ``mu + kappa sigma``, as the paper has it.

- ``fixed``: the first N of the reference scores (seed 000, Definition 6; see :class:`.base.Settings`);
- ``rolling``: the last ones;
- ``ewma``: all in the window, the k-th last with weight (1 - lambda)^k;
- ``m_star``: the last m* of Theorem 12, the drift a step being estimated from the window's two halves. The theorem
  speaks of m_max, the size of the history that scores are taken over: so m* bounds that, too (:func:`within`, and
  :func:`memsluice.gate.detectors.memsad.check.asked_lately`).

Means and deviations follow an attacker who writes just below the line: a fifth of such writes moves the line out by
more than a deviation in a heavy tail (docs/detection.md). Ranks do not; see :mod:`.conformal`.
"""

import math

import numpy as np
from msgspec import Struct

from memsluice.gate.detectors.calibration.base import Judged, Settings, Values, phase_of
from memsluice.gate.detectors.calibration.state import State
from memsluice.gate.detectors.memsad import scores

M_STAR_MIN = 20
"""Least window of m*: below it a deviation says little (see ``calibration_size_min`` of MEMSAD, 18 at delta .05)."""


class Moments(Struct, frozen=True):
    """The four strategies, by the name in the settings."""

    settings: Settings

    def judge(self, value: float, state: State) -> Judged:
        """Judge one score: by the declared threshold until ``full`` reference scores are there."""
        settings, known = self.settings, len(state.values)
        if settings.name == "ewma" and known >= max(settings.full, 2):
            mu, sigma = weighted(state.values, settings.ewma_weight)
            threshold = mu + settings.kappa * sigma
            return Judged(value > threshold, phase_of(settings, known), known, threshold, mu, sigma)
        return by_moments(value, _counted(settings, state.values), settings, known=known)


def by_moments(value: float, values: Values, settings: Settings, *, known: int, drifting: bool = False) -> Judged:
    """Judge a score by the mean and deviation of the reference scores that count, shape (n,), of ``known`` there are.

    The declared threshold stands in where too few are known, unless a change is why.
    """
    size = len(values)
    phase = phase_of(settings, known, drifting=drifting)
    if size < 2 or (known < settings.full and not drifting):
        return Judged(value > settings.prior_threshold, phase, size, settings.prior_threshold)
    mu, sigma = scores.moments(values)
    threshold = mu + settings.kappa * sigma
    return Judged(value > threshold, phase, size, threshold, mu, sigma)


def weighted(values: Values, weight: float) -> tuple[float, float]:
    """Return exponentially weighted mean and unbiased deviation of n >= 2 values, oldest first.

    The k-th last counts (1 - weight)^k; the divisor is V1 - V2 / V1, V1 the sum of these and V2 that of their squares,
    which is n - 1 where all count alike.
    """
    counts = (1 - weight) ** np.arange(len(values) - 1, -1, -1, dtype=np.float64)
    total = float(counts.sum())
    mu = float(counts @ values) / total
    spread = float(counts @ (values - mu) ** 2)
    return mu, math.sqrt(spread / (total - float(counts @ counts) / total))


def best_window(values: Values) -> float:
    """Return Theorem 12's m* = (sigma / Delta)^(2/3) of scores, oldest first; infinite where nothing drifts.

    Seed 000, Theorem 12, with the constant of its proof (Appendix B.5): where the estimation error sigma / sqrt(m)
    equals the drift m Delta. sigma is the deviation of the scores; the drift a step, Delta, is the difference of the
    means of the window's halves over half its length. Scores without any drift differ between halves, too: by
    2 sigma^2 / (n / 2) in the mean square, which is taken off the square of the difference first, or 40 scores would
    always be cut to 20. Of fewer than twice M_STAR_MIN scores no drift is told, so m* is infinite.
    """
    size = len(values)
    if size < 2 * M_STAR_MIN:
        return math.inf
    half, (_, sigma) = size // 2, scores.moments(values)
    (before, _), (after, _) = scores.moments(values[:half]), scores.moments(values[-half:])
    squared = (after - before) ** 2 - 2 * sigma**2 / half
    return scores.window_optimal(sigma, math.sqrt(max(squared, 0.0)) / half)


def within(most: int, values: Values) -> int:
    """Return how many of the last ``most`` things count under m*: at least M_STAR_MIN, where there are so many."""
    best = best_window(values)
    return most if math.isinf(best) else min(most, max(M_STAR_MIN, round(best)))


def window_by_drift(values: Values) -> int:
    """Return Theorem 12's m* for a window of scores, within [M_STAR_MIN, n]."""
    return within(len(values), values)


def _counted(settings: Settings, values: Values) -> Values:
    if settings.name == "fixed":
        return values[: settings.full]
    return values[-window_by_drift(values) :] if settings.name == "m_star" and len(values) else values
