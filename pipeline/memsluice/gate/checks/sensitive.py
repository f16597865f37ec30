"""Secrets and personal data: what a text has of them, and the text without.

*seal* asks before a text is embedded or leaves it (``sensitive.action`` of the policy file: redact, hold, report), and
a sealed event says what was found and where, never the value. *screen* makes the finding of that. Not searched: what is
compressed or encrypted, spelt out, or told over several writes.
"""

from collections.abc import Iterator
from dataclasses import asdict

from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events import codes
from memsluice.events.models import Write
from memsluice.gate.policy.model import Policy
from memsluice.gate.sensitive import (
    blocks,
    encoded,
    national,
    numbers,
    pairs,
    providers,
    reading,
    tables,
    told,
    wallets,
)
from memsluice.gate.sensitive.hints import LONG, Search, Searches
from memsluice.gate.sensitive.span import Span, joined

_NAMES = ": "


def found(text: str) -> tuple[Span, ...]:
    """Return what a text has of secrets and personal data, in order, without overlaps.

    It is read as it stands, and once more without invisible characters and in NFKC, or with the codes in it read
    (:mod:`memsluice.events.codes`), where that is another text. Runs of Base64 and hex that are text are opened once,
    and what stands in them is not opened again. Cells of a row are read as names and what they name. Linear in its
    length.
    """
    return _found(text, _SEARCHES)


def named(content: str, key: str) -> tuple[Span, ...]:
    """Return what a content has of them for the key that it is written under: "gmail password" says it of a word."""
    beside = len(key) + len(_NAMES)
    under = (one for one in found(f"{key}{_NAMES}{content}") if one.end > beside)
    return tuple(Span(one.kind, max(one.start - beside, 0), one.end - beside) for one in under)


def _found(text: str, searches: Searches) -> tuple[Span, ...]:
    lower = _lowered(text)
    spans = [*searches.of(text, lower)]
    if not (text.isascii() and text.isprintable()):
        spans += _read(reading.plain(text), searches)
    if "|" in text:
        spans += searches.of(cells := text.replace("|", ":"), _lowered(cells))
    spans += _read(codes.untagged(text), searches)
    if (read := codes.unescaped(text, whole=True)) is not None:
        spans += _read(read, searches)
        plain = reading.plain(read.text)
        spans += [] if plain is None else _read(plain.within(read), searches)
    return joined(spans) if spans else ()


def _lowered(text: str) -> str:
    """Return the text in lower case, as long as the text: a few capital letters have two small ones."""
    lower = text.lower()
    if len(lower) == len(text):
        return lower
    return "".join(small if len(small := letter.lower()) == 1 else letter for letter in text)


def _read(read: codes.Reading | None, searches: Searches) -> list[Span]:
    """Return what a reading of a text has, by the places of the text itself."""
    if read is None:
        return []
    letters, starts, ends = read
    found = searches.of(letters, _lowered(letters))
    return [Span(one.kind, starts[one.start], ends[one.end - 1]) for one in found]


def _opened(text: str, _: str) -> Iterator[Span]:
    yield from encoded.find(text, lambda inner: _found(inner, _PLAIN))


_PARTS = (providers, told, pairs, tables, numbers, national, wallets, blocks)
_OF_PARTS = [one for part in _PARTS for one in part.SEARCHES]
_PLAIN = Searches(_OF_PARTS)
"""Without opening codes: what stands in an opened one is searched by these, or each level would multiply the work."""
_SEARCHES = Searches([*_OF_PARTS, Search((), _opened, LONG)])


def redacted(text: str, spans: tuple[Span, ...], bytes_max: int | None = None) -> str:
    """Return the text with ``[redacted: kind]`` in the place of each span; what stands around it stays.

    Where that would be longer than ``bytes_max`` of UTF-8, as many stars as the span has characters stand there.
    """
    whole = _replaced(text, spans, [f"[redacted: {span.kind}]" for span in spans])
    if bytes_max is None or len(whole.encode("utf-8", "surrogatepass")) <= bytes_max:
        return whole
    return _replaced(text, spans, ["*" * (span.end - span.start) for span in spans])


def _replaced(text: str, spans: tuple[Span, ...], instead: list[str]) -> str:
    parts, at = [], 0
    for span, marker in zip(spans, instead, strict=True):
        parts += [text[at : span.start], marker]
        at = span.end
    return "".join((*parts, text[at:]))


def check(sealed: Sealed, policy: Policy) -> Finding | None:
    """Return what *seal* found in an event, as the policy in force takes it.

    What *seal* left whole, since its policy file said so, is held unless the policy in force reports it, too. Only a
    write can be held.
    """
    if not sealed.sensitive:
        return None
    detail = {"spans": [asdict(one) for one in sealed.sensitive]}
    if sealed.redacted:
        return Finding("sensitive.redacted", Decision.ACCEPT, detail)
    if policy.sensitive.action == "report" or not isinstance(sealed.payload, Write):
        return Finding("sensitive.reported", Decision.ACCEPT, detail)
    return Finding("sensitive.held", Decision.QUARANTINE, detail)
