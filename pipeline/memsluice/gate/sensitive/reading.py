"""The text as programs read it: in NFKC, without invisible characters, with plain digits and dashes.

Places are kept, so that what is found in the reading can be named, and taken out, in the text itself.
"""

import re
import unicodedata

from memsluice.events.codes import Reading
from memsluice.gate.unicode import INVISIBLE

_DASHES = "\u2010\u2011\u2012\u2013\u2014\u2212"
_OTHER_DIGITS = re.compile(r"[^\D0-9]|[0-9][\u2010-\u2014\u2212][0-9]")
_CONTROL = re.compile("[\x00-\x08\x0e-\x1b\x7f]")


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
    return Reading("".join(letters), places, [place + 1 for place in places])
