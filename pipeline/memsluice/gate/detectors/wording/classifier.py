"""The wording signal: what a text says to do, and how rare that is on honest text.

Two models read a text unit by unit and each gives its worst unit's log-odds. The head is on the encoder's states and
runs in *seal* (:mod:`memsluice.encoder.wording`); the n-grams (one to three words, three to five characters, hashed
into ``2 ** BITS`` buckets) are read here: ``bias + sum of the buckets' weights / sqrt(number of n-grams)``. A weighted
sum of the two is the text's log-odds; where the head read nothing the n-grams count by themselves, and so they do of an
end that it did not read, if that is worse.
Training, and what the models know, are in ``memsluice_lab/wording`` and in the model card beside the weights.
"""

import math
from bisect import bisect_left

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memsluice.envelope.seals import Wording
from memsluice.events.codes import unescaped
from memsluice.gate.detectors.numeric.compiled import FOUR, SIX, rounded
from memsluice.gate.detectors.wording import tokens
from memsluice.gate.detectors.wording.text import letters_of, places
from memsluice.gate.detectors.wording.tokens import Indices

LOGIT_MAX = 8.0
P_MIN = 1e-6
CENTRE, WIDTH = -2.2, 0.55
"""The logistic distribution of honest texts' scores, by definition of the score."""


class Grams(Struct, frozen=True):
    """The n-grams of some units: ``buckets``, shape (g,), one unit's behind the other's; ``ends``, shape (units,)."""

    buckets: Indices
    ends: Indices

    @property
    def counts(self) -> Indices:
        """How many n-grams each unit has."""
        return np.diff(self.ends, prepend=0)


def grams(parts: list[str]) -> Grams:
    """Return the hashed n-grams of some units of text. No n-gram crosses from one unit into the next."""
    return Grams(*tokens.grams(letters_of(parts)))


class Tail(Struct, frozen=True):
    """How rare log-odds are on honest text: ``shares`` of it, falling, have at least the log-odds ``at``, rising.

    Between them, and beyond both ends, the logit of the share is linear in the log-odds.
    """

    shares: tuple[float, ...]
    at: tuple[float, ...]

    def p(self, logit: float) -> float:
        """Return the share of honest texts with at least these log-odds: P_MIN to 1 - P_MIN."""
        end = min(max(bisect_left(self.at, logit), 1), len(self.at) - 1)
        low, high = self.at[end - 1], self.at[end]
        first, last = (_logit(self.shares[one]) for one in (end - 1, end))
        value = first + (last - first) * (logit - low) / max(high - low, 1e-6)
        return min(max(1 / (1 + math.exp(-min(max(value, -30.0), 30.0))), P_MIN), 1 - P_MIN)


class Judged(Struct, frozen=True):
    """``p`` is the share of honest texts that say so much to do; the worst unit is characters ``first`` to ``end``.

    ``both`` says that both models judged the worst of it: the n-grams alone know less.
    """

    p: float
    first: int
    end: int
    both: bool = True

    @property
    def score(self) -> float:
        """The same on the scale of the evidence: what its logistic prior has this share beyond."""
        return rounded(CENTRE - WIDTH * _logit(self.p), FOUR)


class Classifier(Struct, frozen=True):
    """``weights`` shape (2 ** BITS,), float32. ``digest`` (SHA-256 of the file, 16 digits) names the model.

    ``mix`` weighs the head's and the n-grams' log-odds and the logarithm of the number of units, since one of many is
    the worst by chance, and adds; ``tail`` is of the sum, ``alone`` of the n-grams'.
    """

    weights: NDArray[np.float32]
    bias: float
    digest: str
    mix: tuple[float, float, float, float]
    tail: Tail
    alone: Tail

    def grams_of(self, parts: list[str]) -> tuple[float, int]:
        """Return the highest log-odds that the n-grams give one of some units, of four digits, and its number."""
        logit, at = tokens.worst(letters_of(parts), self.weights, self.bias, LOGIT_MAX)
        return rounded(logit, FOUR), at

    def judge(self, text: str, shown: Wording | None) -> Judged:
        """Return what a text's wording shows; ``shown`` is what the head did, None where it read nothing."""
        parts, logit, first, end = self._worst(text)
        if shown is None:
            return Judged(rounded(self.alone.p(logit), SIX), first, end, both=False)
        of_head, of_grams, of_units, beside = self.mix
        p = self.tail.p(of_head * shown.logit + of_grams * logit + of_units * math.log(parts) + beside)
        if shown.read < len(text):
            _, worst, first, end = self._worst(text[shown.read :])
            unread = self.alone.p(worst)
            if unread < p:
                return Judged(rounded(unread, SIX), shown.read + first, shown.read + end, both=False)
        return Judged(rounded(p, SIX), shown.first, shown.end)

    def _worst(self, text: str) -> tuple[int, float, int, int]:
        """Return how many units a text has as it is read, the highest log-odds of one, and where that stands in it."""
        read = unescaped(text)
        seen = text if read is None else read.text
        found = places(seen)
        logit, at = self.grams_of([seen[first:end] for first, end in found])
        first, end = found[at]
        return len(found), logit, *((first, end) if read is None or first == end else read.place(first, end))


def _logit(p: float) -> float:
    return math.log(p / (1 - p))
