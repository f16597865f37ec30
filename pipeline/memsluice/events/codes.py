"""The text that a reader has once its codes are read: HTML's, JSON's, URLs', Base64's, unseen characters'.

A person sees a page and no entities; a model reads both, and the letters that tag characters (U+E0020 to E007E) and
variation selectors hide from people. What stands unseen within a word, these and marks of a page, is taken out of it,
and what it says stands behind the text, in lines of its own. Letters that are spread over a line are words again.
Places are kept, so that what is found in the reading can be named, and taken out, in the text itself.
"""

import html
import re
import unicodedata
from collections.abc import Sequence
from itertools import chain, pairwise
from typing import NamedTuple

from memsluice.events import blobs
from memsluice.events.blanks import blanked

DEPTH_MAX = 3
"""How often a code may stand within a code: ``&amp;lt;`` is two deep."""
_TAG_BASE = 0xE0000
_UNSEEN = re.compile("[\U000e0020-\U000e007e\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_MARK = (
    r"<!--[^<]{0,200}?-->|</?(?:b|big|em|font|i|mark|small|span|strong|sub|sup|u|wbr)\b[^<>]{0,200}>"  # no two overlap
)
_ANY_MARK = re.compile(
    r"(?P<cell></t[dh]>\s{0,20}<t[dh]\b[^<>]{0,200}>|</dt>\s{0,20}<dd\b[^<>]{0,200}>)"
    r"|(?P<inline></?(?:a|abbr|b|big|code|em|font|i|kbd|label|mark|pre|q|s|samp|small|span|strong|sub|sup|tt|u|var|wbr)\b"
    r"[^<>]{0,200}>|<!--[^<]{0,200}?-->)"
    r"|</?[A-Za-z][^<>]{0,200}>",
    re.IGNORECASE,
)
_SAID = re.compile(r"<!--([^<]*?)-->|</?\w+([^<>]*)>")
_UUID = r"[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![\w-])"
_ID = re.compile(rf"{_UUID}|(?=[^0-9]*[0-9])(?=[0-9]*[A-Fa-f])[0-9A-Fa-f]{{20,}}")
"""A UUID, or as many hexadecimal digits as an id or a digest has; some are less random than what is opaque."""
OPAQUE = "#"
"""Stands in a reading for a key, a digest or a picture: nobody reads it, and no model should."""
_LETTER = r"[^\W\d_]"
_FORMS = (
    r"(?P<url>(?:%[0-9A-Fa-f]{2})+)"
    r"|(?P<json>(?:\\\\?u[0-9A-Fa-f]{4}|%u[0-9A-Fa-f]{4})+)"
    r"|(?P<point>\\\\?u\{[0-9A-Fa-f]{1,6}\}|\\\\?x[0-9A-Fa-f]{2})"
    r"|(?P<html>&(?:\#[0-9]{1,7};?|\#[xX][0-9A-Fa-f]{1,6};?|[A-Za-z][A-Za-z0-9]{1,23};))"
    r"|(?P<tags>[" + "\U000e0020-\U000e007e]+)"
    rf"|(?P<selectors>{blobs.SELECTORS})"
    rf"|(?P<spread>(?<![^\W_]){_LETTER}(?:[ \t.*|/·_-]{{1,3}}{_LETTER}){{7,}}(?![^\W_]))"
    rf"|(?<![A-Za-z0-9+/_-])(?P<blob>{blobs.BASE64}|{_UUID})"
    rf"|(?<=\w)(?P<marks>(?:{_MARK}){{1,8}})(?=\w)"
)
_CODE = re.compile(_FORMS)
_CODE_IN_NUMBERS = re.compile(rf"(?<!\w)(?P<numbers>{blobs.NUMBERS})|(?P<quoted>(?:=[0-9A-F]{{2}}){{2,}})|{_FORMS}")
"""The same for a text with so many figures in a row that it may spell something by them: few have."""
_BEGINS = ("%", "&", "\\u", "\\x", "<")
_MAY_BE = re.compile(r"(?<!\S)\S(?:\S{19}|\s+\S\s+\S\s+\S\s|[.*|/·_-]\S[.*|/·_-]\S[.*|/·_-]\S)")
"""A word so long that it may be a code, or letters with marks between; or letters of which each stands alone."""
_HEX, _LETTERS = re.compile("[0-9A-Fa-f]+"), re.compile(_LETTER)
_NOTHING = ("Cc", "Cs", "Co", "Cn")
"""Categories of what no reader sees as text, but for white space: a code of it spells nothing, and goes."""
_UNREADABLE = "\N{REPLACEMENT CHARACTER}"


class Reading(NamedTuple):
    """What is read, and of each of its characters where it begins and ends in the text."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]

    def place(self, first: int, end: int) -> tuple[int, int]:
        """Return where characters ``first`` to ``end`` of the reading, one at least, stand in the text."""
        return min(self.starts[first:end]), max(self.ends[first:end])

    def within(self, outer: "Reading") -> "Reading":
        """Return this reading of ``outer``'s text as one of the text that ``outer`` is a reading of."""
        return Reading(self.text, [outer.starts[at] for at in self.starts], [outer.ends[at - 1] for at in self.ends])


def in_place(letters: str) -> Reading:
    """Return the reading of a text of the same length: each character stands where it is read."""
    return Reading(letters, range(len(letters)), range(1, len(letters) + 1))


def opened(text: str) -> str:
    """Return the text of :func:`unescaped`, or the text itself."""
    read = unescaped(text)
    return text if read is None else read.text


def unescaped(text: str, *, whole: bool = False) -> Reading | None:
    """Return the text with its codes read, and behind it what stood unseen in it, and with a blank for what looks like
    one (:mod:`memsluice.events.blanks`); None where it has none of them.

    ``whole``: keys and digests stand in it as they are, not as OPAQUE.
    """
    plain = blanked(text)
    found = None if plain == text else in_place(plain)
    for _ in range(DEPTH_MAX):
        inner = _once(text if found is None else found.text, whole=whole)
        if inner is None:
            break
        found = inner if found is None else inner.within(found)
    return found


class _Parts:
    """A reading while it is made."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._starts: list[Sequence[int]] = []
        self._ends: list[Sequence[int]] = []

    def plain(self, text: str, first: int, end: int) -> None:
        """Take characters of the text as they stand."""
        self.texts.append(text[first:end])
        self._starts.append(range(first, end))
        self._ends.append(range(first + 1, end + 1))

    def spelt(self, letters: str, first: int, end: int) -> None:
        """Take what characters of the text stand for."""
        self.texts.append(letters)
        self._starts.append([first] * len(letters))
        self._ends.append([end] * len(letters))

    def gathered(self, text: str, first: int, end: int) -> None:
        """Take letters of the text without what stands between any two; of more than one mark a blank is left, and of a
        blank where most letters have another mark between and nowhere are more than one."""
        letters = [letter.start() for letter in _LETTERS.finditer(text, first, end)]
        gaps = [text[at + 1 : after] for at, after in pairwise(letters)]
        marked = max(map(len, gaps)) == 1 and sum(not gap.isspace() for gap in gaps) * 2 > len(gaps)
        for at, gap in zip(letters, [*gaps, ""], strict=True):
            self.plain(text, at, at + 1)
            if len(gap) > 1 or (marked and gap.isspace()):
                self.spelt(" ", at + 1, at + 1 + len(gap))

    def reading(self) -> Reading:
        """Return it."""
        return Reading("".join(self.texts), [*chain(*self._starts)], [*chain(*self._ends)])


def untagged(text: str) -> Reading | None:
    """Return the text without a page's marks, for what is said in several of them; None where it has none.

    Those within a line are nothing, others end it; between two cells of a row, or a term and what is said of it, stands
    a colon.
    """
    parts, at = _Parts(), 0
    for mark in _ANY_MARK.finditer(text) if "<" in text else ():
        parts.plain(text, at, mark.start())
        parts.spelt(": " if mark["cell"] else "" if mark["inline"] else "\n", *mark.span())
        at = mark.end()
    if not at:
        return None
    parts.plain(text, at, len(text))
    return parts.reading()


def _may_be_coded(text: str) -> bool:
    if any(begin in text for begin in _BEGINS) or (not text.isascii() and _UNSEEN.search(text)):
        return True
    return _MAY_BE.search(text) is not None or blobs.many_figures(text)


def _once(text: str, *, whole: bool) -> Reading | None:
    if not _may_be_coded(text):
        return None
    parts, unseen, at = _Parts(), list[tuple[str, int, int]](), 0
    codes = _CODE_IN_NUMBERS if blobs.many_figures(text) else _CODE
    for code in codes.finditer(text):
        first, end = code.span()
        if code["blob"]:
            prose = blobs.prose_in(code[0])
            if prose is not None:
                first, end = first + prose.first, first + prose.end
                letters = _seen(prose.text)
            elif not whole and (blobs.opaque(code[0]) or _ID.fullmatch(code[0])):
                letters = OPAQUE
            else:
                continue
        elif codes is _CODE_IN_NUMBERS and code["numbers"]:
            words = blobs.numbered(code[0])
            if words is None:
                continue
            letters = _seen(words)
        else:
            letters = _letters(code)
            if letters == code[0]:
                continue
        parts.plain(text, at, first)
        if code["spread"]:
            parts.gathered(text, first, end)
        elif code["tags"] or code["marks"] or code["selectors"]:
            unseen.append((letters, first, end))
        else:
            parts.spelt(letters, first, end)
        at = end
    if not at:
        return None
    parts.plain(text, at, len(text))
    apart = "\n"
    for letters, first, end in unseen:  # in a row where one stands behind the other: spread letters are one text
        if letters:
            parts.spelt(apart + letters, first, end)
            apart = ""
    return parts.reading()


def _said(code: re.Match[str]) -> str:
    """Return what stands in a comment or in a mark's attributes."""
    said = [comment or attributes for comment, attributes in _SAID.findall(code["marks"])]
    return "".join(f"{one} " for one in said if one.strip())


def _letters(code: re.Match[str]) -> str:
    """Return what a code, or some in a row, stand for; of what no reader sees, or nobody can read, nothing."""
    if code["url"] or code[0].startswith("="):
        letters = bytes.fromhex(re.sub("[%=]", "", code[0])).decode(errors="replace")
    elif code["json"]:
        units = re.sub(r"[\\%u]+", "", code["json"])
        letters = bytes.fromhex(units).decode("utf-16-be", errors="replace")
    elif code["point"]:
        point = int(_HEX.findall(code["point"].replace("x", " "))[-1], 16)
        letters = chr(point) if point < 0x110000 else ""
    elif code["marks"]:
        return _said(code)
    elif code["tags"]:
        return "".join(chr(ord(one) - _TAG_BASE) for one in code["tags"])
    elif code["selectors"]:
        letters = blobs.selected(code["selectors"])
    elif code["spread"]:
        return ""
    else:
        letters = html.unescape(code["html"])
    return _seen(letters)


def _seen(letters: str) -> str:
    """Return what a reader sees of some letters."""
    return "".join(
        one for one in letters if one.isspace() or (one != _UNREADABLE and unicodedata.category(one) not in _NOTHING)
    )
