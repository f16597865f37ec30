"""Plain fields of records, held to what their type says before one is made of JSON.

A dataclass takes what it is given: a number in the place of a text would be found out far from where it was read.
"""

from dataclasses import fields
from types import UnionType
from typing import Annotated, Any, get_args, get_origin

_PLAIN: frozenset[Any] = frozenset({str, int, bool, type(None)})
_KNOWN: dict[type[Any], tuple[tuple[str, frozenset[Any]], ...]] = {}
"""Of each type of record asked for so far, its plain fields: few types, of this package."""


def _plain_fields(kind: type[Any]) -> tuple[tuple[str, frozenset[Any]], ...]:
    """Return the fields whose type is made of str, int, bool and None alone, with the types that each may have."""
    found = []
    for one in fields(kind):
        said: Any = get_args(one.type)[0] if get_origin(one.type) is Annotated else one.type
        types: frozenset[Any] = frozenset(get_args(said)) if isinstance(said, UnionType) else frozenset({said})
        if types <= _PLAIN:
            found.append((one.name, types))
    return tuple(found)


def checked(kind: type[Any], value: Any) -> Any:
    """Return ``value``, a mapping of a dataclass's fields. Raises TypeError where a plain field is of another type."""
    if kind not in _KNOWN:
        _KNOWN[kind] = _plain_fields(kind)
    for name, types in _KNOWN[kind]:
        if name in value and type(value[name]) not in types:
            raise TypeError(f"{name} is of another type")
    return value


def shallow(value: Any) -> dict[str, Any]:
    """Return a record's fields by name, as they are: what is written at once needs no deep copy of it first."""
    return {name: getattr(value, name) for name in value.__dataclass_fields__}
