"""Runs of Base64 or hex that are text: opened, so that the secret in them is not let through for its dress."""

import re
from collections.abc import Callable, Iterable, Iterator

from memsluice.events import blobs
from memsluice.gate.sensitive.span import Span

_RUN_MIN = 20
_RUN = re.compile(blobs.BASE64)
_OPENED_MAX = 65_536
"""Characters of one run that are opened."""


def find(text: str, found: Callable[[str], Iterable[Span]]) -> Iterator[Span]:
    """Yield the runs that are the code of a text in which something is ``found``, whole, of its kind."""
    at = 0
    for word in text.split():
        if len(word) < _RUN_MIN:
            continue
        at = text.index(word, at) + len(word)
        for run in _RUN.finditer(text, at - len(word), at):
            inner = blobs.text_of(run[0][:_OPENED_MAX])
            if inner is not None:
                yield from (Span(one.kind, *run.span()) for one in [*found(inner)][:1])
