"""Structured facts: what a write of kind ``facts`` says, as subject, relation and object (seed 002, pattern 3).

The content stays one text, since digests, vectors and prompts are made from it: a fact a line, its parts divided by a
bar. ``who | prefers | the early train``. An extractor renders with :func:`render`; the gate reads with :func:`parse`.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from memsluice.errors import LimitExceeded, MalformedEvent

FACTS_MAX = 16
SUBJECT_CHARS_MAX, RELATION_CHARS_MAX, OBJECT_CHARS_MAX = 120, 60, 240
BAR = "|"


@dataclass(frozen=True, slots=True)
class Fact:
    """One fact. Its parts are printable, without a bar, 1 to 120, 60 and 240 characters."""

    subject: str
    relation: str
    object: str


LIMITS = {"subject": SUBJECT_CHARS_MAX, "relation": RELATION_CHARS_MAX, "object": OBJECT_CHARS_MAX}


def render(facts: Iterable[Fact]) -> str:
    """Return the content of a write of kind ``facts``. Raises MalformedEvent or LimitExceeded, which quote nothing."""
    text = "\n".join(f" {BAR} ".join((fact.subject, fact.relation, fact.object)) for fact in facts)
    parse(text)
    return text


def parse(content: str) -> tuple[Fact, ...]:
    """Return the facts of a content. Raises MalformedEvent or LimitExceeded, which quote nothing of it."""
    lines = content.split("\n")
    if len(lines) > FACTS_MAX:
        raise LimitExceeded(f"{len(lines)} facts, at most {FACTS_MAX} allowed", field="content")
    return tuple(_fact(line, number) for number, line in enumerate(lines, 1))


def _fact(line: str, number: int) -> Fact:
    parts = [part.strip() for part in line.split(BAR)]
    if len(parts) != len(LIMITS):
        raise MalformedEvent(f"line {number} is no subject | relation | object", field="content")
    for part, (name, chars_max) in zip(parts, LIMITS.items(), strict=True):
        if not part or not part.isprintable():
            raise MalformedEvent(f"the {name} of line {number} is empty or not printable", field="content")
        if len(part) > chars_max:
            raise LimitExceeded(f"the {name} of line {number} has more than {chars_max} characters", field="content")
    return Fact(*parts)
