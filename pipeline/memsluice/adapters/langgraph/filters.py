"""Which documents a search or a listing of LangGraph's means."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from langgraph.store.base import MatchCondition

from memsluice.errors import InvalidArgument
from memsluice.memory.documents import Path

_ORDERED: dict[str, Callable[[float, float], bool]] = {
    "$gt": lambda value, than: value > than,
    "$gte": lambda value, than: value >= than,
    "$lt": lambda value, than: value < than,
    "$lte": lambda value, than: value <= than,
}


def matches(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Whether a document's fields are as wanted. Raises InvalidArgument for an operator that there is not."""
    return all(_is(value.get(name), one) for name, one in (wanted or {}).items())


def _is(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(str(name).startswith("$") for name in wanted):
            return all(_compares(value, name, to) for name, to in wanted.items())
        return isinstance(value, Mapping) and all(_is(value.get(name), one) for name, one in wanted.items())
    if isinstance(wanted, list | tuple):
        alike = isinstance(value, list | tuple) and len(value) == len(wanted)
        return alike and all(_is(one, to) for one, to in zip(value, wanted, strict=True))
    return bool(value == wanted)


def _compares(value: Any, operator: str, to: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return bool(value == to) is (operator == "$eq")
    if operator not in _ORDERED:
        raise InvalidArgument(
            f"argument filter has the operator {operator!r}; there are $eq, $ne, {', '.join(_ORDERED)}"
        )
    try:
        return _ORDERED[operator](float(value), float(to))
    except (OverflowError, TypeError, ValueError):  # what is no number lies on neither side
        return False


def listed(paths: Iterable[Path], conditions: Iterable[MatchCondition], depth_max: int | None) -> list[Path]:
    """Return the paths that meet all conditions, cut at a depth, each once, in order."""
    some = [path for path in paths if all(_meets(path, one) for one in conditions)]
    return sorted({path if depth_max is None else path[:depth_max] for path in some})


def _meets(path: Path, condition: MatchCondition) -> bool:
    wanted = tuple(condition.path)
    if len(path) < len(wanted):
        return False
    part = path[: len(wanted)] if condition.match_type == "prefix" else path[len(path) - len(wanted) :]
    return all(one in ("*", label) for label, one in zip(part, wanted, strict=True))
