"""The wording classifier: a linear model on hashed word and character n-grams, taken at a text's most hostile unit.

The n-grams of a unit (one to three words, three to five characters) are hashed into ``2 ** BITS`` buckets; its score
is ``bias + sum of the buckets' weights / sqrt(number of n-grams)``, a log-odds. Training, and what the model knows, are
in ``memsluice_lab/training`` and in the model card beside the weights.
"""

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memsluice.gate.detectors.numeric.compiled import FOUR, rounded
from memsluice.gate.detectors.wording import tokens
from memsluice.gate.detectors.wording.text import letters_of, units
from memsluice.gate.detectors.wording.tokens import Indices

LOGIT_MAX = 8.0


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


class Classifier(Struct, frozen=True):
    """``weights`` shape (2 ** BITS,), float32. ``digest`` (SHA-256 of the file, 16 digits) names the model."""

    weights: NDArray[np.float32]
    bias: float
    digest: str

    def judge(self, text: str) -> tuple[float, int]:
        """Return the highest log-odds of a text's units, rounded to four digits, and that unit's number."""
        logit, at = tokens.worst(letters_of(units(text)), self.weights, self.bias, LOGIT_MAX)
        return rounded(logit, FOUR), at
