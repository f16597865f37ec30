"""The wording classifier: a linear model on hashed word and character n-grams, taken at a text's most hostile unit.

The n-grams of a unit (one to three words, three to five characters) are hashed into ``2 ** BITS`` buckets; its score
is ``bias + sum of the buckets' weights / sqrt(number of n-grams)``, a log-odds. Training, and what the model knows, are
in ``memsluice/lab/training`` and in the model card beside the weights.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
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
_SALT_2, _SALT_3 = np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B)
_BLANK, _ONES = np.uint8(ord(" ")), np.uint32(0xFFFFFFFF)
_CRC = np.array([crc32(bytes([255 - at])) ^ 0xFF000000 for at in range(256)], np.uint32)
"""CRC-32's table, from what it gives for single bytes: words are hashed where their characters are."""
Letters = NDArray[np.uint8]
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


@compiled("int64(uint8[::1], int64[::1], int64)")
def _of_words(letters: Letters, buckets: Indices, some: int) -> int:
    """Put the n-grams of a unit's words, each behind a blank, behind the first ``some`` buckets. Return how many there
    are then.
    """
    pair, single, known, code = np.uint32(0), np.uint32(0), 0, _ONES
    for at in range(1, len(letters)):
        if letters[at] != _BLANK:
            code = np.uint32(code >> np.uint32(8)) ^ _CRC[np.uint8(code) ^ letters[at]]
        elif letters[at - 1] != _BLANK:
            hashed, code, known = np.uint32(code ^ _ONES), _ONES, known + 1
            buckets[some] = _bucket(hashed)
            some += 1
            if known > 1:
                two = np.uint32(single * np.uint32(31) + hashed)
                buckets[some] = _bucket(np.uint32(two * _SALT_2 + np.uint32(1)))
                some += 1
            if known > 2:
                three = np.uint32(pair * np.uint32(31) + hashed)
                buckets[some] = _bucket(np.uint32(three * _SALT_3 + np.uint32(2)))
                some += 1
            if known > 1:
                pair = two
            single = hashed
    return some


@compiled("int64(uint8[::1], int64[::1], int64)")
def _of_letters(letters: Letters, buckets: Indices, some: int) -> int:
    """Put the n-grams of a unit's characters there."""
    for at in range(len(letters)):
        code = np.uint32(letters[at])
        for width in range(2, min(6, len(letters) - at + 1)):
            code = np.uint32(np.uint32(code * _PRIME) ^ np.uint32(letters[at + width - 1]))
            if width >= 3:
                buckets[some] = _bucket(np.uint32(code * _SALT_C + np.uint32(width)))
                some += 1
    return some


@compiled("Tuple((int64[::1], int64[::1]))(uint8[::1], int64[::1])")
def _grams(letters: Letters, letters_ends: Indices) -> tuple[Indices, Indices]:
    """Return the buckets of all units, one unit's behind the other's, and where each unit's end."""
    # of a character three n-grams of characters begin; of a word, which is one at least, three of words
    buckets, ends = np.empty(6 * len(letters), np.int64), np.empty(len(letters_ends), np.int64)
    some, first = 0, 0
    for unit in range(len(letters_ends)):
        some = _of_words(letters[first : letters_ends[unit]], buckets, some)
        some = _of_letters(letters[first : min(first + BYTES_MAX, letters_ends[unit])], buckets, some)
        first, ends[unit] = letters_ends[unit], some
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


def grams(parts: list[str], read: Mapping[str, list[str]] = MappingProxyType({})) -> Grams:
    """Return the hashed n-grams of some units of text. No n-gram crosses from one unit into the next.

    ``read`` has the words of texts that were read already.
    """
    split = [read.get(part) or words(part) for part in parts]
    encoded = [f" {' '.join(found)} ".encode() for found in split]
    ends = np.array(list(accumulate(map(len, encoded))))
    letters = np.frombuffer(bytearray().join(encoded), np.uint8)  # of a bytearray: bytes make an array of another type
    return Grams(*_grams(letters, ends))


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
