"""Texts that attack a terminal, and what must not be left of them wherever they are shown."""

import re
import unicodedata

MARK = "zq-content-zq"
"""Stands in every content and question; a log, span or metric that has it shows content."""
FORGED = "state        released"
"""What a text puts at the beginning of a line, to look like a line of ours."""

TEXTS = {
    "csi": "\x1b[2J\x1b[31mred\x1b[0m\x1b[1A",
    "hyperlink": "\x1b]8;;https://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "clipboard": "\x1b]52;c;ZXZpbA==\x07",
    "title": "\x1b]0;owned\x07 \x1bP1$r\x1b\\",
    "c1": "\x9b2J \x9d0;owned\x9c \x90q\x9c \x85next",
    "carriage return": "harmless\rEVIL    ",
    "backspace": "abc\b\b\bxyz\x7f",
    "nul": "a\x00b\x0bc\x0cd",
    "zero width": "pa\u200byp\u200dal\u2060\ufeff\u00ad",
    "bidi override": "user\u202egnp.exe\u202c \u202dleft\u202c",
    "bidi isolate": "\u2066a\u2067b\u2068c\u2069 \u200e\u200f\u061c",
    "tags": "flag" + "".join(chr(0xE0000 + ord(c)) for c in "obey") + "\U000e007f",
    "selectors": "a\ufe0fb\U000e0100c\u180b",
    "fillers": "\u3164\u115f\uffa0\u2800\u034f\u17b4",
    "piled marks": "Z" + "\u0301\u0316\u20dd" * 60,
    "emoji": "👩\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈 👍🏿 🇦🇶",
    "right to left": "שלום עולם مرحبا 12 (3) released",
    "markup": "[bold red]shout[/] [/] [link=https://evil.example]here[/link] [[x]] :bomb:",
    "backslashes": "\\[red]one\\\\[red]two\\\\\\[red]three[/]\\\\\\",
    "spelled escapes": r"\x1b[2J \u001b[31m \033]0;x\007 &#27;[1m %1b[1m {0} %s",
    "bars": "a │ b ┃ c | d\te",
    "long": "x" * 8_100,
    "wide": "漢字" * 600,
    "lines": f"one\n{FORGED}\r\n{FORGED}\u2028{FORGED}\u2029{FORGED}\x85{FORGED}",
    "private and unassigned": "\ue000\U0010ffff\u0378",
}
NAMES = {
    label: text[:120] for label, text in TEXTS.items() if not re.search("[\x00-\x1f\x7f]", text) and label != "lines"
}
"""Those that the schema lets into a name: agent, principal, session, namespace, key, origin."""

_HIDDEN = {"Cc", "Cf", "Co", "Cs", "Cn", "Zl", "Zp"}
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
MARKS_MAX = 3


def hidden_in(text: str) -> list[str]:
    """Return what in a text acts on a terminal, hides in it or piles up over other lines; line breaks are none of it.

    Written without the product's own rule, so that a slip there is seen here.
    """
    found = [f"U+{ord(c):04X}" for c in text if c != "\n" and unicodedata.category(c) in _HIDDEN]
    found += [f"U+{ord(c):04X}" for c in text if c in "\u3164\u115f\uffa0\u2800\u034f\u17b4\u180b\ufe0f\U000e0100"]
    piled = re.findall(rf"[{_marks()}]{{{MARKS_MAX + 1},}}", text)
    return found + [f"{len(run)} marks in a row" for run in piled]


def _marks() -> str:
    return "\u0300-\u036f\u20d0-\u20ff"


def without_colours(text: str) -> str:
    """Return a text without the colours that a terminal was given (SGR), and with every other escape still in it."""
    return _COLOURS.sub("", text)
