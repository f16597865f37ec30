"""The text as programs read it: in NFKC without invisible characters; or with codes in it read, as of URLs and HTML.

Offsets are kept, so that what is found in the reading can be named, and taken out, in the text itself.
"""

import html
import re
import unicodedata

from memsluice.gate.unicode import INVISIBLE

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212"
_OTHER_DIGITS = re.compile(r"[^\D0-9]|[0-9][\u2010-\u2014\u2212][0-9]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f]")


Reading = tuple[str, list[int], list[int]]
"""What is read, and of each of its characters where it begins and ends in the text."""


def plain(text: str) -> Reading | None:
    """Return the reading; None where it is the text itself."""
    if text.isascii():
        if text.isprintable() or not _CONTROL.search(text):
            return None
    elif not _OTHER_DIGITS.search(text) and unicodedata.is_normalized("NFKC", text) and not INVISIBLE.search(text):
        return None
    letters: list[str] = []
    places: list[int] = []
    for at, character in enumerate(text):
        if character.isascii() and character.isprintable():
            letters.append(character)
            places.append(at)
        elif not INVISIBLE.match(character):
            digit = unicodedata.decimal(character, None)
            read = (
                str(digit)
                if digit is not None
                else "-"
                if character in _DASHES
                else unicodedata.normalize("NFKC", character)
            )
            letters.append(read)
            places += [at] * len(read)
    return "".join(letters), places, [place + 1 for place in places]


_CODE = re.compile(
    r"%(?P<url>[2-7][0-9A-Fa-f])|\\\\?u00(?P<json>[2-7][0-9A-Fa-f])"
    r"|&(?:\#0*\d{2,3}|\#[xX]0*[2-7][0-9A-Fa-f]|[a-z]{2,6});"
)
CODES = ("%", "&", "\\u00")
"""One of these stands in a text with codes."""


def unescaped(text: str) -> Reading | None:
    """Return the text with its codes of ASCII read, as URLs, HTML and JSON have them; None where it has none."""
    parts: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for code in _CODE.finditer(text):
        letter = _letter(code)
        if letter is None:
            continue
        parts += text[at : code.start()], letter
        starts += range(at, code.start() + 1)
        ends += (*range(at + 1, code.start() + 1), code.end())
        at = code.end()
    if not at:
        return None
    return "".join((*parts, text[at:])), [*starts, *range(at, len(text))], [*ends, *range(at + 1, len(text) + 1)]


def _letter(code: re.Match[str]) -> str | None:
    """Return the one ASCII character that a code is of, None where it is of another, or of none."""
    digits = code["url"] or code["json"]
    letter = chr(int(digits, 16)) if digits else html.unescape(code[0])
    return letter if len(letter) == 1 and letter.isascii() else None
