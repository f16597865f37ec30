"""The text that a reader has once its codes are read: HTML's and JSON's, URLs', and what tag characters spell.

A person sees a page and no entities; a model reads both, and the letters that tag characters (U+E0020 to E007E) hide
from people. Places are kept, so that what is found in the reading can be named, and taken out, in the text itself.
"""

import html
import re
import unicodedata
from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

DEPTH_MAX = 3
"""How often a code may stand within a code: ``&amp;lt;`` is two deep."""
_TAG_BASE = 0xE0000
_TAGS = re.compile("[\U000e0020-\U000e007e]")
_CODE = re.compile(
    r"(?P<url>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<json>(?:\\\\?u[0-9A-Fa-f]{4})+)"
    r"|(?P<html>&(?:\#[0-9]{1,7};?|\#[xX][0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,23};))"
    r"|(?P<tags>[" + "\U000e0020-\U000e007e]+)"
)
_BEGINS = ("%", "&", "\\u")
_NOTHING = ("Cc", "Cs", "Co", "Cn")
"""Categories of what no reader sees as text, but for white space: a code of it stays as it stands."""


class Reading(NamedTuple):
    """What is read, and of each of its characters where it begins and ends in the text."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def place(self, first: int, end: int) -> tuple[int, int]:
        """Return where characters ``first`` to ``end`` of the reading, one at least, stand in the text."""
        return self.starts[first], self.ends[end - 1]

    def within(self, outer: "Reading") -> "Reading":
        """Return this reading of ``outer``'s text as one of the text that ``outer`` is a reading of."""
        return Reading(self.text, [outer.starts[at] for at in self.starts], [outer.ends[at - 1] for at in self.ends])


def opened(text: str) -> str:
    """Return the text of :func:`unescaped`, or the text itself."""
    read = unescaped(text)
    return text if read is None else read.text


def unescaped(text: str) -> Reading | None:
    """Return the text with its codes read, what tag characters spell on a line of its own; None where it has none."""
    found: Reading | None = None
    for _ in range(DEPTH_MAX):
        inner = _once(text if found is None else found.text)
        if inner is None:
            break
        found = inner if found is None else inner.within(found)
    return found


def _once(text: str) -> Reading | None:
    if not any(begin in text for begin in _BEGINS) and (text.isascii() or not _TAGS.search(text)):
        return None
    parts: list[str] = []
    starts: list[Sequence[int]] = []
    ends: list[Sequence[int]] = []
    at = 0
    for code in _CODE.finditer(text):
        letters = _letters(code)
        if letters is None:
            continue
        first, end = code.span()
        parts += text[at:first], letters
        starts += range(at, first), [first] * len(letters)
        ends += range(at + 1, first + 1), [end] * len(letters)
        at = end
    if not at:
        return None
    rest = range(at, len(text)), range(at + 1, len(text) + 1)
    return Reading(
        "".join((*parts, text[at:])),
        [*chain.from_iterable(starts), *rest[0]],
        [*chain.from_iterable(ends), *rest[1]],
    )


def _letters(code: re.Match[str]) -> str | None:
    """Return what a code, or some in a row, stand for; None where that is nothing that a reader sees."""
    if code["tags"]:
        return "\n" + "".join(chr(ord(one) - _TAG_BASE) for one in code["tags"]) + "\n"
    try:
        if code["url"]:
            letters = bytes.fromhex(code["url"].replace("%", "")).decode()
        elif code["json"]:
            letters = bytes.fromhex(code["json"].replace("\\", "").replace("u", "")).decode("utf-16-be")
        else:
            letters = html.unescape(code["html"])
    except UnicodeDecodeError:
        return None
    shown = all(one.isspace() or unicodedata.category(one) not in _NOTHING for one in letters)
    return letters if letters and shown and letters != code[0] else None
