"""Dead letters: what an input that could not be read or authenticated becomes, with its own bytes.

The broker's limit on an intake record bounds its compressed batch, and a 60 MB value of zeros is a few kB of zstd. A
dead letter is written uncompressed, so what is large goes out in numbered parts that each fit.
"""

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from memsluice.errors import InputError, MalformedEvent
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.events.records import Headers, Output, Record
from memsluice.topics.names import DEAD_LETTER

DETAIL_CHARS_MAX = 300
PART_BYTES_MAX = 2 * 1024 * 1024
"""Most bytes of value in one part."""
HEAD_BYTES_MAX = 512 * 1024
"""Most bytes of original key and headers that go along on each part; more become parts of their own."""
HEADER_OVERHEAD_BYTES = 10
"""Two lengths as varints, at most five bytes each."""
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
    why = {
        "reason": error.code,
        "field": error.field[:DETAIL_CHARS_MAX],
        "detail": error.reason[:DETAIL_CHARS_MAX],
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "append_ms": record.timestamp_ms,
        "value_bytes": None if record.value is None else len(record.value),
        "head_parts": len(heads),
    }
    letters = []
    for kind, slices in ((VALUE, values), (HEAD, heads)):
        for number, data in enumerate(slices, 1):
            told = orjson.dumps({**why, "kind": kind, "part": number, "parts": len(slices)})
            last = (DEAD_LETTER_HEADER, told)
            letters.append(Output(DEAD_LETTER, record.partition, key, data, (*headers, last)))
    return letters


def original(letters: Iterable[Letter]) -> Letter:
    """Return key, value and headers of the record whose dead letters these are, in any order, repeated or not.

    Raises MalformedEvent where a part is missing or a record is no dead letter.
    """
    found: dict[tuple[str, int], tuple[Letter, dict[str, Any]]] = {}
    for key, value, headers in letters:
        name, told = headers[-1] if headers else ("", None)
        if name != DEAD_LETTER_HEADER:
            raise MalformedEvent("is not the last header", field=DEAD_LETTER_HEADER)
        why = orjson.loads(told or b"")
        found[why["kind"], why["part"]] = ((key, value, headers[:-1]), why)
    if (VALUE, 1) not in found:
        raise MalformedEvent("part 1 is missing", field=VALUE)
    (key, value, headers), why = found[VALUE, 1]
    if why["parts"] > 1:
        value = _joined(found, VALUE, why["parts"])
    if why["head_parts"]:
        key, headers = _unpacked(_joined(found, HEAD, why["head_parts"]))
    return key, value, headers


def _joined(found: Mapping[tuple[str, int], tuple[Letter, Any]], kind: str, parts: int) -> bytes:
    missing = [number for number in range(1, parts + 1) if (kind, number) not in found]
    if missing:
        raise MalformedEvent(f"part {missing[0]} of {parts} is missing", field=kind)
    return b"".join(found[kind, number][0][1] or b"" for number in range(1, parts + 1))


def _packed(key: bytes | None, headers: Headers) -> bytes:
    return orjson.dumps({"key": _text(key), "headers": [[name, _text(value)] for name, value in headers]})


def _unpacked(document: bytes) -> tuple[bytes | None, Headers]:
    value = orjson.loads(document)
    return _data(value["key"]), tuple((name, _data(text)) for name, text in value["headers"])


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
