"""Private keys in blocks: PEM, OpenSSH, PGP, also with line breaks written as ``\\n``, also cut off before the end."""

import re
from collections.abc import Iterator

from memsluice.gate.sensitive.hints import Search
from memsluice.gate.sensitive.span import Span

_EDGE = re.compile(r"----[ -]((?i:BEGIN|END)) ([A-Za-z0-9 ]{0,40})(?:-----| ----)")
_PRIVATE = ("PRIVATE KEY", "PRIVATE KEY BLOCK")
_REST = re.compile(
    r"(?:\s|\\{1,4}[nrt]|[A-Za-z0-9+/=]{16,}|[A-Za-z0-9+/]{0,15}[0-9+/=][A-Za-z0-9+/=]{0,15}|[A-Za-z]{0,15}[a-z][A-Z][A-Za-z]{0,15}"
    r"|(?:Proc-Type|DEK-Info|Version|Comment|Hash):[^\n\\]{0,120})*+"
)
"""What may follow a key's first line that has no last one: base64, line breaks and armour headers, no words."""

_PUTTY = re.compile(r"Private-Lines: [0-9]{1,4}\s((?:[A-Za-z0-9+/=]{16,}\s?)+)")
_WEB_KEY = re.compile(r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,3}:\s{0,3}\"([\w-]{20,})\"")


def _find(text: str, _: str) -> Iterator[Span]:
    """Yield the blocks, edges included."""
    edges = list(_EDGE.finditer(text))
    for number, edge in enumerate(edges):
        if edge[1].upper() != "BEGIN" or not edge[2].upper().endswith(_PRIVATE):
            continue
        following = edges[number + 1] if number + 1 < len(edges) else None
        if following is not None and following[1].upper() == "END":
            yield Span("private_key", edge.start(), following.end())
            continue
        rest = _REST.match(text, edge.end(), len(text) if following is None else following.start())
        kept = text[edge.end() : edge.end() if rest is None else rest.end()].rstrip()
        yield Span("private_key", edge.start(), edge.end() + len(kept))


def _putty(text: str, _: str) -> Iterator[Span]:
    yield from (Span("private_key", *match.span(1)) for match in _PUTTY.finditer(text))


def _web_keys(text: str, _: str) -> Iterator[Span]:
    """Yield the secret numbers of a JSON web key (RFC 7517)."""
    yield from (Span("private_key", *match.span(1)) for match in _WEB_KEY.finditer(text))


SEARCHES = (
    Search(("----begin ", "---- begin "), _find),
    Search(("private-lines:",), _putty),
    Search(('"kty',), _web_keys),
)
