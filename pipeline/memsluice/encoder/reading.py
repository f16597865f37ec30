"""A text as the encoder reads it beyond its first 256 tokens: windows of it, and which token belongs to which unit.

The first window is the one that the vector is made from. Each later one begins with the last tokens of the one before,
so that every token is read behind what came before it.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memsluice.events.units import spans

WINDOW = 254
"""Tokens of a window, without [CLS] and [SEP]."""
OVERLAP = 32
TOKENS_MAX = 4_096
"""Tokens of a text that are read for their wording; what comes later is the n-grams' to judge."""


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens ``first`` to ``end`` of a text; those from ``own`` on are this window's, the others the one's before."""

    first: int
    own: int
    end: int


def windows(tokens: int) -> list[Window]:
    """Return the windows of a text of so many tokens, at least one."""
    found = [Window(0, 0, min(tokens, WINDOW))]
    while found[-1].end < min(tokens, TOKENS_MAX):
        own = found[-1].end
        first = own - OVERLAP
        found.append(Window(first, own, min(first + WINDOW, tokens, TOKENS_MAX)))
    return found


class Unit(NamedTuple):
    """A unit's characters, ``first`` to ``end``, and the numbers of its tokens."""

    first: int
    end: int
    tokens: list[int]


def units_of(text: str, starts: Sequence[int], whole: bool) -> list[Unit]:
    """Return the units that have any token; ``starts`` are the tokens' first characters.

    With ``whole`` a text of several units is one more itself.
    """
    some = [Unit(first, end, []) for first, end in spans(text)]
    begins = [unit.first for unit in some]
    for number, start in enumerate(starts):
        at = bisect_right(begins, start) - 1
        if at >= 0 and start < some[at].end:
            some[at].tokens.append(number)
    every = Unit(0, len(text), list(range(len(starts))))
    some = [unit for unit in some if unit.tokens]
    if starts and (not some or (whole and len(some) > 1)):
        some.append(every)
    return some
