"""Groups of held writes as a reviewer sees them: how many, since when, how they come in, and what differs within."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from memsluice.errors import InvalidArgument
from memsluice.escaping import visible
from memsluice.operations.review.database import Database
from memsluice.operations.review.query import HeldQuery
from memsluice.operations.review.rows import READ, HeldRow, is_offset, row_of
from memsluice.operations.review.where import both, where

TREND_BUCKETS = 24
BUCKET_MS = 3_600_000
"""A trend is of the last 24 hours, one count an hour, the present one last."""
LOOKED_AT_MAX = 1_000
"""Members by which is told what differs within a group: its newest."""
DIFFER = ("reasons", "principal", "session", "agent", "channel", "tier", "taint", "policy")


class GroupCursor(NamedTuple):
    """Where a page of groups ends: when the last group's newest member was held (Unix ms), and its id."""

    last_ms: int
    group: str

    @classmethod
    def parse(cls, text: str) -> "GroupCursor":
        """Return the cursor of a text. Raises InvalidArgument."""
        last_ms, _, group = text.partition(".")
        if not (is_offset(last_ms) and group.isalnum()):
            raise InvalidArgument(
                f"{visible(text, 60)!r} is no place in a list of groups: give what the page before named"
            )
        return cls(int(last_ms), group)

    def __str__(self) -> str:
        return f"{self.last_ms}.{self.group}"


@dataclass(frozen=True, slots=True)
class GroupRow:
    """One group. ``count``, ``first_ms`` and ``last_ms`` are of the members that the query asks for, ``example`` is the
    newest of these; ``states`` and ``trend`` are of all that the index has.

    ``differs`` has the fields in which the members that are asked for differ, and how many values there are in each.
    ``chars`` are the lengths of the shortest and the longest content.
    """

    id: str
    tenant: str
    reason: str
    kid: str
    count: int
    first_ms: int
    last_ms: int
    states: Counter[str]
    trend: tuple[int, ...]
    example: HeldRow
    differs: dict[str, int]
    chars: tuple[int, int]

    @property
    def cursor(self) -> GroupCursor:
        """Its place in a list."""
        return GroupCursor(self.last_ms, self.id)


@dataclass(frozen=True, slots=True)
class GroupPage:
    """Groups, the one that grew last first; ``after`` is where the next page goes on, None on the last one."""

    groups: tuple[GroupRow, ...]
    after: GroupCursor | None


def groups_of(
    database: Database, query: HeldQuery, tenants: frozenset[str] | None, after: GroupCursor | None, limit: int,
    now_ms: int, age_days: Any,
) -> GroupPage:  # fmt: skip
    """Return a page of the groups that have members which a query asks for."""
    text, values = where(query, tenants, now_ms)
    behind = "" if after is None else "HAVING (max(held_ms), group_id) < (?, ?)"
    with database.snapshot():
        found = database.rows(
            f"SELECT group_id, tenant, group_reason, kid, count(*), min(held_ms), max(held_ms), id FROM entries "  # noqa: S608
            f"WHERE {text} GROUP BY tenant, group_id {behind} ORDER BY max(held_ms) DESC, group_id DESC LIMIT ?",
            (*values, *(after or ()), limit + 1),
        )
        groups = tuple(_group(database, one, (text, values), now_ms, age_days) for one in found[:limit])
    return GroupPage(groups, groups[-1].cursor if len(found) > limit else None)


def _group(
    database: Database, found: Sequence[Any], asked: tuple[str, list[Any]], now_ms: int, age_days: Any
) -> GroupRow:
    group, tenant, reason, kid, count, first_ms, last_ms, _ = found
    of_group = ("tenant = ? AND group_id = ?", [tenant, group])
    text, values = both([of_group, asked])
    told = database.rows(
        f"SELECT {', '.join(f'count(DISTINCT {name})' for name in DIFFER)}, min(chars), max(chars) FROM "  # noqa: S608
        f"(SELECT {', '.join(DIFFER)}, chars FROM entries WHERE {text} ORDER BY held_ms DESC LIMIT {LOOKED_AT_MAX})",
        values,
    )[0]
    ((example),) = database.rows(
        f"SELECT {READ} FROM entries WHERE {text} ORDER BY held_ms DESC, part DESC, record_offs DESC LIMIT 1",  # noqa: S608
        values,
    )
    states = database.rows(
        f"SELECT {STATE_NOW}, count(*) FROM entries WHERE {of_group[0]} GROUP BY 1",  # noqa: S608
        (now_ms, *of_group[1]),
    )
    return GroupRow(
        group, tenant, reason, kid, count, first_ms, last_ms, Counter(dict(states)),
        trend(_recent(database, of_group, now_ms)), row_of(example, now_ms, age_days(tenant)),
        {name: values for name, values in zip(DIFFER, told, strict=False) if values > 1}, told[-2:],
    )  # fmt: skip


STATE_NOW = "CASE WHEN state IN ('pending', 'refused') AND until_ms <= ? THEN 'lapsed' ELSE state END"
"""The state of a row at a time (Unix ms), which is bound."""


def _recent(database: Database, of_group: tuple[str, list[Any]], now_ms: int) -> Iterable[tuple[int, int]]:
    """Yield (hours ago, members held then)."""
    return database.rows(
        f"SELECT (? - held_ms) / {BUCKET_MS}, count(*) FROM entries WHERE {of_group[0]} AND held_ms > ? GROUP BY 1",  # noqa: S608
        (now_ms, *of_group[1], now_ms - TREND_BUCKETS * BUCKET_MS),
    )


def trend(recent: Iterable[tuple[int, int]]) -> tuple[int, ...]:
    """Return counts by hour, the oldest first, of (hours ago, count); what a clock puts into the future is now."""
    counts = [0] * TREND_BUCKETS
    for ago, count in recent:
        counts[TREND_BUCKETS - 1 - max(0, min(ago, TREND_BUCKETS - 1))] += count
    return tuple(counts)
