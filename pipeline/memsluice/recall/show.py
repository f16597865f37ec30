"""Recalled entries for a person at a terminal: nothing that an entry contains acts on the terminal or hides in it."""

import unicodedata

from memsluice.events.models import Tier
from memsluice.recall.reader import Withheld

TEXT_CHARS_MAX = 600
MARKS_MAX = 3
"""Combining marks in a row that are shown; more of them pile up over other lines."""
_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
"""Control, format (bidi, zero width, tags), private use, surrogate, unassigned, line and paragraph separators."""
_UNITS = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1_000, "s"))

TIER_WORDS: dict[Tier, str] = {
    Tier.OPERATOR: "operator",
    Tier.USER_VERIFIED: "verified",
    Tier.USER_OBSERVED: "observed",
    Tier.EXTERNAL_TOOL: "tool",
    Tier.EXTERNAL_WEB: "web",
}
WITHHELD_WORDS: dict[Withheld, str] = {
    Withheld.FORGED: "written behind the gate's back: no admission that the gate signed",
    Withheld.MOVED: "admitted for another tenant, zone or object than where it was found",
    Withheld.PROPERTY: "a property was changed in the store",
    Withheld.CONTENT: "the content was changed in the store",
    Withheld.VECTOR: "the vector was changed in the store",
    Withheld.SCOPE: "belongs to somebody else",
    Withheld.EXPIRED: "its time is over",
    Withheld.UNRECORDED: "the log of landed entries does not know it (yet)",
    Withheld.STALE: "an old version, put back",
    Withheld.WITHDRAWN: "was withdrawn",
    Withheld.TIER: "less trusted than was asked for",
    Withheld.INSTRUCTION: "reads like an instruction to the agent",
}


def visible(text: str, chars_max: int = TEXT_CHARS_MAX) -> str:
    """Return the text with every character that is not seen, or moves others, written as ``<U+202E>``.

    Line breaks become ``⏎``; what is longer than ``chars_max`` is cut, and says so.
    """
    shown, marks = [], 0
    for character in text[:chars_max]:
        category = unicodedata.category(character)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if character == "\n":
            shown.append(" ⏎ ")
        elif category in _HIDDEN or marks > MARKS_MAX or _blank(character):
            shown.append(f"<U+{ord(character):04X}>")
        else:
            shown.append(character)
    rest = len(text) - chars_max
    return "".join(shown) + (f" … ({rest} more characters)" if rest > 0 else "")


def _blank(character: str) -> bool:
    """Return whether a character that counts as a letter or mark is drawn as nothing: Hangul fillers, selectors."""
    return (
        character in "\u115f\u1160\u3164\uffa0\u2800\u034f"
        or 0xFE00 <= ord(character) <= 0xFE0F
        or ord(character) in range(0xE0100, 0xE01F0)
    )


def duration(length_ms: int) -> str:
    """Return a length of time in its largest whole unit: ``3 h``, ``12 d``; ``now`` below a second."""
    for unit_ms, name in _UNITS:
        if length_ms >= unit_ms:
            return f"{length_ms // unit_ms} {name}"
    return "now"


def left(expires_ms: int | None, now_ms: int) -> str:
    """Return how long an entry still holds."""
    return "for good" if expires_ms is None else duration(expires_ms - now_ms)
