"""The wording classifier: a linear model on hashed word and character n-grams, taken at a text's most hostile unit.

The n-grams of a unit (one to three words, three to five characters) are hashed into ``2 ** BITS`` buckets; its score
is ``bias + sum of the buckets' weights / sqrt(number of n-grams)``, a log-odds. Training, and what the model knows, are
in ``memsluice/lab/training`` and in the model card beside the weights.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate
from types import MappingProxyType
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memsluice.gate.compiled import compiled
from memsluice.gate.detector.text import units, words

BITS = 14
LOGIT_MAX = 8.0
BYTES_MAX = 2_400
_PRIME, _SALT_C, _MIX = np.uint32(0x01000193), np.uint32(0xC2B2AE35), np.uint32(0x2C1B3C6D)
_SALTS = np.array([1, 0x9E3779B1, 0x85EBCA6B], np.uint32)
Indices = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Grams:
    """The n-grams of some units: ``buckets``, shape (g,), one unit's behind the other's; ``ends``, shape (units,)."""

    buckets: Indices
    ends: Indices

    @property
    def counts(self) -> Indices:
        """How many n-grams each unit has."""
        return np.diff(self.ends, prepend=0)


@compiled("int64(uint32)")
def _bucket(code: np.uint32) -> int:
    mixed = np.uint32((code ^ code >> np.uint32(15)) * _MIX)
    return int(mixed >> np.uint32(32 - BITS))


@compiled("int64(uint32[::1], int64[::1], int64)")
def _of_words(hashes: NDArray[np.uint32], buckets: Indices, some: int) -> int:
    """Put the n-grams of a unit's words behind the first ``some`` buckets. Return how many there are then."""
    for at in range(len(hashes)):
        code = hashes[at]
        for width in range(1, min(4, len(hashes) - at + 1)):
            if width > 1:
                code = np.uint32(code * np.uint32(31) + hashes[at + width - 1])
            buckets[some] = _bucket(np.uint32(code * _SALTS[width - 1] + np.uint32(width - 1)))
            some += 1
    return some


@compiled("int64(uint8[::1], int64[::1], int64)")
def _of_letters(letters: NDArray[np.uint8], buckets: Indices, some: int) -> int:
    """Put the n-grams of a unit's characters there."""
    for at in range(len(letters)):
        code = np.uint32(letters[at])
        for width in range(2, min(6, len(letters) - at + 1)):
            code = np.uint32(np.uint32(code * _PRIME) ^ np.uint32(letters[at + width - 1]))
            if width >= 3:
                buckets[some] = _bucket(np.uint32(code * _SALT_C + np.uint32(width)))
                some += 1
    return some


@compiled("Tuple((int64[::1], int64[::1]))(uint32[::1], int64[::1], uint8[::1], int64[::1])")
def _grams(
    hashes: NDArray[np.uint32], hashes_ends: Indices, letters: NDArray[np.uint8], letters_ends: Indices
) -> tuple[Indices, Indices]:
    """Return the buckets of all units, one unit's behind the other's, and where each unit's end."""
    buckets, ends = np.empty(3 * (len(hashes) + len(letters)), np.int64), np.empty(len(hashes_ends), np.int64)
    some, word, letter = 0, 0, 0
    for unit in range(len(hashes_ends)):
        some = _of_words(hashes[word : hashes_ends[unit]], buckets, some)
        some = _of_letters(letters[letter : letters_ends[unit]], buckets, some)
        word, letter, ends[unit] = hashes_ends[unit], letters_ends[unit], some
    return buckets[:some], ends


@compiled("float64[::1](int64[::1], int64[::1], float32[::1], float64)")
def _logits(buckets: Indices, ends: Indices, weights: NDArray[np.float32], bias: float) -> NDArray[np.float64]:
    found, first = np.empty(len(ends)), 0
    for unit in range(len(ends)):
        total = 0.0
        for at in range(first, ends[unit]):
            total += weights[buckets[at]]
        logit = total / math.sqrt(max(ends[unit] - first, 1)) + bias
        found[unit], first = min(max(logit, -LOGIT_MAX), LOGIT_MAX), ends[unit]
    return found


@lru_cache(4_096)
def _word_hash(word: str) -> int:
    return crc32(word.encode())


def grams(parts: list[str], read: Mapping[str, list[str]] = MappingProxyType({})) -> Grams:
    """Return the hashed n-grams of some units of text. No n-gram crosses from one unit into the next.

    ``read`` has the words of texts that were read already.
    """
    split = [read.get(part) or words(part) for part in parts]
    hashes = [_word_hash(word) for found in split for word in found]
    encoded = [f" {' '.join(found)} ".encode()[:BYTES_MAX] for found in split]
    letters = np.frombuffer(bytearray().join(encoded), np.uint8)
    of_words, of_letters = (np.array(list(accumulate(map(len, some)))) for some in (split, encoded))
    return Grams(*_grams(np.array(hashes, np.uint32), of_words, letters, of_letters))


@dataclass(frozen=True, slots=True)
class Classifier:
    """``weights`` shape (2 ** BITS,), float32. ``digest`` (SHA-256 of the file, 16 digits) names the model."""

    weights: NDArray[np.float32]
    bias: float
    digest: str

    def logits(self, found: Grams) -> NDArray[np.float64]:
        """Return each unit's log-odds of being hostile, shape (units,), clipped to +-LOGIT_MAX."""
        return _logits(found.buckets, found.ends, self.weights, self.bias)

    def judge(self, text: str, found: list[str] | None = None) -> tuple[float, int]:
        """Return the highest log-odds of a text's units, rounded to four digits, and that unit's number.

        ``found``: the text's words, where they were read.
        """
        logits = self.logits(grams(units(text), {} if found is None else {text: found}))
        at = int(np.argmax(logits))
        return round(float(logits[at]), 4), at
