"""JSON with one reading only (RFC 8259, I-JSON of RFC 7493): no repeated key, no NaN, no trailing bytes, valid UTF-8.

Parsers differ in which of two equal keys they keep; a signature over such bytes would mean different things to
different readers.
"""

import json
from typing import Any, NoReturn

from memsluice.errors import MalformedEvent

CONTAINERS_MAX = 256
"""Objects and arrays in an envelope, which needs about ten. It bounds the depth too, whatever the caller's stack."""


class _TwoReadingsError(ValueError):
    pass


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise _TwoReadingsError("a key is repeated")
    return value


def _constant(_: str) -> NoReturn:
    raise _TwoReadingsError("NaN and Infinity are no JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_pairs, parse_constant=_constant)


def loads(data: bytes, field: str, *, containers_max: int | None = CONTAINERS_MAX) -> Any:
    """Return the value. Raises MalformedEvent naming ``field`` and why, never quoting the data.

    ``containers_max`` None is for bytes that another parser has already found shallow.
    """
    if containers_max is not None and data.count(b"{") + data.count(b"[") > containers_max:
        raise MalformedEvent(f"has more than {containers_max} objects and arrays", field=field)
    try:
        return _DECODER.decode(data.decode("utf-8"))
    except _TwoReadingsError as error:
        raise MalformedEvent(str(error), field=field) from None
    except (ValueError, RecursionError):  # JSONDecodeError, UnicodeDecodeError, integers of more than 4,300 digits
        raise MalformedEvent("is no JSON", field=field) from None
