"""What a query asks for, as conditions on the index's rows. Pure; every value is bound, none is part of a statement."""

from collections.abc import Iterable
from typing import Any

from memsluice.operations.held.entries import HeldState
from memsluice.operations.held.filters import SOURCES
from memsluice.operations.review.query import HeldQuery

Condition = tuple[str, list[Any]]
LAPSING = (HeldState.PENDING, HeldState.REFUSED)
"""States that an entry has until it lapses; the others it keeps."""
_EQUAL = {"tenant": "tenant", "event": "event_id", "group": "group_id", "policy": "policy"} | {
    name: name for name in (*SOURCES, "tier", "taint", "assignee", "visibility", "digest", "mode", "model")
}
_CLAIMED = "CASE WHEN claim_until_ms > ? THEN claimed_by ELSE '' END = ?"
"""Who claims an entry at a time (Unix ms), which is bound."""


def where(query: HeldQuery, tenants: frozenset[str] | None, now_ms: int) -> Condition:
    """Return the condition of a query, of these tenants alone (None: of all), at a time (Unix ms).

    Raises InvalidArgument for a time that is none.
    """
    found = [_states(query.states, now_ms)]
    if tenants is not None:
        found.append(among("tenant", sorted(tenants)))
    for name, column in _EQUAL.items():
        value = getattr(query, name)
        if value is not None:
            found.append((f"{column} = ?", [int(value) if isinstance(value, int) else value]))
    if query.source is not None:
        found.append((" OR ".join(f"{name} = ?" for name in SOURCES), [query.source] * len(SOURCES)))
    if query.reason is not None:
        found.append(("instr(reasons, ?) OR instr(reasons, ?)", [f" {query.reason} ", f" {query.reason}."]))
    since_ms, until_ms = query.span_ms(now_ms)
    bounds = (("held_ms >= ?", since_ms), ("held_ms < ?", until_ms), ("score >= ?", query.score_min),
              ("score <= ?", query.score_max))  # fmt: skip
    found += [(text, [value]) for text, value in bounds if value is not None]
    if query.claimed_by is not None:
        found.append((_CLAIMED, [now_ms, query.claimed_by]))
    if query.appeal is not None:
        found.append((f"appeal_ms IS {'NOT ' if query.appeal else ''}NULL", []))
    return both(found)


def both(conditions: Iterable[Condition]) -> Condition:
    """Return the condition that all of these hold."""
    texts, values = [], list[Any]()
    for text, bound in conditions:
        texts.append(f"({text})" if " OR " in text else text)
        values += bound
    return " AND ".join(texts) or "1", values


def among(column: str, values: Iterable[Any]) -> Condition:
    """Return the condition that a column has one of some values; of none, that nothing has."""
    wanted = list(values)
    if len(wanted) == 1:
        return f"{column} = ?", wanted
    return f"{column} IN ({', '.join('?' * len(wanted))})", wanted


def _states(states: frozenset[HeldState], now_ms: int) -> Condition:
    if states == frozenset(HeldState):
        return "1", []
    lapsing = [state.value for state in LAPSING if state in states]
    kept = sorted(state.value for state in states - {*LAPSING, HeldState.LAPSED})
    found: list[Condition] = []
    if lapsing:
        found.append(both([among("state", lapsing), ("until_ms > ?", [now_ms])]))
    if kept:
        found.append(among("state", kept))
    if HeldState.LAPSED in states:
        found.append(both([among("state", [state.value for state in LAPSING]), ("until_ms <= ?", [now_ms])]))
    return " OR ".join(text for text, _ in found) or "0", [value for _, bound in found for value in bound]
