"""Runs of Base64 or hex that are text: opened, so that the secret in them is not let through for its dress."""

import re
from collections.abc import Callable, Iterable, Iterator

from memsluice.events import blobs
from memsluice.gate.sensitive.span import Span

_RUN = re.compile(blobs.BASE64)
_OPENED_MAX = 65_536
"""Characters of one run that are opened."""


def find(text: str, found: Callable[[str], Iterable[Span]]) -> Iterator[Span]:
    """Yield the runs that are the code of a text in which something is ``found``, whole, of its kind."""
    for run in _RUN.finditer(text):
        inner = blobs.text_of(run[0][:_OPENED_MAX])
        if inner is not None:
            yield from (Span(one.kind, *run.span()) for one in [*found(inner)][:1])
