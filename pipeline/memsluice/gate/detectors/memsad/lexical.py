"""MEMSAD+ (seed 000, Section 4.5 and Proposition 27): how unlike the tenant's writing a text is, by character n-grams.

``D_char(c) = JSD(p_c || p_0)``, p_0 the baseline of benign entries; c is flagged where ``D_char(c) > tau_char``. The
paper says neither n, nor how tau_char is set, nor over what alphabet. Here n is 3, over case-folded text, hashed into
BUCKETS (two n-grams in one bucket only bring texts nearer to each other), and tau_char is mean + kappa deviations as
for the score: the first half of the N reference entries is the baseline, the second half calibrates on it, since an
entry that is part of the baseline lies too near to it.
"""

import base64
from zlib import crc32

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from memsluice.gate.detectors.memsad import scores
from memsluice.gate.state.kinds import LexicalRow

GRAM = 3
BUCKETS = 1_024
DIGITS = 6
Counts = NDArray[np.float64]


def counted(text: str) -> Counts:
    """Return how often each bucket's n-grams occur, shape (BUCKETS,); a shorter text is one n-gram."""
    folded = text.casefold()
    found = [folded[at : at + GRAM] for at in range(max(len(folded) - GRAM + 1, 1))]
    places = [crc32(gram.encode("utf-8", "replace")) % BUCKETS for gram in found]
    return np.bincount(places, minlength=BUCKETS).astype(np.float64)


def divergence(one: Counts, other: Counts) -> float:
    """Return the Jensen-Shannon divergence of two counts, neither all zero, in bits: 0 alike, 1 nothing in common."""
    p, q = one / one.sum(), other / other.sum()
    middle = (p + q) / 2
    return _relative(p, middle) / 2 + _relative(q, middle) / 2


def _relative(p: Counts, q: Counts) -> float:
    some = p > 0
    return float((p[some] * np.log2(p[some] / q[some])).sum())


class Lexical(Struct, frozen=True):
    """The baseline's counts, the ``learned`` entries, and the divergences of those after the baseline was whole."""

    baseline: Counts
    learned: int = 0
    divergences: tuple[float, ...] = ()

    @staticmethod
    def loaded(row: LexicalRow | None) -> "Lexical":
        """Return what a row holds; nothing learned for None."""
        if row is None:
            return NOTHING
        baseline = np.frombuffer(base64.b64decode(row.baseline), "<u4").astype(np.float64)
        return Lexical(baseline, row.learned, row.divergences)

    def dumped(self) -> LexicalRow:
        """Return the row: 5.5 KiB, and nine bytes for each divergence."""
        packed = base64.b64encode(self.baseline.astype("<u4").tobytes()).decode()
        return LexicalRow(baseline=packed, learned=self.learned, divergences=self.divergences)

    def landed(self, text: str, size: int) -> "Lexical":
        """Return it after one more benign entry; the first ``size`` >= 4 are learned from."""
        if self.learned >= size:
            return self
        counts = counted(text)
        if self.learned < size // 2:
            return replace(self, baseline=self.baseline + counts, learned=self.learned + 1)
        found = (*self.divergences, round(divergence(counts, self.baseline), DIGITS))
        return replace(self, learned=self.learned + 1, divergences=found)

    def judge(self, text: str, size: int, kappa: float) -> tuple[float, float] | None:
        """Return D_char and tau_char of a text; None until ``size`` entries were learned from."""
        if self.learned < size or len(self.divergences) < 2:
            return None
        mu, sigma = scores.moments(np.array(self.divergences))
        return round(divergence(counted(text), self.baseline), DIGITS), round(mu + kappa * sigma, DIGITS)


NOTHING = Lexical(np.zeros(BUCKETS))
"""The baseline of a tenant of which nothing was learned."""
