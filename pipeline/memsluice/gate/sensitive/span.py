"""Where in a text something sensitive stands."""

from collections.abc import Iterable
from typing import NamedTuple


class Span(NamedTuple):
    """One finding: its kind (a word of ``[a-z_]``), and the half-open range of characters that is the value."""

    kind: str
    start: int
    end: int


def joined(spans: Iterable[Span]) -> tuple[Span, ...]:
    """Return spans in order, those that overlap or touch made one: it has the kind of the one that begins first.

    Of spans that begin together the longest gives the kind.
    """
    found: list[Span] = []
    for span in sorted(spans, key=lambda one: (one.start, -one.end, one.kind)):
        if found and span.start <= found[-1].end:
            found[-1] = found[-1]._replace(end=max(found[-1].end, span.end))
        else:
            found.append(span)
    return tuple(found)
