"""Letters in other dress: what looks like a plain Latin letter, or is one in another style, as that letter."""

import re
import unicodedata

_ALIKE = {
    "a": (0x430, 0x3B1), "b": (0x432, 0x3B2), "c": (0x441,), "d": (0x501,),
    "e": (0x435, 0x3B5), "h": (0x4BB, 0x43D), "i": (0x456, 0x3B9), "j": (0x458,),
    "k": (0x43A, 0x3BA), "l": (0x4CF,), "m": (0x43C,), "n": (0x3B7,),
    "o": (0x43E, 0x3BF), "p": (0x440, 0x3C1), "q": (0x51B,), "r": (0x433,),
    "s": (0x455,), "t": (0x442, 0x3C4), "u": (0x446, 0x3C5), "v": (0x475, 0x3BD),
    "w": (0x461, 0x3C9), "x": (0x445, 0x3C7), "y": (0x443, 0x3B3),
}  # fmt: skip
"""Latin letters, and the Cyrillic and Greek small letters that look like them (UTS #39's confusables)."""
_LATIN_FOR = {point: letter for letter, points in _ALIKE.items() for point in points}
_WORD, _LATIN, _OTHER = re.compile(r"[\w\u0300-\u036f]+"), re.compile("[a-z]"), re.compile("[\u0370-\u052f]")
_STYLED = (
    *((0x02B0, 0x02B8), (0x1D2C, 0x1D6A), (0x2070, 0x209C), (0x2100, 0x214F), (0x2460, 0x24FF)),
    *((0xFF10, 0xFF5A), (0x1D400, 0x1D7FF), (0x1F110, 0x1F149)),
)
"""Ranges with letters and digits in styles: raised and lowered, letter-like symbols, enclosed, full-width,
mathematical."""
_BADGES = (0x1F150, 0x1F170, 0x1F1E6)
"""First of A to Z in dark circles, in dark squares, and as halves of flags: Unicode gives these no plain form."""
_SMALL_CAPITALS = dict(zip("ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘꞯʀꜱᴛᴜᴠᴡʏᴢ", "abcdefghijklmnopqrstuvwyz", strict=True))


def _plain() -> dict[int, str]:
    """Return the one plain letter or digit for each that is one in a style (UAX #15, NFKC)."""
    found = {}
    for first, last in _STYLED:
        for point in range(first, last + 1):
            plain = unicodedata.normalize("NFKC", chr(point))
            if len(plain) == 1 and plain.isascii() and plain.isalnum():
                found[point] = plain
    found |= {first + at: chr(ord("A") + at) for first in _BADGES for at in range(26)}
    return found | {ord(small): plain for small, plain in _SMALL_CAPITALS.items()}


_PLAIN = _plain()


def undressed(text: str) -> str:
    """Return a text of the same length with plain letters in place of styled ones, and :func:`latin` where words mix
    scripts; such words in small letters."""
    if text.isascii():
        return text
    plain = unstyled(text)
    if not _OTHER.search(plain.lower()):
        return plain
    small = latin(plain.lower())
    if len(small) != len(plain):  # a few capital letters have two small ones
        return plain
    return "".join(new if new != old.lower() else old for new, old in zip(small, plain, strict=True))


def unstyled(text: str) -> str:
    """Return a text of the same length with plain letters and digits in place of styled ones."""
    return text.translate(_PLAIN)


def latin(text: str) -> str:
    """Return a text of the same length with Latin letters for the Cyrillic and Greek small letters that look like them,
    in words that have Latin letters, too: no language spells like that. A word all of one script stays what it is."""
    return _WORD.sub(_one_script, text) if _OTHER.search(text) else text


def _one_script(word: re.Match[str]) -> str:
    mixed = _LATIN.search(word[0]) and _OTHER.search(word[0])
    return word[0].translate(_LATIN_FOR) if mixed else word[0]
