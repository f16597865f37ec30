"""Words that are written so that no person reads them: in Base64, in hexadecimal digits, in variation selectors."""

import base64
import binascii
import re

BASE64 = r"[A-Za-z0-9+/_-]{20,}={0,2}"
SELECTORS = "[\ufe00-\ufe0f\U000e0100-\U000e01ef]{4,}"
"""Unseen marks behind a letter; an emoji has one, and so many in a row spell a byte each."""
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}){12,}")
_BLANKS = str.maketrans("", "", "\n\r\t")
_PLAIN_MIN = 0.75
"""Share of letters and blanks in what is prose; keys, records and programs have fewer."""
_FIRST, _LATER, _FIRST_MANY = 0xFE00, 0xE0100, 16


def text_of(run: str) -> str | None:
    """Return the text that a run of Base64's letters, or of hexadecimal digits, is the code of.

    None where it is none: words, paths and digests are not, and a number stays one.
    """
    if run.isdecimal():
        return None
    try:
        if _HEX.fullmatch(run):
            data = bytes.fromhex(run)
        else:
            bare = run.rstrip("=").translate({45: 43, 95: 47})
            data = base64.b64decode(bare + "=" * (-len(bare) % 4))
        inner = data.decode()
    except (ValueError, binascii.Error):
        return None
    return inner if inner.translate(_BLANKS).isprintable() else None


def prose_of(run: str) -> str | None:
    """Return the same, if it is some words."""
    inner = text_of(run)
    if inner is None or len(inner.split()) < 2:
        return None
    return inner if sum(one.isalpha() or one.isspace() for one in inner) >= _PLAIN_MIN * len(inner) else None


def selected(marks: str) -> str:
    """Return what variation selectors spell, a byte each."""
    points = map(ord, marks)
    return bytes(one - _FIRST if one < _LATER else one - _LATER + _FIRST_MANY for one in points).decode(
        errors="replace"
    )
