"""MEMSAD, exactly as published (seed 000, "MEMSAD: Gradient-Coupled Anomaly Detection"): scores, threshold, bounds.

Pure functions of vectors and numbers. A candidate's score is its cosine similarity to the questions asked lately; the
threshold is mean plus kappa deviations of the same score over benign reference entries; above it the write is held.

Symbols of the paper and names here::

    H, m_max         history, history_size         rolling FIFO of question vectors, shape (m, d)
    M_ref, N         reference, reference_size     benign entries to calibrate on, shape (n, d)
    s(c; H)          score, s_max, s_mean, s_comb  Definition 6, Equation 7
    mu^, sigma^      mu, sigma                     of {s(m; H) : m in M_ref}; the threshold is mu^ + kappa sigma^
    kappa, delta     kappa, delta                  threshold factor, confidence
    eta              bound                         Theorem 11, in terms of the unknown sigma: sigma^ is put in its place
    Delta_s          gap                           Lemma 8

Vectors are L2-normalised (Assumption 5 iii), so a cosine is a dot product; nothing here normalises again.
"""

import math
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memsluice.errors import StateError
from memsluice.gate.detectors.numeric.compiled import compiled
from memsluice.gate.policy.model import Mode

ALPHA = 0.5
"""Weight of s_max in s_comb; Equation 7 uses one half."""
_SHARE = {Mode.MAX: 1.0, Mode.MEAN: 0.0, Mode.COMBINED: ALPHA}

Floats = NDArray[np.floating[Any]]


Exact = NDArray[np.float64]


def _exact(values: Floats) -> Exact:
    return np.ascontiguousarray(values, np.float64)


@compiled(
    [
        "Tuple((float64[::1], int64, float64))(float64[::1], float64[:,::1])",
        "Tuple((float64[::1], int64, float64))(float32[::1], float32[:,::1])",
    ],
    reassociate=True,
)
def _against(candidate: Floats, history: Floats) -> tuple[Exact, int, float]:
    """Return every cosine, where the greatest is, of equal ones the first, and their mean; sums are of 64 bits."""
    cosines, nearest, every = np.empty(len(history)), 0, 0.0
    for at in range(len(history)):
        total = 0.0
        for column in range(len(candidate)):
            total += np.float64(history[at, column]) * np.float64(candidate[column])
        cosines[at] = total
        every += total
        if total > cosines[nearest]:
            nearest = at
    return cosines, nearest, every / len(history)


def _alike(candidate: Floats, history: Floats) -> tuple[Floats, Floats]:
    if candidate.shape != history.shape[1:]:
        raise StateError(f"a candidate of the shape {candidate.shape} has no score against {history.shape}")
    if candidate.dtype == history.dtype == np.float32:
        return np.ascontiguousarray(candidate), np.ascontiguousarray(history)
    return _exact(candidate), _exact(history)


@compiled("float64[::1](float64[:,::1], float64)", reassociate=True)
def _combined(cosines: Exact, share: float) -> Exact:
    """Return ``share`` of the greatest and the rest of the mean of each column; there must be a row."""
    most, total = cosines[0].copy(), cosines[0].copy()
    for row in cosines[1:]:
        for at in range(len(row)):
            most[at], total[at] = max(most[at], row[at]), total[at] + row[at]
    found: Exact = share * most + (1 - share) * (total / len(cosines))
    return found


@compiled("float64(float64[::1])")
def greatest(values: Exact) -> float:
    """Return the greatest of some values, at least one."""
    most = values[0]
    for value in values:
        most = max(most, value)
    return float(most)


@compiled("UniTuple(float64, 2)(float64[::1])", reassociate=True)
def _moments(values: Exact) -> tuple[float, float]:
    mu = values.sum() / len(values)
    spread = 0.0
    for value in values:
        spread += (value - mu) ** 2
    return mu, math.sqrt(spread / (len(values) - 1))


class Scores(Struct, frozen=True):
    """Every score of one candidate, each in [-1, 1], and ``nearest``, the row of H that gives the maximum.

    ``cosines`` has the shape of H, (m,).
    """

    s_max: float
    s_mean: float
    s_comb: float
    nearest: int
    cosines: Exact

    def of(self, mode: Mode) -> float:
        """Return the score that ``mode`` compares with the threshold."""
        if mode is Mode.COMBINED:
            return self.s_comb
        return self.s_max if mode is Mode.MAX else self.s_mean


def score(candidate: Floats, history: Floats) -> Scores:
    """Return s_max, s_mean and s_comb of a candidate of shape (d,) against H of shape (m, d), m >= 1.

    Of equally near questions the first counts as ``nearest``. Raises :class:`StateError` on an empty history, against
    which the paper defines no score, and on shapes that do not fit.
    """
    if not len(history):
        raise StateError("MEMSAD has no score against an empty history")
    cosines, nearest, s_mean = _against(*_alike(candidate, history))
    s_max = float(cosines[nearest])
    return Scores(s_max, s_mean, ALPHA * s_max + (1 - ALPHA) * s_mean, nearest, cosines)


def cosines(vector: Floats, rows: Floats) -> Exact:
    """Return a vector's cosine with each row of an (n, d) matrix, n >= 0, as shape (n,). Raises :class:`StateError`."""
    return _against(*_alike(vector, rows))[0]


def combine(cosines: Exact, mode: Mode) -> Exact:
    """Return {s(m; H) : m in M_ref}, shape (n,), of the cosines of m >= 1 questions with n entries, shape (m, n)."""
    if not len(cosines):
        raise StateError("MEMSAD has no score against an empty history")
    return _combined(np.ascontiguousarray(cosines), _SHARE[mode])


def reference_scores(reference: Floats, history: Floats, mode: Mode) -> Exact:
    """Return the same for a reference of shape (n, d) and a history of shape (m, d)."""
    return combine(_exact(history) @ _exact(reference).T, mode)


def moments(values: Floats) -> tuple[float, float]:
    """Return mu^ and sigma^ of reference scores of shape (n,).

    sigma^ is the sample deviation (N - 1 below the line): Appendix B.4 takes (N - 1) sigma^^2 / sigma^2 for a
    chi-squared variable of N - 1 degrees. Raises :class:`StateError` for fewer than two scores.
    """
    if len(values) < 2:
        raise StateError(f"MEMSAD calibrates on at least 2 reference scores, not {len(values)}")
    return _moments(_exact(values))


def calibration_bound(sigma: float, size: int, *, kappa: float, delta: float) -> float:
    """Return eta of Theorem 11: with probability 1 - delta the threshold is within eta of the population's.

    eta = sigma (N^-1/2 + kappa (2 (N - 1))^-1/2) sqrt(2 ln(4 / delta)), for N = ``size`` >= 2. The proof needs
    N >= :func:`calibration_size_min`, and independent, near-Gaussian scores.
    """
    spread = 1 / math.sqrt(size) + kappa / math.sqrt(2 * (size - 1))
    return sigma * spread * math.sqrt(2 * math.log(4 / delta))


def calibration_size_min(delta: float) -> int:
    """Return the least N for which Theorem 11's proof holds: N >= 4 ln(4 / delta) (Appendix B.4)."""
    return math.ceil(4 * math.log(4 / delta))


def similarity_gap(cosine: float, references: Exact) -> float:
    """Return Delta_s of Lemma 8: ``cosine``, cos(c, q*), less the largest cos(m, q*) of n >= 1 entries, shape (n,)."""
    return cosine - greatest(references)


def certified_radius(sigma: float, bound: float, *, kappa: float) -> float:
    """Return kappa sigma^ + eta: Lemma 8 certifies the detection of a gap Delta_s that exceeds it (Eq. 9, Figure 10).

    Under Assumption 9 that is said of the mean and combined scores, too. **Do not rely on it**: the
    proof (Appendix B.1, step 4) takes the ceiling over entries near q* for a ceiling over the whole history. A
    reference set that lies close to *other* questions has a high threshold and a wide gap to q* at once;
    tests/gate/test_memsad.py has the counter-example. It is reported, never a reason to accept or to hold.
    """
    return kappa * sigma + bound


def window_optimal(sigma: float, drift: float) -> float:
    """Return m* of Theorem 12: the history size that balances estimation error against drift per step.

    m* = (sigma / Delta)^(2/3). The theorem gives the rate only; its constant, 1 here, is Appendix B.5's balance
    sigma / sqrt(m) = m Delta. Infinite without drift.
    """
    return math.inf if drift == 0 else (sigma / drift) ** (2 / 3)
