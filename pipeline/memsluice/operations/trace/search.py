"""Searches the audit: verdicts by event, entry, tenant, reason, who and time, the newest first, in bounded memory.

The cheap look at a record's key and headers, and at its unverified bytes, says whether it is opened; what it says
counts by its seal alone.
"""

import heapq
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass, field

from memsluice.envelope.codec import canonical
from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Decision, Verdict, rule_of
from memsluice.errors import InvalidArgument
from memsluice.escaping import visible
from memsluice.events.headers import EVENT_ID
from memsluice.events.names import EVERYBODY, EventType
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.operations.trace.equals import payload_of
from memsluice.operations.trace.verdicts import read
from memsluice.readers.base import TopicReader

READ_MAX = 50_000
"""Records of one partition that one search goes through: the newest. What lies before is told, and not looked at."""
STEPS = (200, 2_000, 10_000)
"""How many of the newest records of each partition are looked at before it is all of them."""
PAGE = 50
WHO = ("kid", "principal", "agent", "session", "channel")
_SHOWN_CHARS = 60
_WRITTEN_AS_IT_IS = re.compile(r"[ !#-\[\]-~]+").fullmatch
"""Texts that JSON does not escape."""


@dataclass(frozen=True, slots=True, order=True)
class AuditPlace:
    """Where an audit record lies, in the order of time: append time (Unix ms), partition, offset."""

    append_ms: int
    partition: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> "AuditPlace":
        """Return the place of a text, as ``str`` writes it. Raises InvalidArgument."""
        try:
            append_ms, partition, offset = (int(part) for part in text.split("."))
        except ValueError:
            raise InvalidArgument(
                f"{visible(text, _SHOWN_CHARS)!r} is no place in the audit: give what the page before named"
            ) from None
        return cls(append_ms, partition, offset)

    def __str__(self) -> str:
        return f"{self.append_ms}.{self.partition}.{self.offset}"


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """What to look for; None is anything. Times are Unix ms, ``since_ms`` included and ``until_ms`` not.

    ``entry`` is an event id or an object id: all that decided, moved, withdrew or returned it. ``reason`` is a reason
    code, also of a finding that did not decide, or its module (``rates``). ``who`` is a key id (an approver's too),
    principal, agent, session or channel.
    """

    event: str | None = None
    entry: str | None = None
    tenant: str | None = None
    reason: str | None = None
    decision: Decision | None = None
    type: EventType | None = None
    who: str | None = None
    since_ms: int | None = None
    until_ms: int | None = None

    def matches(self, verdict: Verdict) -> bool:
        """Whether a verdict is asked for, leaving aside when it was appended."""
        codes = {*verdict.reasons, *(finding.code for finding in verdict.findings)}
        return (
            (self.event is None or verdict.event_id == self.event)
            and (self.tenant is None or verdict.tenant == self.tenant)
            and (self.decision is None or verdict.decision is self.decision)
            and (self.type is None or verdict.type == self.type)
            and (self.reason is None or any(self.reason in (code, rule_of(code)) for code in codes))
            and (self.who is None or self.who in (*(getattr(verdict, name) for name in WHO), *verdict.approvers))
            and (self.entry is None or self.entry in _about(verdict))
        )

    def words(self) -> tuple[bytes, ...]:
        """Return what stands in the bytes of every verdict that is asked for."""
        texts = (self.event, self.entry, self.reason, self.who)
        said = (("decision", self.decision), ("type", self.type))
        return (
            *(text.encode() for text in texts if text is not None and _WRITTEN_AS_IT_IS(text)),
            *(canonical({name: value})[1:-1] for name, value in said if value is not None),
        )


def _about(verdict: Verdict) -> set[str | None]:
    """Return the entries that a verdict is about, by their event ids and object ids."""
    gone = (name for one in verdict.withdraws for name in (one.event_id, one.object_id))
    return {verdict.event_id, verdict.target, verdict.object_id, *verdict.returned, *gone}


@dataclass(frozen=True, slots=True)
class AuditHit:
    """One verdict that was found, and where its record lies."""

    place: AuditPlace
    verdict: Verdict


@dataclass(slots=True)
class AuditFound:
    """What a search found, the newest first. ``older`` is where the next page begins; None where there is none.

    ``unverified`` records may be asked for, but their seal does not hold; ``not_read`` partitions have records before
    the READ_MAX that were looked at.
    """

    hits: list[AuditHit] = field(default_factory=list)
    read_of: dict[int, int] = field(default_factory=dict)
    unverified: int = 0
    not_read: int = 0
    older: AuditPlace | None = None

    @property
    def read(self) -> int:
        """How many records were gone through."""
        return sum(self.read_of.values())


def search(
    audit: TopicReader,
    keyring: Keyring,
    query: AuditQuery,
    tenants: Set[str] | None,
    partitions: int,
    *,
    before: AuditPlace | None = None,
    hits_max: int = PAGE,
    read_max: int = READ_MAX,
) -> AuditFound:
    """Return the newest verdicts that a query asks for, of these tenants alone (None: of all), ``before`` a place.

    Topics are read forwards alone. So the newest records are looked at first, and ever more of them where these do not
    fill the page: most pages are full at once. Raises BrokerUnavailable.
    """
    wanted = tenants if query.tenant is None else {query.tenant} if tenants is None else {query.tenant} & set(tenants)
    looked_in: Set[int] = set(range(partitions))
    if wanted is not None and EVERYBODY not in wanted:
        looked_in = {partition_of(tenant, partitions) for tenant in wanted}
    look = _Look(audit, keyring, query, wanted, before, hits_max)
    windows = {partition: look.window(partition) for partition in sorted(looked_in)}
    for size in (*(step for step in STEPS if step < read_max), read_max):
        found = look.at_newest(windows, size, read_max)
        if found is not None:
            return found
    raise AssertionError("the last look is taken as it is")


@dataclass(frozen=True, slots=True)
class _Look:
    audit: TopicReader
    keyring: Keyring
    query: AuditQuery
    tenants: Set[str] | None
    before: AuditPlace | None
    hits_max: int

    def window(self, partition: int) -> tuple[int, int]:
        """Return the first offset of a partition that may be asked for, and the first behind it that may not."""
        until_ms = self.query.until_ms
        if self.before is not None:
            until_ms = min(until_ms or self.before.append_ms + 1, self.before.append_ms + 1)
        end = self.audit.end(partition)
        if until_ms is not None:
            end = self.audit.at(partition, until_ms) or end  # a local log cannot tell, and says 0
        return 0 if self.query.since_ms is None else self.audit.at(partition, self.query.since_ms), end

    def at_newest(self, windows: Mapping[int, tuple[int, int]], size: int, read_max: int) -> AuditFound | None:
        """Return what the newest ``size`` records of each partition hold; None where older ones may belong between."""
        found, newest = AuditFound(), list[tuple[AuditPlace, AuditHit]]()
        horizon_ms = -1
        for partition, (since, end) in windows.items():
            first = max(since, end - size)
            found.not_read += first > since
            for record in self.audit.read(partition, first):
                if record.offset >= end:
                    break
                if found.read_of.setdefault(partition, 0) == 0 and first > since:
                    horizon_ms = max(horizon_ms, record.timestamp_ms)
                found.read_of[partition] += 1
                hit = self._hit(record, found)
                if hit is not None:
                    heapq.heappush(newest, (hit.place, hit))
                    if len(newest) > self.hits_max + 1:
                        heapq.heappop(newest)
        ordered = [hit for _, hit in sorted(newest, key=lambda one: one[0], reverse=True)]
        whole = found.not_read == 0 or size >= read_max
        if not whole and not (len(ordered) > self.hits_max and ordered[-1].place.append_ms > horizon_ms):
            return None
        found.hits = ordered[: self.hits_max]
        found.older = found.hits[-1].place if len(ordered) > self.hits_max else None
        if not whole:  # nothing before was wanted
            found.not_read = 0
        return found

    def _hit(self, record: Record, found: AuditFound) -> AuditHit | None:
        query, place = self.query, AuditPlace(record.timestamp_ms, record.partition, record.offset)
        tenant = (record.key or b"").decode("utf-8", "replace")
        if (self.tenants is not None and tenant not in self.tenants) or (self.before and place >= self.before):
            return None
        if query.since_ms is not None and place.append_ms < query.since_ms:
            return None
        if query.until_ms is not None and place.append_ms >= query.until_ms:
            return None
        named = dict(record.headers).get(EVENT_ID)
        if query.event is not None and named is not None and named != query.event.encode("utf-8", "surrogateescape"):
            return None
        words = query.words()
        payload = payload_of(record) if words else b""
        if payload is None or any(word not in payload for word in words):
            found.unverified += payload is None
            return None
        verdict = read(self.keyring, record)
        if verdict is None:
            found.unverified += 1
            return None
        return AuditHit(place, verdict) if query.matches(verdict) else None
