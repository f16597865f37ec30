"""The life of an event id, put together from records of the audit topic alone. Pure: no I/O, no clock.

Every record counts only once its seal holds. What the audit cannot tell: events that nobody authenticated (they are
dead letters and never reach a tenant's audit), and whether *land* has written by now what *screen* admitted.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from hashlib import sha256
from typing import Any

import orjson

from memsluice.envelope import dsse
from memsluice.envelope.keys import Keyring
from memsluice.envelope.seals import open_
from memsluice.errors import InputError, SealError
from memsluice.events.names import VERDICT, EventType
from memsluice.gate.verdict import Decision, Verdict
from memsluice.stages.headers import EVENT_ID
from memsluice.stages.records import Record

ATTEMPTS_MAX = 50
"""Attempts of one tenant that are kept: the first, and the latest; the rest is counted."""
TENANTS_MAX = 100
"""Tenants that are kept; an id may exist in any number of them."""


class Kind(StrEnum):
    """What one appearance of an event id is, by the reason its verdict names."""

    DECIDED = "decided"
    REPLAYED = "replayed"
    OTHER_CONTENT = "other_content"
    AGAIN = "decided_again"


_BY_REASON = {"duplicates.replayed": Kind.REPLAYED, "duplicates.other_content": Kind.OTHER_CONTENT}
_NEEDED = {each.name for each in fields(Verdict)} - {"occurred_ms", "append_ms"}
"""What a verdict of any version has; the two clocks came later."""
GOVERNING = (Kind.DECIDED, Kind.AGAIN)
"""The appearances whose verdict says where the entry is; the others change nothing of it."""


class Standing(StrEnum):
    """Where an entry is now, as far as the audit tells."""

    GUIDANCE = "guidance"
    EXTERNAL = "external"
    HELD = "held"
    REFUSED = "refused"
    REPLACED = "replaced"
    EXPIRED = "expired"
    RECORDED = "recorded"


@dataclass(slots=True)
class Attempt:
    """One appearance of the id at the gate: an intake offset, its verdict, and where that lies on the audit topic.

    ``redelivered`` counts the same bytes again, ``contradictions`` other bytes for the same intake offset, which must
    not happen. ``audit_ms`` is when the broker appended the (first) audit record, Unix ms.
    """

    kind: Kind
    verdict: Mapping[str, Any]
    digest: str
    audit_partition: int
    audit_offset: int
    audit_ms: int
    redelivered: int = 0
    contradictions: int = 0

    @property
    def intake(self) -> tuple[str, int, int]:
        """Topic, partition and offset of the intake record."""
        return str(self.verdict["topic"]), int(self.verdict["partition"]), int(self.verdict["offset"])


@dataclass(frozen=True, slots=True)
class Successor:
    """The later write that took an object's place."""

    event_id: str
    version: int
    decided_ms: int


@dataclass(slots=True)
class Life:
    """Everything that the audit says of one event id in one tenant. ``counts`` also covers attempts not kept."""

    tenant: str
    event_id: str
    attempts: list[Attempt] = field(default_factory=list)
    counts: Counter[Kind] = field(default_factory=Counter)
    replaced: Successor | None = None

    @property
    def governing(self) -> Attempt:
        """The attempt whose verdict is in force."""
        return next((one for one in reversed(self.attempts) if one.kind in GOVERNING), self.attempts[0])

    def standing(self, now_ms: int) -> Standing:
        """Return where the entry is now (Unix ms)."""
        verdict = self.governing.verdict
        if verdict["object_id"] is not None:
            if self.replaced is not None:
                return Standing.REPLACED
            if verdict["expires_ms"] is not None and verdict["expires_ms"] <= now_ms:
                return Standing.EXPIRED
            return Standing(verdict["zone"])
        if verdict["decision"] == Decision.QUARANTINE:
            return Standing.HELD
        if verdict["decision"] in (Decision.REJECT, Decision.DUPLICATE):
            return Standing.REFUSED
        return Standing.RECORDED

    def landed_anyway(self) -> bool:
        """Whether shadow mode landed what would have been held or refused."""
        verdict = self.governing.verdict
        return verdict["object_id"] is not None and verdict["decision"] in (Decision.QUARANTINE, Decision.REJECT)

    def as_data(self, now_ms: int) -> dict[str, Any]:
        """Return the life as JSON values, the verdicts as they were signed."""
        return {
            "tenant": self.tenant,
            "event_id": self.event_id,
            "now": self.standing(now_ms).value,
            "landed_in_shadow_mode": self.landed_anyway(),
            "replaced_by": None
            if self.replaced is None
            else {"event_id": self.replaced.event_id, "version": self.replaced.version},
            "counts": {kind.value: self.counts[kind] for kind in Kind},
            "attempts": [
                {
                    "kind": one.kind.value,
                    "audit": {"partition": one.audit_partition, "offset": one.audit_offset, "append_ms": one.audit_ms},
                    "redelivered": one.redelivered,
                    "contradictions": one.contradictions,
                    "verdict": dict(one.verdict),
                }
                for one in self.attempts
            ],
        }


class Collector:
    """Takes audit records, partition by partition in the order of offsets, and keeps what is of one event id.

    A record's ``memsluice-event-id`` header, which only *screen* can have set, says whether it is opened at all.
    Bounded by TENANTS_MAX lives of ATTEMPTS_MAX attempts; ``left_out`` counts further tenants' records.
    """

    def __init__(self, event_id: str, keyring: Keyring, tenant: str | None = None) -> None:
        self._event_id = event_id
        self._keyring = keyring
        self._tenant = tenant
        self._lives: dict[str, Life] = {}
        self.read = 0
        self.unverified = 0
        self.left_out = 0

    def lives(self) -> list[Life]:
        """Return the lives found, by tenant."""
        return [self._lives[tenant] for tenant in sorted(self._lives)]

    def take(self, record: Record) -> None:
        """Learn from one record."""
        self.read += 1
        tenant = (record.key or b"").decode("utf-8", "replace")
        if self._tenant not in (None, tenant) or record.value is None:
            return
        named = [value for name, value in record.headers if name == EVENT_ID]
        if named and named[-1] != self._event_id.encode():
            self._look_for_successor(tenant, record.value)
            return
        verdict = self._opened(tenant, record.value)
        if verdict is not None and verdict["event_id"] == self._event_id:
            self._add(tenant, verdict, record)

    def _opened(self, tenant: str, value: bytes) -> dict[str, Any] | None:
        try:
            verdict: dict[str, Any] = open_(self._keyring, tenant, VERDICT, value)
        except SealError:
            verdict = {}
        if not (isinstance(verdict, dict) and verdict.keys() >= _NEEDED):
            self.unverified += 1
            return None
        return verdict

    def _add(self, tenant: str, verdict: Mapping[str, Any], record: Record) -> None:
        if tenant not in self._lives and len(self._lives) >= TENANTS_MAX:
            self.left_out += 1
            return
        life = self._lives.setdefault(tenant, Life(tenant, self._event_id))
        digest = sha256(record.value or b"").hexdigest()
        attempt = Attempt(Kind.DECIDED, verdict, digest, record.partition, record.offset, record.timestamp_ms)
        for known in life.attempts:
            if known.intake == attempt.intake:
                known.redelivered += known.digest == digest
                known.contradictions += known.digest != digest
                return
        by_reason = [_BY_REASON[code] for code in verdict["reasons"] if code in _BY_REASON]
        attempt.kind = by_reason[0] if by_reason else Kind.AGAIN if life.attempts else Kind.DECIDED
        life.counts[attempt.kind] += 1
        life.attempts.append(attempt)
        if attempt.kind in GOVERNING:
            life.replaced = None
        if len(life.attempts) > ATTEMPTS_MAX:
            changing_nothing = (n for n in range(1, ATTEMPTS_MAX) if life.attempts[n].kind not in GOVERNING)
            del life.attempts[next(changing_nothing, 1)]

    def _look_for_successor(self, tenant: str, value: bytes) -> None:
        """Notice a later write to the same object. The cheap look comes first: most records are of other objects."""
        life = self._lives.get(tenant)
        own = None if life is None else life.governing.verdict
        if life is None or own is None or own["object_id"] is None:
            return
        try:
            if str(own["object_id"]).encode() not in dsse.parse(orjson.loads(value)).payload:
                return
        except (InputError, orjson.JSONDecodeError):
            self.unverified += 1
            return
        verdict = self._opened(tenant, value)
        if verdict is not None and verdict["object_id"] == own["object_id"]:
            if verdict["type"] == EventType.WRITE and verdict["sealed_offset"] > own["sealed_offset"]:
                life.replaced = Successor(verdict["event_id"], verdict["sealed_offset"], verdict["decided_ms"])
