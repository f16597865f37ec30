"""A text as the detector reads it: words, stems, its units, whether it carries a question, how it repeats itself."""

import re

import numpy as np

from memsluice.events.units import Span, spans
from memsluice.gate.detectors.wording import tokens
from memsluice.gate.detectors.wording.tokens import Letters, Stems
from memsluice.gate.unicode import normalise

WHOLE_CHARACTERS_MAX = 360

_GAP = re.compile(r"[^\w\x00-\x7f]+")
_AFTER_ADVERB = (
    r"is|are|was|were|did|does|do|has|have|had|can|could|will|would|should|may|might"
    r"|many|much|long|old|often|far|big|tall"
)
# A line's end ends the blanks behind a break, too: else each of n empty lines would be tried with all those behind it.
_QUESTION = re.compile(
    r"(?:^|[.!:\"'(\n][^\S\n]*)"
    r"(?:(?:who|what|which|whose|whom)\b|(?:when|where|why|how)\s+(?:" + _AFTER_ADVERB + r")\b)",
    re.IGNORECASE,
)


def letters_of(texts: list[str]) -> Letters:
    """Return the letters of some texts, normalised, each text's with a zero byte behind: what :mod:`.tokens` reads."""
    plain = [
        text.lower() if text.isascii() and text.isprintable() else _GAP.sub(" ", normalise(text)) for text in texts
    ]
    plain.append("")
    return np.frombuffer(bytearray("\0".join(plain).encode()), np.uint8)  # bytes make an array of another type


def words(text: str) -> list[str]:
    """Return at most WORDS_MAX words of the normalised text: runs of letters and digits."""
    return tokens.split(letters_of([text]))[0].tobytes().decode().split()


def stems(text: str) -> Stems:
    """Return the CRC-32 of the stem of each of :func:`words`."""
    return tokens.stems(tokens.split(letters_of([text]))[0])


def read(text: str) -> tuple[Stems, float]:
    """Return the stems, and the share of words that repeat themselves (:func:`.tokens.repetition`)."""
    return tokens.read(letters_of([text]))


def places(text: str) -> list[Span]:
    """Return a text's units (:mod:`memsluice.events.units`); a short text of several is one more itself, and first.

    An instruction in one sentence of many is judged by itself, and one spread over a short text as a whole.
    """
    found = spans(text)
    whole = len(found) > 1 and len(text) <= WHOLE_CHARACTERS_MAX
    return [(0, len(text)), *found] if whole else found


def units(text: str) -> list[str]:
    """Return what stands at :func:`places`."""
    return [text[first:end] for first, end in places(text)]


def carries_question(text: str) -> bool:
    """Whether a text has a question mark, or a clause that begins like a question."""
    return "?" in text or _QUESTION.search(text) is not None
