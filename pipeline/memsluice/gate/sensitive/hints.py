"""Which searches a text needs: what literals it holds, and whether it has long runs or many digits; most need none.

A search that is named by no literal and no property of the text is not run.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from memsluice.gate.sensitive.span import Span

ANY: Final = 0
LONG: Final = 1
"""A run of at least RUN_MIN bytes without a blank: keys have it, and most prose has none."""
DIGITS: Final = 2
"""At least DIGITS_MIN ASCII digits near each other: no more than GAP_MAX bytes between two of them."""
LONGER: Final = 4
"""A run of at least LONGER_MIN bytes without a blank."""
RUN_MIN, LONGER_MIN, DIGITS_MIN, GAP_MAX = 16, 48, 9, 3
_LETTERS = bytes(b" a"[letter > ord(" ")] for letter in range(256))
_RUN, _LONGER_RUN = b"a" * RUN_MIN, b"a" * LONGER_MIN
_NEAR = re.compile(rb"[0-9](?:[^0-9]{0,%d}[0-9]){%d}" % (GAP_MAX, DIGITS_MIN - 1))


class Search(NamedTuple):
    """A scanner, and what a text has that it is for: one of its ``hints`` (lower case), and what it ``needs`` besides.

    Without hints what it needs is enough. ``find`` is given the text, and the text in lower case, as long as it.
    """

    hints: tuple[str, ...]
    find: Callable[[str, str], Iterable[Span]]
    needs: int = ANY


def matches(pattern: re.Pattern[str], text: str, lower: str, hints: tuple[str, ...]) -> Iterator[re.Match[str]]:
    """Yield where the pattern matches from a hint on. That costs what the hints cost, and no try at each character."""
    for hint in hints:
        at = lower.find(hint)
        while at >= 0:
            match = pattern.match(text, at)
            if match is not None:
                yield match
            at = lower.find(hint, at + len(hint))


class Searches:
    """Searches by what a text must have for each of them."""

    def __init__(self, searches: Sequence[Search]) -> None:
        self._by_need = tuple(one for one in searches if not one.hints)
        hinted = [(hint, one) for one in searches for hint in one.hints]
        self._plain = [pair for pair in hinted if pair[0].isascii() and not pair[1].needs]
        self._needy = [pair for pair in hinted if pair[0].isascii() and pair[1].needs]
        self._beyond_ascii = [pair for pair in hinted if not pair[0].isascii()]

    def of(self, text: str, lower: str) -> Iterator[Span]:
        """Yield what those searches find that the text needs."""
        has = _properties(lower)
        named = [one for hint, one in self._plain if hint in lower]
        if has:
            named += [one for hint, one in self._needy if hint in lower]
            named += self._by_need
        if not lower.isascii():
            named += [one for hint, one in self._beyond_ascii if hint in lower]
        for search in {id(one): one for one in named}.values():
            if has & search.needs == search.needs:
                yield from search.find(text, lower)


def _properties(lower: str) -> int:
    letters = lower.encode("utf-8", "surrogatepass")
    runs = letters.translate(_LETTERS)
    has = LONG * (_RUN in runs)
    if has and _LONGER_RUN in runs:
        has |= LONGER
    return has | DIGITS * (_NEAR.search(letters) is not None)
