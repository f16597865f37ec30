"""Dead letters: what an input that could not be read or authenticated becomes, with its own bytes.

The broker's limit on an intake record bounds its compressed batch, and a 60 MB value of zeros is a few kB of zstd. A
dead letter is written uncompressed, so what is large goes out in numbered parts that each fit.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from memsluice.envelope.codec import digest, from_json
from memsluice.envelope.keys import Keyring
from memsluice.errors import InputError, MalformedEvent
from memsluice.events.names import DEAD_LETTER_HEADER, EVERYBODY
from memsluice.events.records import Headers, Output, Record
from memsluice.topics.names import DEAD_LETTER

DETAIL_CHARS_MAX = 300
PART_BYTES_MAX = 2 * 1024 * 1024
"""Most bytes of value in one part."""
HEAD_BYTES_MAX = 512 * 1024
"""Most bytes of original key and headers that go along on each part; more become parts of their own."""
HEADER_OVERHEAD_BYTES = 10
"""Two lengths as varints, at most five bytes each."""
WHY_BYTES = 512
"""About what the gate's own header takes."""
PARTS_MAX = 4_096
"""Most parts of one letter; the largest input that a broker takes has far fewer."""
VALUE, HEAD = "value", "head"
"""Kinds of part: slices of the value, and slices of a JSON document with key and headers in base64."""

Letter = tuple[bytes | None, bytes | None, Headers]
"""Key, value and headers."""


def dead_letters(record: Record, error: InputError) -> list[Output]:
    """Return a record's dead letter: its key, value and headers, and one last header that says why.

    A value above PART_BYTES_MAX is cut into parts; their values in order are the original's. Key and headers above
    HEAD_BYTES_MAX follow as parts of kind ``head``, and no part carries them itself. :func:`original` undoes both.
    """
    key, headers, head = record.key, record.headers, None
    if _head_bytes(key, headers) > HEAD_BYTES_MAX:
        head, key, headers = _packed(key, headers), None, ()
    values, heads = _slices(record.value), _slices(head) if head is not None else []
    why = _said(record, error, len(heads))
    letters = []
    for kind, slices in ((VALUE, values), (HEAD, heads)):
        for number, data in enumerate(slices, 1):
            told = orjson.dumps({**why, "kind": kind, "part": number, "parts": len(slices)})
            last = (DEAD_LETTER_HEADER, told)
            letters.append(Output(DEAD_LETTER, record.partition, key, data, (*headers, last)))
    return letters


def note(record: Record, error: InputError, keyring: Keyring) -> Output:
    """Return what stands in the place of a dead letter whose bytes are not kept: why, where they lie, their digest.

    It has no key, no value and no header of the record's: these are part of what is not kept.
    """
    which = {"kind": VALUE, "part": 1, "parts": 1, "kept": False, "digest": digest_of(record, keyring)}
    told = {**_said(record, error, 0), **which}
    return Output(DEAD_LETTER, record.partition, None, None, ((DEAD_LETTER_HEADER, orjson.dumps(told)),))


def digest_of(record: Record, keyring: Keyring) -> str:
    """Return the digest, 64 hex digits, of a record's key, value and headers, each with its length before it.

    Under the digest key of all tenants: a bare hash of a short text could be guessed.
    """
    parts = [record.key, record.value]
    for name, value in record.headers:
        parts += [name.encode(), value]
    joined = b"".join(b"-" if part is None else b"%d:%b" % (len(part), part) for part in parts)
    return digest(keyring, EVERYBODY, "note", joined)


def letter_bytes(record: Record) -> int:
    """Return about how many bytes a record's dead letter takes, all of its parts together."""
    return len(record.value or b"") + _head_bytes(record.key, record.headers) + WHY_BYTES


def _said(record: Record, error: InputError, head_parts: int) -> dict[str, Any]:
    return {
        "reason": error.code,
        "field": error.field[:DETAIL_CHARS_MAX],
        "detail": error.reason[:DETAIL_CHARS_MAX],
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "append_ms": record.timestamp_ms,
        "value_bytes": None if record.value is None else len(record.value),
        "head_parts": head_parts,
    }


def original(letters: Iterable[Letter]) -> Letter:
    """Return key, value and headers of the record whose dead letters these are, in any order, repeated or not.

    Raises MalformedEvent where a part is missing, a record is no dead letter, or only a note of one.
    """
    found: dict[tuple[str, int], tuple[Letter, dict[str, Any]]] = {}
    for key, value, headers in letters:
        why = _why(headers)
        found[why["kind"], why["part"]] = ((key, value, headers[:-1]), why)
    if (VALUE, 1) not in found:
        raise MalformedEvent("part 1 is missing", field=VALUE)
    (key, value, headers), why = found[VALUE, 1]
    if why.get("kept") is False:
        raise MalformedEvent("was not kept: it lies in the intake topic alone", field=VALUE)
    if why["parts"] > 1:
        value = _joined(found, VALUE, why["parts"])
    if why["head_parts"]:
        key, headers = _unpacked(_joined(found, HEAD, why["head_parts"]))
    return key, value, headers


def _why(headers: Headers) -> dict[str, Any]:
    name, told = headers[-1] if headers else ("", None)
    if name != DEAD_LETTER_HEADER:
        raise MalformedEvent("is not the last header", field=DEAD_LETTER_HEADER)
    why = from_json(told or b"", DEAD_LETTER_HEADER)
    numbers = [why.get(name) for name in ("part", "parts", "head_parts")] if isinstance(why, dict) else []
    if not numbers or not all(type(one) is int and 0 <= one <= PARTS_MAX for one in numbers):
        raise MalformedEvent("does not say which part it is of how many", field=DEAD_LETTER_HEADER)
    if why.get("kind") not in (VALUE, HEAD):
        raise MalformedEvent("does not say of what it is a part", field=DEAD_LETTER_HEADER)
    return dict(why)


def _joined(found: Mapping[tuple[str, int], tuple[Letter, Any]], kind: str, parts: int) -> bytes:
    missing = [number for number in range(1, parts + 1) if (kind, number) not in found]
    if missing:
        raise MalformedEvent(f"part {missing[0]} of {parts} is missing", field=kind)
    return b"".join(found[kind, number][0][1] or b"" for number in range(1, parts + 1))


def _packed(key: bytes | None, headers: Headers) -> bytes:
    return orjson.dumps({"key": _text(key), "headers": [[name, _text(value)] for name, value in headers]})


def _unpacked(document: bytes) -> tuple[bytes | None, Headers]:
    value = from_json(document, HEAD)
    try:
        return _data(value["key"]), tuple((str(name), _data(text)) for name, text in value["headers"])
    except (KeyError, TypeError, ValueError):
        raise MalformedEvent("is no key and headers", field=HEAD) from None


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _data(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text, validate=True)


def _head_bytes(key: bytes | None, headers: Headers) -> int:
    of_headers = sum(len(name.encode()) + len(value or b"") + HEADER_OVERHEAD_BYTES for name, value in headers)
    return len(key or b"") + of_headers


def _slices(data: bytes | None) -> list[bytes | None]:
    if data is None or len(data) <= PART_BYTES_MAX:
        return [data]
    return [data[start : start + PART_BYTES_MAX] for start in range(0, len(data), PART_BYTES_MAX)]
