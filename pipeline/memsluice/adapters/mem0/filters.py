"""Which memories mem0's filters mean, after it has processed them."""

from collections.abc import Callable, Mapping
from typing import Any

from memsluice.errors import InvalidArgument

_COMPARES: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda value, to: bool(value == to),
    "ne": lambda value, to: bool(value != to),
    "gt": lambda value, to: bool(value > to),
    "gte": lambda value, to: bool(value >= to),
    "lt": lambda value, to: bool(value < to),
    "lte": lambda value, to: bool(value <= to),
    "in": lambda value, to: value in to,
    "nin": lambda value, to: value not in to,
    "contains": lambda value, to: to in value,
    "icontains": lambda value, to: str(to).lower() in str(value).lower(),
}


def matches(payload: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a memory's payload is as wanted. Raises InvalidArgument for an operator that there is not."""
    for name, one in (wanted or {}).items():
        if name == "$or":
            found = any(matches(payload, some) for some in one)
        elif name == "$not":
            found = not any(matches(payload, some) for some in one)
        else:
            found = _is(payload.get(name), one)
        if not found:
            return False
    return True


def _is(value: Any, wanted: Any) -> bool:
    if not isinstance(wanted, Mapping):
        return wanted == "*" or bool(value == wanted)
    unknown = wanted.keys() - _COMPARES.keys()
    if unknown:
        raise InvalidArgument(f"argument filters has the operator {min(unknown)!r}; there are {', '.join(_COMPARES)}")
    try:
        return all(_COMPARES[name](value, to) for name, to in wanted.items())
    except TypeError:  # what cannot be compared is not it
        return False
