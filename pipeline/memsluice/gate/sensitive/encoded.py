"""Runs of Base64 or hex that are text: opened, so that the secret in them is not let through for its dress."""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator

from memsluice.gate.sensitive.span import Span

_RUN_MIN = 20
_RUN = re.compile(r"[A-Za-z0-9+/_-]{20,}={0,2}")
_HEX = re.compile(r"(?:[0-9A-Fa-f]{2}){12,}")
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
            inner = None if run[0].isdecimal() else _opened(run[0][:_OPENED_MAX])
            if inner is not None:
                yield from (Span(one.kind, *run.span()) for one in [*found(inner)][:1])


def _opened(run: str) -> str | None:
    """Return the text that a run is the code of; None where it is none: words, paths and digests are not."""
    try:
        if _HEX.fullmatch(run):
            data = bytes.fromhex(run)
        else:
            bare = run.rstrip("=").translate({45: 43, 95: 47})
            data = base64.b64decode(bare + "=" * (-len(bare) % 4))
        inner = data.decode()
    except (ValueError, binascii.Error):
        return None
    return inner if inner.replace("\n", "").replace("\r", "").replace("\t", "").isprintable() else None
