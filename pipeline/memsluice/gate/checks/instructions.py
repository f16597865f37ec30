"""Instruction patterns of seed 002, as published: the write filter (pattern 3) and the risk score (pattern 6).

Both read the text as :func:`~memsluice.gate.checks.spelled.spelled` gives it, what its codes spell included; it is
searched once, by :func:`find`. Every pattern is a plain string or a regular expression without nested repetition, so
the time is linear in the text.

A known weakness, kept because it is what was published: the lists hold half a dozen English phrasings; honest
requests ("from now on ...") match, and a paraphrase does not. They are one signal, and held writes are reviewable.
"""

import re
from dataclasses import dataclass

from memsluice.envelope.verdict import Decision, Finding
from memsluice.gate.checks.spelled import Spelled, spelled

FOUND_MAX = 8
"""Patterns that a finding names."""

INSTRUCTION_MARKERS = {
    "marker_ignore_previous": "ignore previous",
    "marker_ignore_all_previous": "ignore all previous",
    "marker_disregard": "disregard",
    "marker_system": "system:",
    "marker_admin": "admin:",
    "marker_you_are_now": "you are now",
    "marker_your_new_task": "your new task",
    "marker_from_now_on": "from now on",
    "marker_new_instruction": "new instruction",
    "marker_system_token": "<|system|>",
    "marker_system_bracket": "[system]",
}
"""Pattern 3's write filter: any of these anywhere in the text."""

INSTRUCTION_PATTERNS = {
    "pattern_ignore_instructions": ("ignore ", re.compile(r"ignore (all |previous )?(instructions|prompts)")),
    "pattern_you_are": ("you are ", re.compile(r"you are (now|actually) a ")),
    "pattern_system": ("system:", re.compile(r"system:\s")),
    "pattern_chat_token": ("<", re.compile(r"<\|?(system|im_start|assistant)\|?>")),
    "pattern_your_new": ("your new ", re.compile(r"your new (task|role|instructions?)")),
}
"""Pattern 6's risk score: one point for each that occurs. The text is casefolded, so the published ``(?i)`` is gone.
Each goes with what it begins with: a text without that, as nearly all are, is not searched for the rest."""


_USER_OF_URL = re.compile(
    r"\b[a-z][a-z0-9+.-]{1,30}://(?:[a-z0-9]{1,16}[._-])?(?:admin|system)"
    r":(?=(?:\[redacted: [a-z_ ]{1,40}\]|[^\s@]{1,256})@)",
    re.IGNORECASE,
)
"""The names of INSTRUCTION_MARKERS where one logs in at an address."""


@dataclass(frozen=True, slots=True)
class Match:
    """A pattern's first occurrence: half-open character range in the *normalised* text.

    ``hidden`` tells that codes and tag characters spell it: the range is then in the normalised
    :func:`~memsluice.events.codes.unescaped` text.
    """

    name: str
    start: int
    end: int
    hidden: bool = False


def find(text: Spelled) -> tuple[Match, ...]:
    """Return the first match of every marker and pattern that occurs in a text; at most 16, hidden ones last."""
    found = _find_in(text.seen, seen=True)
    if text.hidden is not None:
        names = {match.name for match in found}
        found += (match for match in _find_in(text.hidden, seen=False) if match.name not in names)
    return tuple(found)


def check(matches: tuple[Match, ...], asks: Decision) -> Finding | None:
    """Return a finding that asks for so much where a pattern occurs."""
    if not matches:
        return None
    detail = {"patterns": sorted({match.name for match in matches})[:FOUND_MAX], "count": len(matches)}
    return Finding("instructions.found", asks, detail)


def told(text: Spelled, matches: tuple[Match, ...]) -> bool:
    """Whether one of its ``matches`` is in what a text says: who logs in at an address, "admin:" for one, is not."""
    if not matches:
        return False
    without = _USER_OF_URL.sub("", text.text)
    return without == text.text or bool(find(spelled(without)))


def risk(matches: tuple[Match, ...]) -> int:
    """Return seed 002's ``score_injection_risk``: how many of pattern 6's five patterns occur, hidden ones included."""
    return len({match.name for match in matches} & INSTRUCTION_PATTERNS.keys())


def _find_in(text: str, *, seen: bool) -> list[Match]:
    found = []
    for name, marker in INSTRUCTION_MARKERS.items():
        if (at := text.find(marker)) >= 0:
            found.append(Match(name, at, at + len(marker), not seen))
    for name, (begins, pattern) in INSTRUCTION_PATTERNS.items():
        if begins in text and (match := pattern.search(text)):
            found.append(Match(name, match.start(), match.end(), not seen))
    return found
