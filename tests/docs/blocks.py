"""Code blocks of Markdown pages, in order, and how each is run.

A block is run when its language is ``bash`` or ``python``, unless the line before its fence is
``<!-- not run: REASON -->``, or ``<!-- on the stack -->``, which runs it on the real stack. A ``text`` block right
after it is its expected output; ``…`` in it stands for anything.
"""

import re
from dataclasses import dataclass, replace
from pathlib import Path

RUN = ("bash", "python")
_FENCE = re.compile(r"^```(\w*)\s*$")
_ON_STACK = "<!-- on the stack -->"
_NOT_RUN = re.compile(r"^<!-- not run: (.+) -->$")


@dataclass(frozen=True)
class Block:
    """One fenced block: where it stands, its language and text, why it is not run ("" if it is), what it prints."""

    line: int
    language: str
    text: str
    not_run: str = ""
    on_stack: bool = False
    prints: str | None = None


def blocks(page: Path) -> list[Block]:
    """Return the blocks of a page that are in a language that can be run."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found: list[Block] = []
    previous_end = -1
    number = 0
    while number < len(lines):
        opening = _FENCE.match(lines[number])
        if opening is None:
            number += 1
            continue
        end = next(n for n in range(number + 1, len(lines)) if lines[n].strip() == "```")
        text = "\n".join(lines[number + 1 : end]) + "\n"
        between = [line for line in lines[previous_end + 1 : number] if line.strip()]
        if opening[1] in RUN:
            reason = _NOT_RUN.match(lines[number - 1]) if number else None
            on_stack = number > 0 and lines[number - 1] == _ON_STACK
            found.append(Block(number + 1, opening[1], text, reason[1] if reason else "", on_stack))
            previous_end = end
        elif opening[1] == "text" and found and previous_end >= 0 and not between:
            found[-1] = replace(found[-1], prints=text)
        number = end + 1
    return found


def agrees(expected: str, actual: str) -> bool:
    """Tell whether output is what a page shows; ``…`` stands for anything, ends of lines may differ in blanks."""
    pattern = ".*?".join(
        re.escape(part) for part in "\n".join(map(str.rstrip, expected.strip().splitlines())).split("…")
    )
    return re.fullmatch(pattern, "\n".join(map(str.rstrip, actual.strip().splitlines())), re.DOTALL) is not None
