"""Text as screening reads it, and the characters that readers do not see.

What is stored stays as it was written; only the screening looks at :func:`normalise`. Sources: Unicode UAX #15
(normalisation), UTS #39 and UTR #36 (security), UTS #51 (emoji sequences).
"""

import re
import unicodedata

from memsluice.events.blanks import blanked
from memsluice.events.letters import latin, unstyled

_INVISIBLE = {
    # name: ranges of code points, inclusive
    "zero_width": ((0x200B, 0x200D), (0x2060, 0x2060), (0xFEFF, 0xFEFF), (0x180E, 0x180E), (0x00AD, 0x00AD)),
    "bidi": ((0x061C, 0x061C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)),
    "tag": ((0xE0000, 0xE007F),),
    "variation_selector": ((0x180B, 0x180D), (0x180F, 0x180F), (0xFE00, 0xFE0F), (0xE0100, 0xE01EF)),
    "filler": (
        *((0x034F, 0x034F), (0x115F, 0x1160), (0x17B4, 0x17B5)),
        *((0x2800, 0x2800), (0x3164, 0x3164), (0xFFA0, 0xFFA0)),
    ),
    "format": ((0x2061, 0x2065), (0x206A, 0x206F), (0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A)),
    # C0 and C1 without the white space among them (U+0009-000D, 001C-001F, 0085)
    "control": ((0x00, 0x08), (0x0E, 0x1B), (0x7F, 0x84), (0x86, 0x9F)),
}
_JOINERS = "\u200c\u200d"
_EMOJI_STYLES = "\ufe0e\ufe0f"
MARKS_MAX = 30
"""Combining marks in a row that screening reads; UAX #15 calls text with no longer run stream-safe."""


def _class(ranges: tuple[tuple[int, int], ...]) -> str:
    return "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in ranges)


_ONE = f"[{''.join(_class(ranges) for ranges in _INVISIBLE.values())}]"
INVISIBLE = re.compile(_ONE)  # one class: an alternation of the seven is tried at every character and 20 times slower
_REMOVED = re.compile(_ONE + "+")
_LONG_RUN = re.compile(f"[^\x00-\x7f]{{{MARKS_MAX + 1}}}")


def normalise(text: str) -> str:
    """Return ``text`` as patterns are matched on it: invisible characters removed (blanks, where readers take them for
    some: :mod:`memsluice.events.blanks`), NFKC, casefolded, spaces collapsed.

    Linear in the length of ``text``; the result has at most 18 times as many characters (NFKC's own bound). Applying
    it twice gives the same as once. Full-width, ligature and mathematical letters become plain ones, and so do Cyrillic
    and Greek look-alikes within a word that has Latin letters, too: no language spells like that. A word all of one
    script stays what it is.
    """
    if text.isascii():
        return " ".join((text if text.isprintable() else _REMOVED.sub("", blanked(text))).lower().split())
    seen = unstyled(_stream_safe(_REMOVED.sub("", blanked(text))))
    folded = unicodedata.normalize("NFKC", seen).casefold()
    # Folding can undo composition and the reverse (UAX #31, NFKC_Casefold); once more settles both.
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", folded).casefold())
    folded = " ".join(_REMOVED.sub("", folded).split())
    plain = latin(folded)
    return folded if plain is folded else unicodedata.normalize("NFKC", plain)  # a letter may take the mark behind it


def controls(text: str) -> tuple[tuple[str, int], ...]:
    """Return (name, index) of every character that does not show, in order.

    Names: ``zero_width``, ``bidi``, ``tag``, ``variation_selector``, ``filler``, ``format``, ``control``. Left out is
    what correct spelling needs: joiners inside emoji and inside scripts that use them, and the emoji style selectors
    after a symbol.
    """
    if text.isascii() and text.isprintable():  # most texts, and soon said
        return ()
    found = (match.start() for match in INVISIBLE.finditer(text))
    return tuple((_name(text[at]), at) for at in found if not _spelling(text, at))


def _name(character: str) -> str:
    point = ord(character)
    return next(name for name, ranges in _INVISIBLE.items() if any(low <= point <= high for low, high in ranges))


def _spelling(text: str, at: int) -> bool:
    """Say whether the invisible character at ``at`` belongs to the spelling of the visible one before it."""
    if at == 0:
        return False
    before = text[at - 1]
    if text[at] in _EMOJI_STYLES:
        return unicodedata.category(before) in ("So", "Sm", "Po", "Nd", "Sk")
    if text[at] in _JOINERS:
        if text[at] == "\u200d" and (unicodedata.category(before) in ("So", "Sk") or before in _EMOJI_STYLES):
            return True
        # Arabic to Mongolian: scripts whose letters join, or whose conjuncts are chosen with joiners
        return "\u0600" <= before < "\u2000" and unicodedata.category(before)[0] in "LM"
    return False


def _stream_safe(text: str) -> str:
    """Cut runs of combining marks at MARKS_MAX: sorting them costs the square of the run's length."""
    if _LONG_RUN.search(text) is None:
        return text
    kept: list[str] = []
    run = 0
    for character in text:
        run = run + 1 if unicodedata.combining(character) else 0
        if run <= MARKS_MAX:
            kept.append(character)
    return "".join(kept)
