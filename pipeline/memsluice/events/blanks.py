"""What stands where a blank would, and is none: a reader sees words apart, and programs see one word, or none.

Two kinds: characters that look like a blank, or mark one, wherever they stand; and what shows nothing at all, where it
stands between words instead of blanks. Within a word it shows nothing either, and goes: which it is, is told by how
many stand in a row without a blank.
"""

import re
from typing import Final

_LIKE_A_BLANK: Final = "\u115f\u1160\u2422\u2423\u2800\u3164\uffa0\ufffc\U0001d159"
"""Fillers of Hangul, the empty cell of Braille, pictures of a blank, the place of an object, the empty notehead."""
_ENDS: Final = "\x0b\x0c\x1c-\x1f\x85"
"""White space that a tokenizer takes for a control character: it would read two words as one."""
_BLANKS = re.compile(f"[{_LIKE_A_BLANK}{_ENDS}]")
_UNSEEN: Final = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufeff\ufff0-\ufffb\ue000-\uf8ff\U000f0000-\U0010ffff"
)
"""What shows nothing: controls, joiners and the like, and what is private to somebody; no tags, which are letters."""
_PRINTED: Final = "=20"
"""A blank in quoted-printable mail (RFC 2045)."""
_PRINTABLE: Final = f"{_LIKE_A_BLANK}\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f"
"""Those that Python calls printable."""
_INSTEAD = re.compile(rf"(?<=[^\W_])([.,;:!?]?)([{_UNSEEN}]{{1,8}}|{_PRINTED})(?=[^\W_])")
_RUN, _WORD = re.compile(r"\S+"), re.compile(r"[^\W_]+")
LEAST: Final = 4
"""So many stand between two blanks before any is taken for one."""
LETTERS: Final = 2.5
"""Mean letters of what then stand apart: fewer are a word's own letters, spread."""


def _is_plain(text: str) -> bool:
    """Tell soon of most texts that nothing of it is in them."""
    line = text.replace("\n", "").replace("\r", "").replace("\t", "")
    if not line.isprintable() or _PRINTED in line:
        return False
    return line.isascii() or not any(one in line for one in _PRINTABLE)


def blanked(text: str) -> str:
    """Return a text of the same length with a blank in place of each character that a reader takes for one."""
    if _is_plain(text):
        return text
    found = _BLANKS.sub(" ", text)
    return _RUN.sub(_apart, found) if _INSTEAD.search(found) else found


def _apart(run: re.Match[str]) -> str:
    """Return what stands between two blanks, with blanks between its words if it has several."""
    gaps, words = len(_INSTEAD.findall(run[0])), _WORD.findall(run[0])
    if gaps < LEAST or sum(map(len, words)) < LETTERS * len(words):
        return run[0]
    return _INSTEAD.sub(lambda gap: gap[1] + " " * len(gap[2]), run[0])
