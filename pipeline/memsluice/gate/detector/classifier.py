"""The wording classifier: a linear model on hashed word and character n-grams, taken at a text's most hostile unit.

The n-grams of a unit (one to three words, three to five characters) are hashed into ``2 ** BITS`` buckets; its score
is ``bias + sum of the buckets' weights / sqrt(number of n-grams)``, a log-odds. Training, and what the model knows, are
in ``memsluice/lab/training`` and in the model card beside the weights. Inference needs NumPy only.
"""

from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memsluice.gate.detector.text import units, words

BITS = 14
LOGIT_MAX = 8.0
BYTES_MAX = 2_400
_PRIME = np.uint32(0x01000193)
_SALT_2, _SALT_3, _SALT_C = np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)
_MIX = np.uint32(0x2C1B3C6D)


@dataclass(frozen=True, slots=True)
class Grams:
    """The n-grams of a text's units: ``buckets`` and the unit each belongs to, both shape (g,), and units' counts."""

    buckets: NDArray[np.int64]
    owners: NDArray[np.int64]
    counts: NDArray[np.int64]


def grams(parts: list[str]) -> Grams:
    """Return the hashed n-grams of some units of text. No n-gram crosses from one unit into the next."""
    split = [words(part) for part in parts]
    flat = [word for found in split for word in found]
    word_owner = np.repeat(np.arange(len(parts)), [len(found) for found in split])
    hashes = np.fromiter((crc32(word.encode()) for word in flat), np.uint32, len(flat))
    encoded = [f" {' '.join(found)} ".encode()[:BYTES_MAX] for found in split]
    letters = np.frombuffer(b"".join(encoded), np.uint8).astype(np.uint32)
    letter_owner = np.repeat(np.arange(len(parts)), [len(data) for data in encoded])
    pairs = hashes[:-1] * np.uint32(31) + hashes[1:]
    triples = pairs[:-1] * np.uint32(31) + hashes[2:]
    codes = [hashes, pairs * _SALT_2 + np.uint32(1), triples * _SALT_3 + np.uint32(2)]
    first = [word_owner, word_owner[:-1], word_owner[:-2]]
    last = [word_owner, word_owner[1:], word_owner[2:]]
    value = letters
    for width in range(2, 6):
        value = value[:-1] * _PRIME ^ letters[width - 1 :]
        if width >= 3:
            codes.append(value * _SALT_C + np.uint32(width))
            first.append(letter_owner[: 1 - width])
            last.append(letter_owner[width - 1 :])
    owner = np.concatenate(first)
    inside = owner == np.concatenate(last)
    mixed, owner = np.concatenate(codes)[inside], owner[inside]
    mixed ^= mixed >> np.uint32(15)
    buckets = ((mixed * _MIX) >> np.uint32(32 - BITS)).astype(np.int64)
    return Grams(buckets, owner, np.bincount(owner, minlength=len(parts)))


@dataclass(frozen=True, slots=True)
class Classifier:
    """``weights`` shape (2 ** BITS,), float32. ``digest`` (SHA-256 of the file, 16 digits) names the model."""

    weights: NDArray[np.float32]
    bias: float
    digest: str

    def logits(self, found: Grams) -> NDArray[np.float64]:
        """Return each unit's log-odds of being hostile, shape (units,), clipped to +-LOGIT_MAX."""
        sums = np.bincount(found.owners, self.weights[found.buckets], minlength=len(found.counts))
        return np.clip(sums / np.sqrt(np.maximum(found.counts, 1)) + self.bias, -LOGIT_MAX, LOGIT_MAX)

    def judge(self, text: str) -> tuple[float, int]:
        """Return the highest log-odds of a text's units, rounded to four digits, and that unit's number."""
        found = self.logits(grams(units(text)))
        at = int(np.argmax(found))
        return round(float(found[at]), 4), at
