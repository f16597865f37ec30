"""An order to set aside what an agent was told before, in twenty-five languages.

"Ignore all previous instructions" needs no weighing in any language: it is held by itself (decision 0043). The wording
models know too little of most of these languages, and in English too little of an order that is one sentence with dull
words. The time is linear in the text, at worst some tenth of a second for one
of the largest size that begins an order everywhere.
"""

from typing import NamedTuple

from memsluice.envelope.verdict import Decision, Finding
from memsluice.gate.checks.override_languages import LANGUAGES, folded
from memsluice.gate.checks.spelled import Spelled
from memsluice.gate.unicode import normalise

FOUND = "overrides.found"
_STEMS = tuple((stem, language) for language in LANGUAGES for stem in language.stems)
_ASCII = tuple((stem, language) for stem, language in _STEMS if stem.isascii())


class Order(NamedTuple):
    """An order, its language (ISO 639), and its characters ``first`` to ``end`` of the ``text`` as it was read.

    ``hidden``: codes and tag characters spell it.
    """

    language: str
    text: str
    first: int
    end: int
    hidden: bool


def find(text: Spelled) -> Order | None:
    """Return an order that a text gives, or what its codes spell."""
    found = _find(text.seen, text.text, hidden=False)
    return _find(text.hidden, text.opened, hidden=True) if found is None and text.hidden is not None else found


def check(content: Spelled, asks: Decision) -> Finding | None:
    """Return a finding that asks for so much where a text gives such an order."""
    order = find(content)
    return None if order is None else Finding(FOUND, asks, {"language": order.language})


def _find(seen: str, text: str, *, hidden: bool) -> Order | None:
    """Return the order of the first language that has one. Nearly all texts have no stem of any, and end there."""
    seen = folded(seen)
    some = {language.name: language for stem, language in (_ASCII if seen.isascii() else _STEMS) if stem in seen}
    if not some:
        return None
    lines = text.splitlines()  # a line, too, begins a clause
    readings = (seen,) if len(lines) < 2 else (seen, folded("\n".join(map(normalise, lines))))
    for name, language in some.items():
        for read in readings:
            if (span := language.first_in(read)) is not None:
                return Order(name, read, *span, hidden)
    return None
