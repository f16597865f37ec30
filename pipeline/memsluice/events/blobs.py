"""Words that are written so that no person reads them: in Base64, in numbers of some base, in variation selectors."""

import base64
import binascii
import re
from itertools import pairwise
from typing import NamedTuple

_LINE = r"[A-Za-z0-9+/_-]{20,}"
BASE64 = rf"{_LINE}(?:\r?\n{_LINE})*(?:\r?\n[A-Za-z0-9+/_-]{{2,}}(?==))?={{0,2}}"
"""A run of its letters, over several lines where they are as long; the last may be shorter, if it is filled up."""
SELECTORS = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}"
"""Unseen marks behind a letter; an emoji has one, and so many in a row spell a byte each."""
_NUMBER = r"(?:0[xXbBoO]|[uU]\+)?[0-9A-Fa-f]{2,8}"
NUMBERS = rf"{_NUMBER}(?:[\s,;:]{{1,2}}{_NUMBER}){{11,}}(?!\w)|(?:\\{{1,2}}[0-3][0-7]{{2}}){{8,}}"
"""A letter a number: hexadecimal, decimal, octal and binary ones, code points, and octal escapes."""
_FIGURES = bytes(ord("0") if chr(one) in "0123456789abcdefABCDEF" else ord(" ") for one in range(256))
_BETWEEN, _ROW = b" \t\r\n,;:\\=xXoOuU+", b"0" * 24
_DIGITS, _PREFIX = re.compile(r"[^\s,;:\\]+"), re.compile(r"0[xXbBoO]|[uU]\+")
_BASES = ((2, 8), (16, 2), (16, 8), (8, 3), (10, 3))
"""Bases in which numbers are read, and how many digits one has at most; the first in which they are prose counts."""
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}){12,}")
_WORD, _WIDE = re.compile(r"[^\W\d_]{2,}"), re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]{4}")
_PART_MIN = 20
_REPEATED, _VOWELS = re.compile(r"[-_/+=\s]|(.)(?=\1)"), "aeiouAEIOU0134"
_NO_HEX = re.compile("[^0-9A-Fa-f]")
_OPAQUE_MIN, _CHANGES_MIN, _DIGITS_MIN, _DIGITS_MANY, _VOWELS_MAX = 14, 0.3, 0.05, 0.25, 0.31
"""Of a run without marks and repetitions: letters at least, and shares of them."""
_WIDE_CODES = {(True, False): "utf-16-be", (False, True): "utf-16"}
"""UTF-16 of Latin letters by where its zeros stand; a mark of the order of bytes goes with the second."""
_BLANKS = str.maketrans("", "", "\n\r\t")
_PLAIN_MIN = 0.75
"""Share of letters and blanks in what is prose; keys, records and programs have fewer."""
_FIRST, _LATER, _FIRST_MANY = 0xFE00, 0xE0100, 16


def text_of(run: str) -> str | None:
    """Return the text that a run of Base64's letters, or of hexadecimal digits, is the code of.

    None where it is none: words, paths and digests are not, and a number stays one.
    """
    run = run.translate(_BLANKS)
    if run.isdecimal():
        return None
    try:
        if _HEX.fullmatch(run):
            data = bytes.fromhex(run)
        else:
            bare = run.rstrip("=").translate({45: 43, 95: 47})
            data = base64.b64decode(bare + "=" * (-len(bare) % 4))
        inner = data.decode(_WIDE_CODES.get(_zeros(data), "utf-8"))
    except (ValueError, binascii.Error):
        return None
    return inner if inner.translate(_BLANKS).isprintable() else None


def many_figures(text: str) -> bool:
    """Whether a text has figures in a row, hexadecimal ones too, as a dozen numbers have, whatever parts these."""
    return _ROW in text.encode("utf-8", "surrogatepass").translate(_FIGURES, _BETWEEN)


def _zeros(data: bytes) -> tuple[bool, bool]:
    """Tell whether most of the even bytes are zero, and whether most of the odd ones are."""
    even, odd = data[::2].count(0), data[1::2].count(0)
    return even > len(data) // 4, odd > len(data) // 4


def numbered(run: str) -> str | None:
    """Return the words that a run of NUMBERS spells, letter by letter; None where it spells none.

    A column of figures can be letters by chance: only what has blanks between words is taken for prose.
    """
    digits = [_PREFIX.sub("", one, count=1) for one in _DIGITS.findall(run)] if "\\" not in run else _octal(run)
    longest = max(map(len, digits))
    for base, most in _BASES:
        try:
            points = [int(one, base) for one in digits] if longest <= most else []
            text = bytes(points).decode() if max(points, default=256) < 256 else "".join(map(chr, points))
        except (ValueError, OverflowError):
            continue
        if text.translate(_BLANKS).isprintable() and _is_prose(text) and (" " in text or _WIDE.search(text)):
            return text
    return None


def _octal(run: str) -> list[str]:
    return [one.lstrip("\\") for one in re.findall(r"\\+[0-7]{3}", run)]


class Prose(NamedTuple):
    """Some words, and where in a run the code of them begins and ends."""

    text: str
    first: int
    end: int


def prose_in(run: str) -> Prose | None:
    """Return the words that a run is the code of, whole or between two slashes, dashes or underscores, or behind 0x."""
    for mark in (None, "/", "-", "_", "x"):
        first = 0
        for part in [run] if mark is None else run.split(mark):
            text = text_of(part) if len(part) >= _PART_MIN else None
            if text is not None and _is_prose(text):
                return Prose(text, first, first + len(part))
            first += len(part) + 1
    return None


def _is_prose(text: str) -> bool:
    plain = sum(one.isalpha() or one.isspace() for one in text)
    return plain >= _PLAIN_MIN * len(text) and (len(_WORD.findall(text)) > 1 or _WIDE.search(text) is not None)


def opaque(run: str) -> bool:
    """Whether a run is a key, a digest, a picture or the like: as random as no words are, whatever their case.

    Letters and digits change places all the time; of hexadecimal ones many are digits, of others few are vowels or the
    digits that stand for these.
    """
    said = _REPEATED.sub("", run)
    digits = sum(one.isdigit() for one in said)
    changes = sum(_kind(one) != _kind(other) for one, other in pairwise(said))
    if len(said) < _OPAQUE_MIN or changes < _CHANGES_MIN * len(said) or digits < _DIGITS_MIN * len(said):
        return False
    if not _NO_HEX.search(said):
        return digits >= _DIGITS_MANY * len(said)
    return sum(one in _VOWELS for one in said) <= _VOWELS_MAX * len(said)


def _kind(letter: str) -> int:
    return 0 if letter.isdigit() else 1 if letter.islower() else 2


def selected(marks: str) -> str:
    """Return what variation selectors spell, a byte each."""
    points = map(ord, marks)
    return bytes(one - _FIRST if one < _LATER else one - _LATER + _FIRST_MANY for one in points).decode(
        errors="replace"
    )
