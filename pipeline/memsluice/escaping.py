"""Text that somebody else chose, fit for a terminal, a log or a trace: nothing in it acts, hides or moves the rest."""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

TEXT_CHARS_MAX = 600
MARKS_MAX = 3
"""Combining marks in a row that are shown; more of them pile up over other lines."""
_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
"""Control, format (bidi, zero width, tags), private use, surrogate, unassigned, line and paragraph separators."""
_BLANKS = (
    *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x2800, 0x2800), (0x3164, 0x3164), (0xFFA0, 0xFFA0)),
    *((0x180B, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)),
)
"""Fillers and variation selectors, first and last."""
_PLAIN = re.compile(r"[ -~]+")


def visible(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    """Return the text with every character that is not seen, or moves others, written as ``<U+202E>``.

    Line breaks become ``⏎``; what is longer than ``chars_max`` is cut, and says so.
    """
    if len(text) <= chars_max and text.isascii() and text.isprintable():
        return text  # nearly always; spans are written by the thousand
    shown, marks = [], 0
    for character in text[:chars_max]:
        seen, mark = _seen(character)
        marks = marks + 1 if mark else 0
        shown.append(_spelled(character) if marks > MARKS_MAX else seen)
    rest = len(text) - chars_max
    return "".join(shown) + (f" … ({rest} more characters)" if rest > 0 else "")


def parts(text: str) -> Iterator[tuple[str, bool]]:
    """Yield a text in parts, each with whether it is one character that :func:`visible` writes otherwise than it is.

    Joined, the parts are the text: for a screen that shows such a character as something that cannot be typed.
    """
    at, marks = 0, 0
    run: list[str] = []
    while at < len(text):
        if plain := _PLAIN.match(text, at):
            run.append(plain[0])
            at, marks = plain.end(), 0
            continue
        character = text[at]
        seen, mark = _seen(character)
        marks = marks + 1 if mark else 0
        if seen == character and marks <= MARKS_MAX:
            run.append(character)
        else:
            if run:
                yield "".join(run), False
                run = []
            yield character, True
        at += 1
    if run:
        yield "".join(run), False


@lru_cache(maxsize=4_096)
def _seen(character: str) -> tuple[str, bool]:
    """Return how a character is written, and whether it is a mark on the one before."""
    category = unicodedata.category(character)
    if character == "\n":
        return " ⏎ ", False
    blank = any(low <= ord(character) <= high for low, high in _BLANKS)
    return _spelled(character) if blank or category in _HIDDEN else character, category in ("Mn", "Me")


def _spelled(character: str) -> str:
    return f"<U+{ord(character):04X}>"


def lines(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    """Return a text of ours that quotes others', such as a traceback or a server's log: line breaks stay, tabs expand.

    ``chars_max`` holds for each line. Nothing keeps a quoted text from starting a line of its own: use :func:`visible`
    wherever lines mean something.
    """
    return "\n".join(visible(line.expandtabs(), chars_max) for line in text.split("\n"))
