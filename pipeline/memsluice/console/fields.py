"""What a page reads out of its address: fields of a form, each refused in words that name it."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import TypeVar
from urllib.parse import urlencode

from starlette.requests import Request

from memsluice.errors import InvalidArgument
from memsluice.escaping import visible
from memsluice.operations.held.filters import moment_ms

TEXT_CHARS_MAX = 256
SHOWN_CHARS = 60
_E = TypeVar("_E", bound=StrEnum)


def text(fields: Mapping[str, str], name: str, chars_max: int = TEXT_CHARS_MAX) -> str | None:
    """Return a field's text without the blanks around it; None for an empty one. Raises InvalidArgument."""
    value = fields.get(name, "").strip()
    if len(value) > chars_max:
        raise InvalidArgument(f"{name}: it has {len(value)} characters, and at most {chars_max} are read")
    return value or None


def number(fields: Mapping[str, str], name: str, least: int, most: int, default: int) -> int:
    """Return a whole number of a field. Raises InvalidArgument, which says the bounds."""
    value = text(fields, name)
    if value is None:
        return default
    if not (value.isascii() and value.isdecimal()) or not least <= int(value[:20]) <= most:
        raise InvalidArgument(f"{name}: {visible(value, SHOWN_CHARS)!r} is no number from {least} to {most}")
    return int(value)


def one_of(fields: Mapping[str, str], name: str, kind: type[_E]) -> _E | None:
    """Return a field's value as one of a kind; None for an empty one. Raises InvalidArgument, which names them all."""
    value = text(fields, name)
    if value is None:
        return None
    if value not in set(kind):
        raise InvalidArgument(f"{name}: {visible(value, SHOWN_CHARS)!r} is none: write one of {', '.join(kind)}")
    return kind(value)


def time_ms(fields: Mapping[str, str], name: str, now_ms: int) -> int | None:
    """Return a field's time in Unix ms: how long ago (``2h``), or a date and time. Raises InvalidArgument."""
    value = text(fields, name)
    try:
        return None if value is None else moment_ms(value, now_ms)
    except InvalidArgument as error:
        raise InvalidArgument(f"{name}: {error}") from None


def asked(request: Request) -> dict[str, str]:
    """Return the fields of the address."""
    return dict(request.query_params)


def shown(fields: Mapping[str, str], names: Iterable[str]) -> dict[str, str]:
    """Return what a form is filled with: every field of these names, "" where it was not given."""
    return {name: fields.get(name, "") for name in names}


def address(path: str, fields: Mapping[str, str], names: Iterable[str], **more: object) -> str:
    """Return an address with those of the fields that were given, and ``more``."""
    given = {name: fields[name] for name in names if fields.get(name)}
    told = urlencode({**given, **more})
    return f"{path}?{told}" if told else path
