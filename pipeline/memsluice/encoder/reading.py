"""A text as it is read for its wording: windows of it, and which token belongs to which unit.

What a token says depends on all that is read with it, and an order among two hundred dull words says little. So where
anything shows in a window as long as a vector's, no more is read with it than a few sentences, in a short one, however
long the text. A unit that a window's end would cut is read whole by the
next one; each begins with what comes before its own tokens, so that none is read without what it stands behind.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from memsluice.events.units import spans

WINDOW = 62
"""Tokens of a window, without [CLS] and [SEP]: so many are cheapest to encode, too."""
OVERLAP = 16
TOKENS_MAX = 4_096
"""Tokens of a text that are read for their wording; what comes later is the n-grams' to judge."""


@dataclass(frozen=True, slots=True)
class Window:
    """Tokens ``first`` to ``end`` of a text are read; ``own`` to ``until`` are this window's, the others another's."""

    first: int
    own: int
    until: int
    end: int


def windows(tokens: int, begins: Sequence[int] = (), size: int = WINDOW) -> list[Window]:
    """Return the windows, of ``size`` tokens at most, of a text of so many, at least one; units begin at the tokens
    ``begins``, rising.

    A unit is one window's own, unless it is longer than what a window has room for.
    """
    last, found, first, own = min(tokens, TOKENS_MAX), list[Window](), 0, 0
    while True:
        end = min(first + size, last)
        until = end if end == last else _cut(begins, own, end, size)
        found.append(Window(first, own, until, end))
        if until == last:
            return found
        own, first = until, max(until - OVERLAP, 0)


def _cut(begins: Sequence[int], own: int, end: int, size: int) -> int:
    """Return where a window's own tokens end: before the unit that crosses ``end``, if the next window can hold it."""
    at = bisect_right(begins, end)
    begin = begins[at - 1] if at else end
    return begin if own < begin and end - begin < size - OVERLAP else end


class Unit(NamedTuple):
    """A unit's characters, ``first`` to ``end``, and the numbers of its tokens."""

    first: int
    end: int
    tokens: list[int]


def begins_of(units: Sequence[Unit]) -> list[int]:
    """Return the first token of each unit, rising; a text that is itself one more unit begins where its first does."""
    return sorted({unit.tokens[0] for unit in units})


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
