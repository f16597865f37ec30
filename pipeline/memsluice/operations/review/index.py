"""The index of held writes: fed from the topics, asked page by page, group by group. No web and no terminal in it.

It keeps metadata, a preview and the group of every held write; a whole content is read from its topic when one entry is
opened. Whoever asks says which tenants may be seen: that is a condition of every question, and no filter of a page.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from memsluice.clock import Clock, wall_ms
from memsluice.deployment.home import Home
from memsluice.errors import InvalidArgument, NotFound, SealError, StateError
from memsluice.escaping import visible
from memsluice.gate.policy.model import load_or_default
from memsluice.log import get_logger
from memsluice.operations.held.collect import HeldReview, look_whole
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.held.entries import HeldState
from memsluice.operations.review.database import WHAT, Database
from memsluice.operations.review.feeding import FedCounts, Feeder
from memsluice.operations.review.groups import GroupCursor, GroupPage, GroupRow, groups_of
from memsluice.operations.review.query import HeldQuery
from memsluice.operations.review.rows import READ, Cursor, HeldRow, row_of
from memsluice.operations.review.saved import SavedFilters
from memsluice.operations.review.taking import TakesAudit, TakesHeld
from memsluice.operations.review.tally import KINDS, Tally
from memsluice.operations.review.where import among, both, where
from memsluice.topics.names import PARTITIONS

FILE = "desk.sqlite3"
PAGE_MAX = 10_000
COUNTED_MAX = 10_000
"""A page says how many entries a query finds up to so many; beyond, that there are more."""
VALUES_MAX = 500
AHEAD_MS_MAX = 3_600_000
"""A clock that was further ahead when the index was last fed may have let go what waits still: all is read again."""
VALUES_OF = {
    "tenant": "tenant", "reason": "reasons", "state": "state", "channel": "channel", "agent": "agent",
    "principal": "principal", "session": "session", "kid": "kid", "policy": "policy", "tier": "tier",
    "group": "group_id", "assignee": "assignee", "claimed_by": "claimed_by", "visibility": "visibility", "mode": "mode",
    "model": "model",
}  # fmt: skip
NEAR_MAX = 300
"""Records between two entries that are read past rather than sought: seeking costs about as much."""
Name = tuple[str, str, int]
"""Tenant, event id and intake offset."""
_LOG = get_logger(__name__)
Tenants = frozenset[str] | None
"""The tenants that whoever asks may see; None is all of them."""


@dataclass(frozen=True, slots=True)
class HeldPage:
    """Entries, newest first. ``found`` is how many the query finds, at most COUNTED_MAX + 1; ``after`` is where the
    next page goes on, None on the last one. ``fed_ms`` is up to when (Unix ms) the topics were read; None: never.
    """

    rows: tuple[HeldRow, ...]
    found: int
    after: Cursor | None
    fed_ms: int | None


@dataclass(frozen=True, slots=True)
class IndexCounts:
    """What the index has: entries by state, and those that wait by tenant and reason; records that did not verify."""

    states: Counter[str]
    tenants: Counter[str]
    reasons: Counter[str]
    oldest_ms: int | None
    unverified: int
    fed_ms: int | None


class ReviewIndex:
    """The index of one home. Several processes may have it open, and several threads may use one object, but for
    :meth:`feed` and :meth:`opened`: a desk is used from one thread at a time.

    Every question raises ConfigError where the file cannot be used, and StateError where it turned out to be damaged:
    then it was emptied, and the next feeding fills it again.
    """

    def __init__(self, database: Database, saved: SavedFilters, age_days: Callable[[str], int], clock: Clock) -> None:
        self._database, self._age_days, self._clock = database, age_days, clock
        self._feeder, self._tally = Feeder(database), Tally(database)
        self.saved = saved

    @classmethod
    def open(cls, home: Path | None = None, *, clock: Clock = wall_ms) -> "ReviewIndex":
        """Open the index of a home, which is empty where there was none. Raises ConfigError, PolicyError."""
        place = Home.at(home)
        policies = load_or_default(place.policy_file)
        database = Database(place.path / FILE)
        return cls(database, SavedFilters(place.path), lambda one: policies.of(one).quarantine.age_days, clock)

    def close(self) -> None:
        """Let the file go."""
        self._database.close()

    def __enter__(self) -> "ReviewIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def feed(self, desk: HeldDesk, *, ended: Callable[[], bool] = bool) -> FedCounts:
        """Take in what the topics hold since the last time; ``ended`` is asked between partitions whether to stop.

        Raises BrokerUnavailable: what was read until then is kept, and is what is known; StateError, ConfigError.
        """
        try:
            return self._fed(desk, ended)
        except StateError:  # the file was damaged; now it is empty, and is filled from the beginning
            return self._fed(desk, ended)

    def _fed(self, desk: HeldDesk, ended: Callable[[], bool]) -> FedCounts:
        began_ms, keyring, fed = self._clock(), desk.keys.keyring(), FedCounts()
        if (self.fed_ms or 0) > began_ms + AHEAD_MS_MAX:
            _LOG.warning(f"the clock was ahead when {WHAT} was fed, and it is made anew", fed_ms=self.fed_ms)
            for partition in range(PARTITIONS):
                self._feeder.forget(partition)
        takers = TakesHeld(keyring, self._age_days), TakesAudit(keyring, self._age_days)
        for partition in range(PARTITIONS):
            if ended():
                return fed
            fed = fed.plus(self._feeder.feed(desk, partition, *takers))
        self._feeder.expire(began_ms)
        with self._database.transaction() as connection:
            connection.execute("INSERT OR REPLACE INTO meta VALUES ('fed_ms', ?)", (began_ms,))
        return fed

    @property
    def fed_ms(self) -> int | None:
        """Up to when (Unix ms) the topics were last read to their ends; None where they never were."""
        found = self._database.rows("SELECT value FROM meta WHERE name = 'fed_ms'")
        return int(found[0][0]) if found else None

    @property
    def unverified(self) -> int:
        """How many records of the topics, of whatever tenant, did not verify when they were read."""
        ((count,),) = self._database.rows("SELECT coalesce(sum(unverified), 0) FROM places")
        return int(count)

    def page(self, query: HeldQuery, *, tenants: Tenants, after: Cursor | None = None, limit: int = 50) -> HeldPage:
        """Return at most ``limit`` entries, newest first, behind a place. Raises InvalidArgument."""
        _check(limit)
        now_ms = self._clock()
        asked = where(query, tenants, now_ms)
        place = None if after is None else (after.held_ms, after.partition, after.record_offset)
        text, values = asked if place is None else both([asked, ("(held_ms, part, record_offs) < (?, ?, ?)", [*place])])
        found = self._database.rows(
            f"SELECT {READ} FROM entries WHERE {text} "  # noqa: S608
            "ORDER BY held_ms DESC, part DESC, record_offs DESC LIMIT ?",
            (*values, limit + 1),
        )
        rows = tuple(row_of(one, now_ms, self._age_days(one[0])) for one in found[:limit])
        ((count,),) = self._database.rows(
            f"SELECT count(*) FROM (SELECT 1 FROM entries WHERE {asked[0]} LIMIT ?)",  # noqa: S608
            (*asked[1], COUNTED_MAX + 1),
        )
        return HeldPage(rows, count, rows[-1].cursor if len(found) > limit else None, self.fed_ms)

    def groups(
        self, query: HeldQuery, *, tenants: Tenants, after: GroupCursor | None = None, limit: int = 50
    ) -> GroupPage:
        """Return at most ``limit`` groups of entries that a query asks for, the one that grew last first."""
        _check(limit)
        return groups_of(self._database, query, tenants, after, limit, self._clock(), self._age_days)

    def group(self, group_id: str, *, tenants: Tenants, query: HeldQuery | None = None) -> GroupRow | None:
        """Return a group, of all of its members unless a query narrows them; None where there is none to be seen."""
        wanted = query or HeldQuery.parse("state:any")
        page = self.groups(wanted.narrowed(group=group_id), tenants=tenants, limit=1)
        return page.groups[0] if page.groups else None

    def entry(self, tenant: str, event_id: str, offset: int | None = None, *, tenants: Tenants) -> HeldRow | None:
        """Return one entry; None where there is none to be seen. Raises NotFound where several have the id."""
        if tenants is not None and tenant not in tenants:
            return None
        found = self._database.rows(
            f"SELECT {READ} FROM entries WHERE tenant = ? AND event_id = ? AND (? IS NULL OR offs = ?) LIMIT 2",  # noqa: S608
            (tenant, event_id, offset, offset),
        )
        if len(found) > 1:
            raise NotFound(f"several held writes have the id {visible(event_id, 160)}: name one by its intake offset")
        return row_of(found[0], self._clock(), self._age_days(tenant)) if found else None

    def opened(self, desk: HeldDesk, row: HeldRow) -> HeldReview:
        """Read an entry's content from its topic, and verify it. Raises NotFound where the topic has it no more,
        BrokerUnavailable, SealError."""
        found = self.opened_all(desk, [row])
        if not found:
            raise NotFound(f"{visible(row.event_id, 160)} is in {desk.held.name} no more: its topic keeps it no longer")
        return found[row.seen.entry.name]

    def opened_all(self, desk: HeldDesk, rows: Iterable[HeldRow]) -> dict[Name, HeldReview]:
        """Read the contents of entries from their topic, and verify them; what the topic has no more is left out.

        Entries that lie near one another are read in one go. Raises BrokerUnavailable, SealError.
        """
        opened = dict[Name, HeldReview]()
        wanted = {row.seen.entry.name: row.seen for row in rows}
        for near in _near(wanted.values()):
            for seen in look_whole(desk.held, desk.keys.keyring(), near):
                known = wanted.get(seen.entry.name)
                if known is not None and known.entry.digest != seen.entry.digest:
                    raise SealError("the content of a held write is not the one that the index was told of")
                if known is not None:
                    opened[seen.entry.name] = seen
        return opened

    def values(self, field: str, *, tenants: Tenants, tenant: str | None = None) -> list[tuple[str, int]]:
        """Return the values that a field of a query has among the entries, and of how many, the most frequent first.

        ``tenant`` narrows them to one tenant. Raises InvalidArgument for a field without values of its own.
        """
        if field not in VALUES_OF:
            raise InvalidArgument(
                f"field: {visible(field, 40)!r} has no list of values: name one of {', '.join(VALUES_OF)}"
            )
        seen = tenants if tenant is None else frozenset({tenant} if tenants is None else tenants & {tenant})
        if field in KINDS:
            return self._tally.values(field, self._clock(), seen)[:VALUES_MAX]
        text, bound = both([] if seen is None else [among("tenant", sorted(seen))])
        found = self._database.rows(
            f"SELECT {VALUES_OF[field]}, count(*) FROM entries WHERE {text} "  # noqa: S608
            f"GROUP BY 1 ORDER BY 2 DESC, 1 LIMIT {VALUES_MAX}",
            bound,
        )
        return [(str(value), count) for value, count in found]

    def counts(self, *, tenants: Tenants) -> IndexCounts:
        """Return what the index has of these tenants; ``unverified`` is of all, and 0 for whoever may not see all."""
        kinds = list(self._tally.kinds(self._clock(), tenants))
        waiting = [one for one in kinds if one.state == HeldState.PENDING]
        states, by_tenant, reasons = Counter[str](), Counter[str](), Counter[str]()
        for one in kinds:
            states[one.state] += one.count
        for one in waiting:
            by_tenant[one.tenant] += one.count
            for code in one.reason.split():
                reasons[code] += one.count
        oldest_ms = min((one.oldest_ms for one in waiting), default=None)
        unverified = self.unverified if tenants is None else 0
        return IndexCounts(states, by_tenant, reasons, oldest_ms, unverified, self.fed_ms)


def _near(seen: Iterable[HeldReview]) -> Iterator[list[HeldReview]]:
    """Yield entries in runs of one partition, within which none lies further than NEAR_MAX records from the next."""
    run: list[HeldReview] = []
    for one in sorted(seen, key=lambda each: (each.entry.partition, each.entry.record_offset)):
        last = run[-1].entry if run else one.entry
        if last.partition != one.entry.partition or one.entry.record_offset - last.record_offset > NEAR_MAX:
            yield run
            run = []
        run.append(one)
    if run:
        yield run


def _check(limit: int) -> None:
    if not 1 <= limit <= PAGE_MAX:
        raise InvalidArgument(f"limit: {limit} is not between 1 and {PAGE_MAX}")
