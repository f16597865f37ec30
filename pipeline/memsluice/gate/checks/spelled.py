"""A text as patterns are matched on it: read once for all that search in it."""

from typing import NamedTuple

from memsluice.events.codes import unescaped
from memsluice.gate.unicode import normalise


class Spelled(NamedTuple):
    """Both normalised: the text as ``seen``, and with its codes read, that are ``hidden`` in it; None: it has none."""

    seen: str
    hidden: str | None


def spelled(text: str) -> Spelled:
    """Read a text."""
    read = unescaped(text)
    return Spelled(normalise(text), None if read is None else normalise(read.text))
