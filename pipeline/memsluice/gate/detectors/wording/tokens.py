"""What lies in a text's letters, compiled: its words, their stems, what it repeats, its n-grams.

Letters are UTF-8 of shape (n,). A word is a run of ASCII letters and digits and of whatever is not ASCII: who encodes
a text puts blanks in place of what is neither (:func:`memsluice.gate.detectors.wording.text.letters_of`).
"""

from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memsluice.gate.detectors.numeric.compiled import compiled

BITS = 15
"""N-grams are hashed into ``2 ** BITS`` buckets."""
BYTES_MAX = 2_400
WORDS_MAX = 400
"""Words of a text that are read."""
REPEATED_MIN, REPEATED_MAX = 13, 120
"""Lengths, in words, of texts whose repetitions say something: longer ones repeat themselves anyway."""
SHORT = 4
"""Characters of the longest word that is its own stem."""
_PRIME, _SALT_C, _MIX = np.uint32(0x01000193), np.uint32(0xC2B2AE35), np.uint32(0x2C1B3C6D)
_SALT_2, _SALT_3 = np.uint32(0x9E3779B1), np.uint32(0x85EBCA6B)
_BLANK, _ONES = np.uint8(ord(" ")), np.uint32(0xFFFFFFFF)
_CRC = np.array([crc32(bytes([255 - at])) ^ 0xFF000000 for at in range(256)], np.uint32)
"""CRC-32's table, from what it gives for single bytes: words are hashed where their characters are."""
_OF_WORDS = np.array([byte > 127 or chr(byte).isalnum() for byte in range(256)])
Letters = NDArray[np.uint8]
Indices = NDArray[np.int64]
Stems = NDArray[np.uint32]
"""32-bit hashes of a text's stems, in order."""


@compiled("Tuple((uint8[::1], int64[::1]))(uint8[::1])")
def split(texts: Letters) -> tuple[Letters, Indices]:
    """Return the words of some texts, and where each text's end. Each text ends with a zero byte.

    A blank stands before each text's words and behind each word. Of a text WORDS_MAX words are read.
    """
    found, ends = np.empty(2 * len(texts), np.uint8), np.empty((texts == 0).sum(), np.int64)
    size, words, text = 0, -1, 0
    for at in range(len(texts)):
        byte = texts[at]
        if words < 0:
            found[size], words = _BLANK, 0
            size += 1
        if _OF_WORDS[byte]:
            words += found[size - 1] == _BLANK
            if words <= WORDS_MAX:
                found[size] = byte
                size += 1
        elif found[size - 1] != _BLANK:
            found[size] = _BLANK
            size += 1
        if byte == 0:
            ends[text], words = size, -1
            text += 1
    return found[:size], ends


@compiled("uint32(uint8[::1], int64, int64)")
def _crc(letters: Letters, first: int, end: int) -> np.uint32:
    code = _ONES
    for at in range(first, end):
        code = np.uint32(code >> np.uint32(8)) ^ _CRC[np.uint8(code) ^ letters[at]]
    return np.uint32(code ^ _ONES)


@compiled("int64(uint8[::1], int64, int64)")
def _characters(letters: Letters, first: int, end: int) -> int:
    some = 0
    for at in range(first, end):
        some += letters[at] & 0xC0 != 0x80
    return some


@compiled("int64(uint8[::1], int64, int64)")
def _stem_end(letters: Letters, first: int, end: int) -> int:
    """Return where a word's stem ends: without ing, ed, es or s that leaves three characters, and without a last ``e``.

    Short words stay as they are.
    """
    some = _characters(letters, first, end)
    if some <= SHORT:
        return end
    last, before = letters[end - 1], letters[end - 2]
    if last == ord("g") and before == ord("n") and letters[end - 3] == ord("i") and some >= 6:
        end -= 3
    elif last == ord("d") and before == ord("e"):
        end -= 2
    elif last == ord("s"):
        end -= 2 if before == ord("e") else 1
    return end - int(letters[end - 1] == ord("e"))


@compiled("uint32[::1](uint8[::1])")
def stems(letters: Letters) -> Stems:
    """Return the CRC-32 of the stem of each word of one text."""
    found, some, first = np.empty(len(letters) // 2, np.uint32), 0, 1
    for at in range(1, len(letters)):
        if letters[at] == _BLANK:
            found[some] = _crc(letters, first, _stem_end(letters, first, at))
            some, first = some + 1, at + 1
    return found[:some]


@compiled("float64(uint8[::1])")
def repetition(letters: Letters) -> float:
    """Return the share of one text's words that lie in a pair of neighbours which occurs more than once, 0 to 1.

    A pair counts if one of its words has more than three letters; the anchors of retrieval attacks repeat their cues.
    Words of one CRC-32 are one word here.
    """
    some, first, pairs = 0, 1, np.empty(REPEATED_MAX, np.uint64)
    last, last_counts = np.uint64(0), False
    counts = np.empty(REPEATED_MAX, np.bool_)
    for at in range(1, len(letters)):
        if letters[at] == _BLANK:
            if some == REPEATED_MAX:
                return 0.0
            code, long = np.uint64(_crc(letters, first, at)), _characters(letters, first, at) > 3
            pairs[some], counts[some] = last << np.uint64(32) | code, long or last_counts
            some, first, last, last_counts = some + 1, at + 1, code, long
    if some < REPEATED_MIN:
        return 0.0
    inside = np.zeros(some, np.bool_)
    for one in range(1, some):  # a pair is where its second word is
        for other in range(one + 1, some if counts[one] else 0):
            if pairs[one] == pairs[other]:
                inside[one - 1 : one + 1] = True
                inside[other - 1 : other + 1] = True
    return float(inside.sum() / some)


@compiled("Tuple((uint32[::1], float64))(uint8[::1])")
def read(text: Letters) -> tuple[Stems, float]:
    """Return the stems of one text, which ends with a zero byte, and its repetition."""
    letters, _ = split(text)
    return stems(letters), repetition(letters)


@compiled("int64(uint32)")
def _bucket(code: np.uint32) -> int:
    mixed = np.uint32((code ^ code >> np.uint32(15)) * _MIX)
    return int(mixed >> np.uint32(32 - BITS))


@compiled("int64(uint8[::1], int64[::1], int64)")
def _of_words(letters: Letters, buckets: Indices, some: int) -> int:
    """Put the n-grams of a text's words behind the first ``some`` buckets. Return how many there are then."""
    pair, single, known, first = np.uint32(0), np.uint32(0), 0, 1
    for at in range(1, len(letters)):
        if letters[at] != _BLANK:
            continue
        hashed, first, known = _crc(letters, first, at), at + 1, known + 1
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
    """Put the n-grams of a text's characters there."""
    for at in range(len(letters)):
        code = np.uint32(letters[at])
        for width in range(2, min(6, len(letters) - at + 1)):
            code = np.uint32(np.uint32(code * _PRIME) ^ np.uint32(letters[at + width - 1]))
            if width >= 3:
                buckets[some] = _bucket(np.uint32(code * _SALT_C + np.uint32(width)))
                some += 1
    return some


@compiled("Tuple((int64[::1], int64[::1]))(uint8[::1])")
def grams(texts: Letters) -> tuple[Indices, Indices]:
    """Return the buckets of the n-grams of some texts, one text's behind the other's, and where each text's end.

    One to three words, and three to five characters of the first BYTES_MAX. No n-gram crosses from a text into another.
    """
    letters, letters_ends = split(texts)
    # of a character three n-grams of characters begin; of a word, which is one at least, three of words
    buckets, ends = np.empty(6 * len(letters), np.int64), np.empty(len(letters_ends), np.int64)
    some, first = 0, 0
    for text in range(len(letters_ends)):
        some = _of_words(letters[first : letters_ends[text]], buckets, some)
        some = _of_letters(letters[first : min(first + BYTES_MAX, letters_ends[text])], buckets, some)
        first, ends[text] = letters_ends[text], some
    return buckets[:some], ends


@compiled("float64[::1](uint8[::1], float32[::1], float64, float64)")
def logits(texts: Letters, weights: NDArray[np.float32], bias: float, most: float) -> NDArray[np.float64]:
    """Return each text's ``bias + sum of the buckets' weights / sqrt(number of n-grams)``, clipped to +-``most``."""
    buckets, ends = grams(texts)
    found, first = np.empty(len(ends)), 0
    for text in range(len(ends)):
        total = 0.0
        for at in range(first, ends[text]):
            total += weights[buckets[at]]
        logit = total / np.sqrt(max(ends[text] - first, 1)) + bias
        found[text], first = min(max(logit, -most), most), ends[text]
    return found


@compiled("Tuple((float64, int64))(uint8[::1], float32[::1], float64, float64)")
def worst(texts: Letters, weights: NDArray[np.float32], bias: float, most: float) -> tuple[float, int]:
    """Return the highest of these, and of which text it is, of equal ones the first."""
    found, at = logits(texts, weights, bias, most), 0
    for text in range(len(found)):
        if found[text] > found[at]:
            at = text
    return found[at], at
