"""What a text has of past questions: the longest run of stems that it shares with one, and whom it comes nearest to."""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from memsluice.gate.detectors.numeric.compiled import compiled
from memsluice.gate.detectors.wording.tokens import Stems

STEMS_OF_QUESTION_MAX = 64
"""Stems of a question that are kept, and that runs are of."""
QUESTION_STEMS_MIN = 4
UNSAID_MIN = 10
CHANCE, ABOUT = 0.3, 0.25
"""A run is by chance in a text about something else: below the first cosine it is worth nothing, and all from the
second on above it."""


def one_behind_another(stems: Sequence[Stems]) -> tuple[Stems, NDArray[np.int64]]:
    """Return the stems of several texts, at least one, in one array, and where each text's end."""
    return np.concatenate(stems), np.fromiter(accumulate(map(len, stems)), np.int64, len(stems))


@compiled("UniTuple(int64, 2)(uint32[::1], uint32[::1])")
def longest_run(question: Stems, text: Stems) -> tuple[int, int]:
    """Return (length, start) of the longest run of stems that a text shares with a question; (0, 0) for none.

    ``start`` is the run's first word in the text; of equally long runs the one that begins first in the question, and
    then in the text. For n and m stems it costs n m steps, however often either repeats a stem.
    """
    best, start = 0, 0
    ends = np.zeros(
        len(text) + 1, np.int64
    )  # length of the run that ends at a word of the question and one of the text
    for asked in range(len(question)):
        for at in range(len(text), 0, -1):
            ends[at] = ends[at - 1] + 1 if question[asked] == text[at - 1] else 0
        for at in range(1, len(text) + 1):
            if ends[at] > best:
                best, start = ends[at], at - ends[at]
    return best, start


@compiled("int64(uint32[::1], uint32[::1])")
def unsaid(text: Stems, question: Stems) -> int:
    """Return how many of a text's stems, repeated ones each time, a question does not have."""
    some = len(text)
    for stem in text:
        said = False
        for other in question:  # to its end: several are compared at a time
            said |= stem == other
        some -= said
    return some


@compiled("float64(float64)")
def _four(value: float) -> float:
    """Return a value to the digits that rows keep."""
    return float(np.rint(value * 1e4) / 1e4)


@compiled(
    "Tuple((float64, int64, int64, int64, float64, int64))"
    "(uint32[::1], uint32[::1], int64[::1], float64[::1], float64, float64)"
)
def held_against(
    text: Stems,
    questions: Stems,
    ends: NDArray[np.int64],
    cosines: NDArray[np.float64],
    covered: float,
    near: float,
) -> tuple[float, int, int, int, float, int]:
    """Hold a text against some questions, whose stems lie behind each other and end at ``ends``.

    Return the share that the text covers of one of them, if it is more than ``covered``; which one, and the run's
    length and start; and the cosine, to the digits that are kept, of the one it comes nearest to, if that is above
    ``near``, and which one. -1 is none. A question that says all that the text says is a copy of it: it covers nothing.
    """
    by, run, start, closest, first = -1, 0, 0, -1, 0
    for at in range(len(ends)):
        question, first = questions[first : ends[at]], ends[at]
        about, cosine = min(1.0, max(0.0, (cosines[at] - CHANCE) / ABOUT)), _four(cosines[at])
        if about <= covered and cosine <= near:
            continue
        more = unsaid(text, question)
        if cosine > near and more > UNSAID_MIN:
            near, closest = cosine, at
        asked = question[:STEMS_OF_QUESTION_MAX]
        if not more or len(asked) < QUESTION_STEMS_MIN:
            continue
        most = min((len(text) - more) / len(asked), about)  # a run is no longer than what both have
        if _four(most) > covered:
            length, where = longest_run(asked, text)
            share = _four(min(length / len(asked), about))
            if share > covered:
                covered, by, run, start = share, at, length, where
    return covered, by, run, start, near, closest


@compiled("boolean[::1](uint32[::1], int64[::1], uint32[::1], float64[::1], float64[:], float64[:])")
def tells(
    texts: Stems,
    ends: NDArray[np.int64],
    question: Stems,
    cosines: NDArray[np.float64],
    covered: NDArray[np.float64],
    near: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Return of which texts, that lie behind each other and end at ``ends``, one question tells anything new.

    ``covered`` and ``near``, shape (n,), are what others told: how far each text is covered, and how near one comes.
    """
    found, first, end = np.empty(len(ends), np.bool_), 0, np.array([len(question)])
    for at in range(len(ends)):
        text, first = texts[first : ends[at]], ends[at]
        _, by, _, _, _, closest = held_against(text, question, end, cosines[at : at + 1], covered[at], near[at])
        found[at] = by >= 0 or closest >= 0
    return found
