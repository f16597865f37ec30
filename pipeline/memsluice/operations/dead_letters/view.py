"""The review view of a dead letter: nothing of it acts on a terminal, and what nobody verified is said to be claimed.

Pure: labelled lines of plain text, as :mod:`memsluice.operations.held.view` makes them, and by its escaping.
"""

from collections.abc import Callable

from memsluice.envelope import dsse
from memsluice.errors import InputError
from memsluice.escaping import visible
from memsluice.events import cloudevent
from memsluice.operations.dead_letters.letters import NOT_UNPACKED, LetterReview
from memsluice.operations.held.view import Line, Piece, name
from memsluice.recall.show import duration

VALUE_BYTES_SHOWN = 1_024
PAYLOAD_BYTES_SHOWN = 4_096
HEADER_BYTES_SHOWN = 160
HEADERS_SHOWN_MAX = 24


def as_text(data: bytes | None, bytes_max: int) -> str:
    """Return bytes as text where they are UTF-8, else as hexadecimal digits; at most so many of them."""
    if data is None:
        return "null"
    cut = data[:bytes_max]
    for end in range(len(cut), max(len(cut) - 4, -1), -1) if len(data) > len(cut) else (len(cut),):
        try:  # a cut may fall into the middle of a character
            text = visible(cut[:end].decode(), bytes_max)
            break
        except UnicodeDecodeError:
            continue
    else:
        text = f"hex {cut.hex()}"
    rest = len(data) - len(cut)
    return text + (f" … ({rest} more bytes)" if rest else "")


def claims(seen: LetterReview) -> str:
    """Return in one line what an input says of itself."""
    told = seen.letter.claims
    parts = [told.type, told.event_id and f"id {told.event_id}", told.kid and f"key {told.kid}"]
    return f"claims tenant {name(told.tenant or 'none')}" + "".join(f", {name(part)}" for part in parts if part)


def state(seen: LetterReview, now_ms: int, *, texts: bool = True) -> str:
    """Return what became of a letter; ``texts``: with what the reviewer wrote who dismissed it."""
    age = duration(now_ms - seen.letter.why.append_ms)
    if seen.dismissed is not None:
        by, why = name(seen.dismissed.kid), name(seen.dismissed.note)
        return f"dismissed by {by} {duration(now_ms - seen.dismissed.at_ms)} ago" + (f": {why}" if texts else "")
    if seen.decided is not None:
        topic, partition, offset = seen.decided.place
        why = f" {' '.join(seen.decided.reasons)}".rstrip()
        return (
            f"the same event was decided later, at {topic}[{partition}] offset {offset}: {seen.decided.decision}{why}"
        )
    again = "" if seen.attempts == 1 else f", the same bytes were refused {seen.attempts} times"
    return f"open for {age}{again}"


def lines(seen: LetterReview, now_ms: int, words: Callable[[str], str], *, texts: bool = True) -> list[Line]:
    """Return the whole review view of a letter that was read with its bytes; ``texts`` as in :func:`state`."""
    letter, why = seen.letter, seen.letter.why
    key, value, headers = letter.original or (None, None, ())
    field = f" ({name(why.field)}: {name(why.detail)})" if why.detail else ""
    shown = [
        ("letter", letter.letter_id),
        ("state", state(seen, now_ms, texts=texts)),
        ("because", f"{name(why.reason)}  {words(why.reason)}{field}"),
        ("claimed", f"{claims(seen)}; none of it is verified"),
        ("digest", letter.digest),
        *(() if why.kept else (("kept", _not_kept(seen)),)),
        ("key", as_text(key, HEADER_BYTES_SHOWN)),
        *(("header", f"{name(one)}: {as_text(data, HEADER_BYTES_SHOWN)}") for one, data in headers[:HEADERS_SHOWN_MAX]),
    ]
    if len(headers) > HEADERS_SHOWN_MAX:
        shown.append(("header", f"and {len(headers) - HEADERS_SHOWN_MAX} more"))
    size = "" if value is None else f"{len(value)} bytes: "
    shown.append(("value", size + as_text(value, VALUE_BYTES_SHOWN)))
    payload = _payload(key, value, tuple(headers))
    if payload is not None:
        shown.append(("payload", f"as claimed: {as_text(payload, PAYLOAD_BYTES_SHOWN)}"))
    return [Line(label, (Piece(text),)) for label, text in shown]


def _not_kept(seen: LetterReview) -> str:
    if seen.letter.why.packed:
        return f"a note alone: its bytes lie in the intake topic, and {NOT_UNPACKED}"
    found = "found in the intake topic" if seen.letter.original is not None else "gone from the intake topic too"
    return f"a note alone, its sender having more dead letters than are kept in a day; its bytes are {found}"


def _payload(key: bytes | None, value: bytes | None, headers: cloudevent.Headers) -> bytes | None:
    try:
        return dsse.parse(cloudevent.read(key, value, headers).envelope).payload
    except InputError:
        return None
