"""One round of notices: look at what waits, note what is to be told, and send what is due.

A receiver that does not answer is said in the log at each attempt, waits for its next one, and stops nobody else.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime

from memsluice.clock import Clock
from memsluice.errors import BrokerUnavailable, NotSent
from memsluice.log import get_logger
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.notices import judging
from memsluice.operations.notices.journal import Delivery, Journal
from memsluice.operations.notices.judging import AppealSeen, GroupSeen, Notice, OverdueSeen
from memsluice.operations.notices.sending import Channel
from memsluice.operations.notices.settings import NoticeSettings
from memsluice.operations.review.groups import GroupCursor, GroupRow
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.operations.review.rows import Cursor
from memsluice.telemetry import registry
from memsluice.telemetry.meters import Meters

PAGE = 200
GROUPS_MAX = 2_000
"""Groups that one rule looks at in one round, those that grew last."""
APPEALS_MAX = 2_000
NOTICES_MAX = 50
"""Notices that are made in one round; what is beyond is found again by the next one."""
_LOG = get_logger(__name__)


@dataclass(slots=True)
class RoundResult:
    """What a round did. ``looked`` is False where the broker did not answer, so that nothing new was looked for."""

    looked: bool = True
    made: int = 0
    sent: Counter[str] = field(default_factory=Counter)
    failed: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rounds:
    """What the rounds of one process share."""

    settings: NoticeSettings
    index: ReviewIndex
    desk: HeldDesk
    journal: Journal
    channels: Sequence[Channel]
    meters: Meters
    clock: Clock
    ended: Callable[[], bool] = bool

    def run(self) -> RoundResult:
        """Do one round. Raises ConfigError where the index or the journal cannot be used."""
        result, names = RoundResult(), [one.name for one in self.channels]
        now_ms = self.clock()
        try:
            self.index.feed(self.desk, ended=self.ended)
            made = list(_few(self._found(now_ms)))
            result.made = self.journal.add(made, names, now_ms)
        except BrokerUnavailable as error:
            result.looked = False
            _LOG.error("nothing new was looked for: what is due is sent all the same", problem=str(error))
        if gone := self.journal.dropped(names, now_ms):
            _LOG.warning("notices wait for receivers that the settings have no more: they are given up", notices=gone)
        self._deliver(result)
        self.journal.forget(now_ms)
        _, since_ms = self.journal.waiting()
        waits_s = 0.0 if since_ms is None else max(0.0, (self.clock() - since_ms) / 1_000)
        self.meters.set(registry.NOTICES_OLDEST_SECONDS, waits_s)
        return result

    def _found(self, now_ms: int) -> Iterable[Notice]:
        """Yield what there is to tell, of what the index has."""
        rules, told = self.settings.rules, self.journal.told()
        yield from judging.appealed(self._appeals(), rules, told)
        yield from judging.overdue(self._overdue(now_ms), rules, told, now_ms)
        yield from judging.grew(self._grown(now_ms, told), rules)

    def _grown(self, now_ms: int, told: dict[str, int]) -> Iterable[GroupSeen]:
        rule = self.settings.rules.group_grew
        if rule is None:
            return
        began_ms = now_ms - rule.within_ms
        for row in self._groups(HeldQuery(since=_moment(began_ms))):
            since_ms = max(began_ms, told.get(judging.subject_of_group("grew", row.tenant, row.id), 0) + 1)
            if row.count < rule.by:
                continue
            counted: GroupRow | None = row
            if since_ms > began_ms:
                query = HeldQuery(since=_moment(since_ms), tenant=row.tenant)
                counted = self.index.group(row.id, tenants=self.settings.visible_tenants, query=query)
            if counted is not None:
                first_ms = max(since_ms, counted.first_ms)
                yield GroupSeen(row.tenant, row.id, row.reason, counted.count, first_ms, counted.last_ms)

    def _overdue(self, now_ms: int) -> Iterable[OverdueSeen]:
        age_ms = self.settings.rules.pending_over_ms
        if age_ms is None:
            return
        for row in self._groups(HeldQuery(until=_moment(now_ms - age_ms))):
            yield OverdueSeen(row.tenant, row.id, row.reason, row.count, row.first_ms, row.last_ms)

    def _groups(self, query: HeldQuery) -> Iterable[GroupRow]:
        after: GroupCursor | None = None
        for _ in range(GROUPS_MAX // PAGE):
            page = self.index.groups(query, tenants=self.settings.visible_tenants, after=after, limit=PAGE)
            yield from page.groups
            after = page.after
            if after is None:
                return
        _LOG.warning("more groups wait than one round looks at: those that grew last count", groups=GROUPS_MAX)

    def _appeals(self) -> Iterable[AppealSeen]:
        after: Cursor | None = None
        for _ in range(APPEALS_MAX // PAGE if self.settings.rules.appeal else 0):
            query = HeldQuery(appeal=True)
            page = self.index.page(query, tenants=self.settings.visible_tenants, after=after, limit=PAGE)
            for row in page.rows:
                if row.seen.appeal is not None:
                    yield AppealSeen(row.tenant, row.event_id, row.offset, row.seen.appeal.at_ms)
            after = page.after
            if after is None:
                return

    def _deliver(self, result: RoundResult) -> None:
        """Send what is due over each channel, side by side: none waits for another."""
        due = {one.name: self.journal.due(one.name, self.clock()) for one in self.channels}
        with ThreadPoolExecutor(max_workers=max(1, len(self.channels))) as pool:
            pending = [pool.submit(self._over, channel, due[channel.name], result) for channel in self.channels]
            for future in pending:
                future.result()

    def _over(self, channel: Channel, due: Sequence[Delivery], result: RoundResult) -> None:
        """Send over one channel until it fails: then what else is due there waits for the next round."""
        for one in due:
            if self.ended():
                return
            try:
                channel.send(one.notice, self.clock())
            except NotSent as error:
                again = self.journal.failed(one, self.clock())
                self.meters.add(registry.NOTICES, channel.kind, "failed" if again else "given up")
                told = "a notice was not taken, and is tried again" if again else "a notice is given up: nobody took it"
                _LOG.error(told, notice=one.notice.id, attempt=one.attempts + 1, problem=str(error))
                result.failed[channel.name] = str(error)
                return
            self.journal.sent(one, self.clock())
            self.meters.add(registry.NOTICES, channel.kind, "sent")
            result.sent[channel.name] += 1


def _few(found: Iterable[Notice]) -> Iterable[Notice]:
    for number, one in enumerate(found):
        if number >= NOTICES_MAX:
            _LOG.warning("more is to be told than one round tells: the rest follows", notices=NOTICES_MAX)
            return
        yield one


def _moment(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="milliseconds")
