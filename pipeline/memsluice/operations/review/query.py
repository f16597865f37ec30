"""What a reviewer asks for, as one short text that command lines, addresses and saved filters share. Pure.

``reason:detect tenant:acme since:2h`` is words of ``field:value``, in any order; a value with blanks or quotes stands
in double quotes, as JSON writes it. Where no state is named, what waits for a decision is asked for.
"""

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from memsluice.errors import InvalidArgument
from memsluice.escaping import visible
from memsluice.events.models import Tier
from memsluice.operations.held.entries import HeldState
from memsluice.operations.held.filters import moment_ms

TEXT_CHARS_MAX = 2_000
WAITING = frozenset({HeldState.PENDING})
ANY = "any"
SHOWN_CHARS_MAX = 60
_BARE = re.compile(r"[^\s\"\\]+")
_WORD = re.compile(r'\s*([A-Za-z_]+):("(?:[^"\\]|\\.)*"|[^\s"]*)(?=\s|$)')
_YES = {"yes": True, "no": False}


@dataclass(frozen=True, slots=True)
class HeldQuery:
    """What to look for; None is anything. ``since`` and ``until`` are as a person wrote them: ``2h``, or a moment.

    ``reason`` is a reason code or its module (``rates``) of what holds the entry now. ``source`` is a channel, an
    agent, a principal, a session or a key id. ``tier`` is 1 to 5. Scores are MEMSAD's, both bounds included; an entry
    without one reaches none. ``visibility`` is what the writer asked for, ``digest`` that of the content. ``assignee``
    "" asks for what nobody was given, ``claimed_by`` "" for what nobody works on now.
    """

    tenant: str | None = None
    event: str | None = None
    reason: str | None = None
    states: frozenset[HeldState] = WAITING
    channel: str | None = None
    agent: str | None = None
    principal: str | None = None
    session: str | None = None
    kid: str | None = None
    source: str | None = None
    policy: str | None = None
    tier: Tier | None = None
    taint: bool | None = None
    score_min: float | None = None
    score_max: float | None = None
    since: str | None = None
    until: str | None = None
    group: str | None = None
    assignee: str | None = None
    claimed_by: str | None = None
    visibility: str | None = None
    digest: str | None = None
    mode: str | None = None
    model: str | None = None
    appeal: bool | None = None

    @classmethod
    def parse(cls, text: str, now_ms: int = 0) -> "HeldQuery":
        """Return the query of a text; "" is what waits. Raises InvalidArgument, which names the word and what to do."""
        if len(text) > TEXT_CHARS_MAX:
            raise InvalidArgument(f"filter: has {len(text)} characters, and at most {TEXT_CHARS_MAX} are read")
        found: dict[str, Any] = {}
        for name, value in _words(text):
            _take(found, name, value, now_ms)
        query = cls(**found)
        if len(query.text()) > TEXT_CHARS_MAX:  # or what is kept under a name could not be read again
            raise InvalidArgument(f"filter: written out it has more than {TEXT_CHARS_MAX} characters: shorten a value")
        return query

    def text(self) -> str:
        """Return the text that :meth:`parse` reads this query from: the same query has one text."""
        return " ".join(f"{name}:{_quoted(value)}" for name, told in _TELL.items() if (value := told(self)) is not None)

    def narrowed(self, **changes: Any) -> "HeldQuery":
        """Return the query with other values in some fields."""
        return replace(self, **changes)

    def also(self, other: "HeldQuery") -> "HeldQuery":
        """Return the query that asks for what both ask for; a state that is not named narrows nothing.

        Raises InvalidArgument, which names the field, where both name one, and not the same value.
        """
        taken = dict[str, Any]()
        for one in fields(self):
            mine, its = getattr(self, one.name), getattr(other, one.name)
            if its == one.default:
                continue
            if mine not in (one.default, its):
                word = {"states": "state", "score_min": "score", "score_max": "score"}.get(one.name, one.name)
                raise InvalidArgument(f"filter: {word} is asked for twice, with different values; leave one out")
            taken[one.name] = its
        return replace(self, **taken)

    def span_ms(self, now_ms: int) -> tuple[int | None, int | None]:
        """Return (since, until) in Unix ms, the second not included. Raises InvalidArgument."""
        since = None if self.since is None else moment_ms(self.since, now_ms)
        return since, None if self.until is None else moment_ms(self.until, now_ms)


def _words(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    while text[at:].strip():
        match = _WORD.match(text, at)
        if match is None:
            word = text[at:].split(maxsplit=1)[0]
            raise InvalidArgument(
                f"filter: {visible(word, SHOWN_CHARS_MAX)!r} cannot be read: write field:value, a value with blanks in "
                "double quotes"
            )
        name, value = match.groups()
        if value.startswith('"'):
            try:
                value = json.loads(value)
            except ValueError:
                raise InvalidArgument(f"filter: the quoted value of {name} cannot be read: quote it as JSON") from None
        elif not value:
            raise InvalidArgument(f'filter: {name}: has no value; write {name}:"" for an empty one')
        found.append((name.lower(), value))
        at = match.end()
    return found


def _take(found: dict[str, Any], name: str, value: str, now_ms: int) -> None:
    if any("\ud800" <= sign <= "\udfff" for sign in value):
        raise InvalidArgument(f"filter: the value of {visible(name, SHOWN_CHARS_MAX)} has half a character in it")
    if name not in _READ:
        near = difflib.get_close_matches(name, _READ, n=1)
        hint = f"; did you mean {near[0]}?" if near else f": fields are {', '.join(_READ)}"
        raise InvalidArgument(f"filter: there is no field {visible(name, SHOWN_CHARS_MAX)}{hint}")
    for target, read in _READ[name](value, now_ms).items():
        if target in found:
            raise InvalidArgument(f"filter: {name} is given twice; leave one out")
        found[target] = read


def _plain(target: str) -> "_Reader":
    return lambda value, _now: {target: value}


def _yes_or_no(target: str) -> "_Reader":
    def read(value: str, _now: int) -> Mapping[str, Any]:
        if value not in _YES:
            raise InvalidArgument(f"filter: {target}:{visible(value, SHOWN_CHARS_MAX)} is neither yes nor no")
        return {target: _YES[value]}

    return read


def _states(value: str, _now: int) -> Mapping[str, Any]:
    known = {state.value: state for state in HeldState}
    if value == ANY:
        return {"states": frozenset(HeldState)}
    named = value.split(",")
    if wrong := [one for one in named if one not in known]:
        raise InvalidArgument(
            f"filter: there is no state {visible(wrong[0], SHOWN_CHARS_MAX)!r}: states are {', '.join(known)}, {ANY}"
        )
    return {"states": frozenset(known[one] for one in named)}


def _tier(value: str, _now: int) -> Mapping[str, Any]:
    if value not in [str(tier.value) for tier in Tier]:
        raise InvalidArgument(f"filter: tier:{visible(value, SHOWN_CHARS_MAX)} is none: tiers are 1 to {len(Tier)}")
    return {"tier": Tier(int(value))}


def _score(value: str, _now: int) -> Mapping[str, Any]:
    """Read ``0.2..0.5``, ``0.2..`` or ``..0.5``."""
    least, dots, most = value.partition("..")
    try:
        bounds = [float(one) if one else None for one in (least, most)]
    except ValueError:
        bounds = [None, None]
    if not dots or bounds == [None, None] or any(one is not None and one != one for one in bounds):
        raise InvalidArgument(
            f"filter: score:{visible(value, SHOWN_CHARS_MAX)} is no range: write 0.2.., ..0.5 or 0.2..0.5"
        )
    return {"score_min": bounds[0], "score_max": bounds[1]}


def _moment(target: str) -> "_Reader":
    def read(value: str, now_ms: int) -> Mapping[str, Any]:
        moment_ms(value, now_ms)  # or it says what a time looks like
        return {target: value.strip()}

    return read


_Reader = Callable[[str, int], Mapping[str, Any]]
_PLAIN = (
    "tenant", "event", "reason", "channel", "agent", "principal", "session", "kid", "source", "policy", "group",
    "assignee", "claimed_by", "visibility", "digest", "mode", "model",
)  # fmt: skip
_READ: dict[str, _Reader] = {
    **{name: _plain(name) for name in _PLAIN},
    "state": _states,
    "tier": _tier,
    "taint": _yes_or_no("taint"),
    "appeal": _yes_or_no("appeal"),
    "score": _score,
    "since": _moment("since"),
    "until": _moment("until"),
}
FIELDS = tuple(_READ)
"""The fields that a text may name."""


def _told_states(query: HeldQuery) -> str | None:
    if query.states == WAITING:
        return None
    return ANY if query.states == frozenset(HeldState) else ",".join(sorted(query.states))


def _told_score(query: HeldQuery) -> str | None:
    bounds = [query.score_min, query.score_max]
    return None if bounds == [None, None] else "..".join("" if one is None else repr(one) for one in bounds)


def _told(name: str) -> Callable[[HeldQuery], str | None]:
    def told(query: HeldQuery) -> str | None:
        value = getattr(query, name)
        if isinstance(value, bool):
            return "yes" if value else "no"
        return None if value is None else str(int(value)) if isinstance(value, Tier) else str(value)

    return told


_TELL: dict[str, Callable[[HeldQuery], str | None]] = {name: _told(name) for name in FIELDS} | {
    "state": _told_states,
    "score": _told_score,
}


def _quoted(value: str) -> str:
    if _BARE.fullmatch(value) and value.isprintable():
        return value
    return "".join(
        sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in json.dumps(value, ensure_ascii=False)
    )
