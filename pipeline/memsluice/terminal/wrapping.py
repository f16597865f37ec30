"""Lines of a screen: styled text, wrapped so that every character of it stands on some line. Pure.

What is wrapped here went through :func:`memsluice.escaping.visible` before: nothing in it acts on a terminal.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from unicodedata import category, east_asian_width

from rich.cells import get_character_cell_size

WORD_CHARS_MAX = 24
"""How far back a line is broken at a blank, so that words stay whole where that costs little room."""
BREAK = "⏎ "
"""How a line break of a content is written: a new line begins behind it here too."""
Run = tuple[str, str]
"""A text and the name of its style."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line: its runs, and whose it is. ``item`` is a place in what is listed, -1 for what stands above.

    ``first`` is the item's first line. ``must`` has to be seen by whoever decides about the item.
    """

    runs: tuple[Run, ...]
    item: int = -1
    first: bool = False
    must: bool = False

    @property
    def text(self) -> str:
        """The line without its styles."""
        return "".join(text for text, _ in self.runs)


def wrap(runs: Iterable[Run], width: int) -> list[tuple[Run, ...]]:
    """Return lines of at most ``width`` (2 or more) cells that together hold every character, in order."""
    those = [(text, style) for text, style in runs if text]
    whole = "".join(text for text, _ in those)
    starts = [0, *_ends(whole, width)]
    return [tuple(_part(those, *span)) for span in pairwise(starts)]


def indented(runs: Iterable[Run], width: int, first: Run = ("  ", ""), rest: Run = ("  ", "")) -> list[tuple[Run, ...]]:
    """Return wrapped lines, each behind a margin of ours: no text of others begins where our lines begin."""
    room = max(2, width - len(first[0]))
    return [((rest if number else first), *line) for number, line in enumerate(wrap(runs, room) or [()])]


def clipped(runs: Iterable[Run], width: int) -> tuple[Run, ...]:
    """Return one line, cut where it is longer than ``width`` cells, and saying so."""
    those = list(runs)
    lines = wrap(those, width)
    if len(lines) <= 1:
        return lines[0] if lines else ()
    (kept, *_) = wrap(those, max(2, width - 1))
    return (*kept, ("…", "dim"))


def _ends(text: str, width: int) -> Iterator[int]:
    at, plain = 0, text.isascii()
    while at < len(text):
        cut = min(len(text), at + width) if plain else _fitting(text, at, width)
        broken = text.find(BREAK, at, cut)
        if broken >= 0:
            cut = broken + len(BREAK)
        elif cut < len(text):
            blank = text.rfind(" ", max(at + 1, cut - WORD_CHARS_MAX), cut)
            cut = cut if blank < 0 else blank + 1
        yield cut
        at = cut


def _fitting(text: str, at: int, width: int) -> int:
    """Return the end of the longest line that begins at a place and takes at most ``width`` cells."""
    cells = 0
    for number in range(at, len(text)):
        cells += cells_at_most(text[number])
        if cells > width:
            return max(number, at + 1)
    return len(text)


@lru_cache(maxsize=4_096)
def cells_at_most(character: str) -> int:
    """Return how many cells a character takes on a terminal that gives it most.

    Terminals differ over vowel signs, parts of syllables and shades of emoji: some give them no cell of their own.
    Where a line was longer than it was reckoned its end would not be on the screen, and count as read.
    """
    if category(character) in ("Mn", "Me"):
        return 0
    return max(1 + (east_asian_width(character) in ("W", "F")), get_character_cell_size(character))


def _part(runs: Iterable[Run], start: int, end: int) -> Iterator[Run]:
    at = 0
    for text, style in runs:
        part = text[max(0, start - at) : max(0, end - at)]
        at += len(text)
        if part:
            yield part, style
        if at >= end:
            return
