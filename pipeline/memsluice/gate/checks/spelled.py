"""A text as patterns are matched on it: read once for the checks that search in it."""

from typing import NamedTuple

from memsluice.events.codes import unescaped
from memsluice.gate.unicode import normalise


class Spelled(NamedTuple):
    """A ``text``, and normalised what is ``seen`` of it; where it has codes, it once they are ``opened``, and that
    normalised: what is ``hidden`` in it."""

    text: str
    seen: str
    opened: str
    hidden: str | None


def spelled(text: str) -> Spelled:
    """Read a text."""
    read = unescaped(text)
    opened = text if read is None else read.text
    return Spelled(text, normalise(text), opened, None if read is None else normalise(opened))
