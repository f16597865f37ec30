"""A text as the detector reads it: words, stems, its units, whether it carries a question, how it repeats itself."""

import re
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from itertools import pairwise
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memsluice.gate.unicode import normalise

Stems = NDArray[np.uint32]
"""32-bit hashes of a text's stems, in order."""

WORDS_MAX = 400
UNIT_WORDS_MAX = 60
UNITS_MAX = 40
REST_MAX = 70
"""Pieces of what follows those units, so that 8 KiB, the content limit by default, are read to their end."""
REPEATED_WORDS = range(6, 121)
"""Lengths, in words, of texts whose repetitions say something: longer ones repeat themselves anyway."""

_WORD = re.compile(r"[^\W_]+")
_BREAK = re.compile(r"[.!?][\"')\]]*\s+|\n+")
_SUFFIXES = ("ing", "ed", "es", "s")
_AFTER_ADVERB = (
    r"is|are|was|were|did|does|do|has|have|had|can|could|will|would|should|may|might"
    r"|many|much|long|old|often|far|big|tall"
)
# A line's end ends the blanks behind a break, too: else each of n empty lines would be tried with all those behind it.
_QUESTION = re.compile(
    r"\?|(?:^|[.!:\"'(\n][^\S\n]*)"
    r"(?:(?:who|what|which|whose|whom)\b|(?:when|where|why|how)\s+(?:" + _AFTER_ADVERB + r")\b)",
    re.IGNORECASE,
)


def words(text: str) -> list[str]:
    """Return at most WORDS_MAX words of the normalised text: runs of letters and digits."""
    return _WORD.findall(normalise(text))[:WORDS_MAX]


def stem(word: str) -> str:
    """Return the word without one plain English ending, and without a last ``e``; short words stay as they are."""
    if len(word) <= 4:
        return word
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= 3:
            word = word[: -len(suffix)]
            break
    return word.removesuffix("e")


def stems(found: list[str]) -> Stems:
    """Return the CRC-32 of each word's stem."""
    return np.array([_stem_hash(word) for word in found], np.uint32)


@lru_cache(4_096)
def _stem_hash(word: str) -> int:
    return crc32(stem(word).encode())


def units(text: str) -> list[str]:
    """Return a text's sentences and lines, at most UNITS_MAX, long ones cut; before them a short text as a whole.

    An instruction in one sentence of many is judged by itself, and one spread over a short text as a whole. What comes
    after so many units is joined and cut: at most REST_MAX pieces of UNIT_WORDS_MAX words.
    """
    found, rest = list[str](), list[str]()
    for sentence in _sentences(text):
        if len(sentence.strip()) < 3:
            continue
        if len(found) < UNITS_MAX:
            found += _cut(sentence.split())
        else:
            rest += sentence.split()
    found = found[: UNITS_MAX + REST_MAX] or [text[:UNIT_WORDS_MAX]]
    found += _cut(rest)[: UNITS_MAX + REST_MAX - len(found)]
    if len(found) > 1 and len(text.split()) <= UNIT_WORDS_MAX:
        found.insert(0, text)
    return found


def _sentences(text: str) -> Iterator[str]:
    first = 0
    for found in _BREAK.finditer(text):
        yield text[first : found.start() + (found[0][0] != "\n")]  # a full stop is its sentence's
        first = found.end()
    yield text[first:]


def _cut(found: list[str]) -> list[str]:
    return [" ".join(found[at : at + UNIT_WORDS_MAX]) for at in range(0, len(found), UNIT_WORDS_MAX)]


def carries_question(text: str) -> bool:
    """Whether a text has a question mark, or a clause that begins like a question."""
    return _QUESTION.search(text) is not None


def repetition(found: list[str]) -> float:
    """Return the share of words that lie in a pair of neighbours which occurs more than once, 0 to 1.

    A pair counts if one of its words has more than three letters; the anchors of retrieval attacks repeat their cues.
    """
    if len(found) not in REPEATED_WORDS:
        return 0.0
    pairs = list(pairwise(found))
    if len(set(pairs)) == len(pairs):
        return 0.0
    seen = Counter(pairs)
    inside = set()
    for at, pair in enumerate(pairs):
        if seen[pair] > 1 and (len(pair[0]) > 3 or len(pair[1]) > 3):
            inside |= {at, at + 1}
    return len(inside) / len(found)
