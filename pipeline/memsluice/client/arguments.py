"""A wrong argument is refused where it is given: InvalidArgument names it, what it must be, and what it was."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from memsluice.errors import InvalidArgument

VALUE_CHARS_MAX = 40
"""So much of a value is quoted."""


def shown(value: object) -> str:
    """Return a value as a message quotes it."""
    text = repr(value)
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[: VALUE_CHARS_MAX - 1]}…"


def wrong(name: str, value: object, must: str) -> InvalidArgument:
    """Return the error for a value of another type; only its type is told, it may be content."""
    was = "None" if value is None else f"of type {type(value).__name__}"
    return InvalidArgument(f"argument {name} must be {must}; it is {was}")


def instance(name: str, value: object, kinds: type[Any] | tuple[type[Any], ...], must: str) -> None:
    """Raise InvalidArgument unless the value is of one of these types."""
    if not isinstance(value, kinds):
        raise wrong(name, value, must)


def tenant(value: object) -> None:
    """Raise InvalidArgument unless the value can be a tenant's name."""
    instance("tenant", value, str, "the name of a tenant, a string")
    if not value:
        raise InvalidArgument("argument tenant must be the name of a tenant; it is empty")


def home(value: object) -> None:
    """Raise InvalidArgument unless the value can be a home directory."""
    instance("home", value, (Path, type(None)), "a pathlib.Path, or None for the usual one")


def several(name: str, value: object, of: str) -> tuple[Any, ...]:
    """Return the items of an argument that takes several. Raises InvalidArgument for one text, or what has no items."""
    if isinstance(value, str | bytes) or not isinstance(value, Iterable):
        raise wrong(name, value, f"a sequence of {of}")
    return tuple(value)


def whole(name: str, value: object, least: int, most: int) -> None:
    """Raise InvalidArgument unless the value is an integer of this range."""
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidArgument(f"{name} must be an integer from {least} to {most}; it is {shown(value)}")


def number(name: str, value: object, least: float, most: float) -> None:
    """Raise InvalidArgument unless the value is a number of this range."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidArgument(f"{name} must be a number from {least:g} to {most:g}; it is {shown(value)}")
