"""The life of an event id, put together from records of the audit topic alone. Pure: no I/O, no clock.

Every record counts only once its seal holds. What the audit cannot tell: events that nobody authenticated (they are
dead letters and never reach a tenant's audit), and whether *land* has written by now what *screen* admitted.
"""

from collections import Counter
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import Any

import orjson

from memsluice.envelope import dsse
from memsluice.envelope.keys import Keyring
from memsluice.envelope.seals import open_
from memsluice.errors import InputError, SealError
from memsluice.events.models import Action
from memsluice.events.names import TARGET_HEADER, VERDICT
from memsluice.gate.verdict import Decision
from memsluice.stages.headers import EVENT_ID
from memsluice.stages.records import Record

ATTEMPTS_MAX = 50
"""Attempts of one life that are kept: the first, those in force, and the latest; the rest is counted."""
LIVES_MAX = 100
"""Lives that are kept; an id may exist in any number of tenants."""
NEEDED = frozenset({
    "tenant", "event_id", "type", "decision", "reasons", "findings", "decided_ms", "topic", "partition", "offset",
    "sealed_offset", "kid", "role", "credential_tier", "channel", "tier", "taint", "taint_causes", "agent", "principal",
    "session", "policy", "model", "content_digest", "mode", "score", "object_id", "zone", "visibility", "expires_ms",
    "seal_kid", "admission_kid", "approvers", "chain_seq",
})  # fmt: skip
"""What a verdict of any version has. Whatever was added since is looked up as absent in old records."""
ORDERS = frozenset({
    Action.RELEASE, Action.REJECT, Action.REPLAY, Action.APPEAL, Action.DECLASSIFY, Action.PROMOTE, Action.WITHDRAW,
    Action.REVOKE, Action.RENEW,
})  # fmt: skip
"""Commands whose target is an event id; that of ``protect`` is a key, and might be worded like one."""
OF_A_SESSION = frozenset({"revocation.session", "revocation.unknown_session"})
"""Findings that say that a revocation's target was a session all the same."""


class Kind(StrEnum):
    """What one record about an event id is, by the reason its verdict names."""

    DECIDED = "decided"
    REPLAYED = "replayed"
    OTHER_CONTENT = "other_content"
    AGAIN = "decided_again"
    ORDER = "order"


_BY_REASON = {"duplicates.replayed": Kind.REPLAYED, "duplicates.other_content": Kind.OTHER_CONTENT}
GOVERNING = (Kind.DECIDED, Kind.AGAIN)
"""What says where the entry is, together with the orders that were carried out."""


class Standing(StrEnum):
    """Where an entry is now, as far as the audit tells."""

    GUIDANCE = "guidance"
    EXTERNAL = "external"
    HELD = "held"
    REFUSED = "refused"
    REPLACED = "replaced"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    RECORDED = "recorded"


@dataclass(slots=True)
class Attempt:
    """One appearance of the id at the gate, or one order about it: an intake offset, its verdict, its audit record.

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

    @property
    def places(self) -> bool:
        """Whether its verdict says where the entry is from then on: a decision, or an order that was carried out."""
        return moves(self.verdict) if self.kind is Kind.ORDER else self.kind in GOVERNING


def standing(verdict: Mapping[str, Any], now_ms: int, *, replaced: bool) -> Standing:
    """Return where an entry is now (Unix ms), by the verdict that placed it last."""
    if verdict["object_id"] is not None:
        if replaced:
            return Standing.REPLACED
        if verdict["expires_ms"] is not None and verdict["expires_ms"] <= now_ms:
            return Standing.EXPIRED
        return Standing(verdict["zone"])
    if verdict.get("withdraws") is not None:
        return Standing.WITHDRAWN
    if verdict["decision"] == Decision.QUARANTINE:
        return Standing.HELD
    if verdict["decision"] in (Decision.REJECT, Decision.DUPLICATE) or verdict.get("action") == Action.REJECT:
        return Standing.REFUSED
    return Standing.RECORDED


def moves(verdict: Mapping[str, Any]) -> bool:
    """Whether the verdict on a command says where its entry is from then on."""
    if verdict["action"] == Action.REPLAY:
        return replayed(verdict)
    if verdict["decision"] in (Decision.REJECT, Decision.DUPLICATE):
        return False
    placed = verdict["object_id"] is not None or verdict.get("withdraws") is not None
    return verdict["action"] == Action.REJECT or (verdict["action"] in ORDERS and placed)


def target_of(verdict: Mapping[str, Any]) -> str | None:
    """Return the event id that a command is about; None where it is about something else, or it is no command."""
    of_a_session = any(finding["code"] in OF_A_SESSION for finding in verdict["findings"])
    return str(verdict["target"]) if verdict.get("action") in ORDERS and not of_a_session else None


def replayed(verdict: Mapping[str, Any]) -> bool:
    """Whether a replay's verdict is the entry's new one, whatever it decided; a refused or dry one decides nothing."""
    return any(finding["code"] == "replay.decided" for finding in verdict["findings"])


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
        """The attempt whose verdict the gate stands by: the latest that was not merely a repetition."""
        kept = [one for one in self.attempts if one.kind is not Kind.ORDER] or self.attempts
        return next((one for one in reversed(kept) if one.kind in GOVERNING), kept[0])

    @property
    def placing(self) -> Attempt:
        """The decision, or the order carried out since, that says where the entry is.

        An order is bound to a content: one about another content under the same id moves this entry nowhere, nor does
        one about another held write of the same content.
        """
        governing = self.governing
        digest, offsets = governing.verdict["content_digest"], (None, governing.verdict["offset"])
        same = [
            one for one in self.attempts
            if one.verdict["content_digest"] == digest and one.verdict.get("target_offset") in offsets
        ]  # fmt: skip
        return next((one for one in reversed(same) if one.places), governing)

    def standing(self, now_ms: int) -> Standing:
        """Return where the entry is now (Unix ms)."""
        return standing(self.placing.verdict, now_ms, replaced=self.replaced is not None)

    def landed_anyway(self) -> bool:
        """Whether shadow mode landed what would have been held or refused."""
        verdict = self.placing.verdict
        return verdict["object_id"] is not None and verdict["decision"] in (Decision.QUARANTINE, Decision.REJECT)

    def as_data(self, now_ms: int) -> dict[str, Any]:
        """Return the life as JSON values, the verdicts as they were signed."""
        later = self.replaced
        return {
            "tenant": self.tenant,
            "event_id": self.event_id,
            "now": self.standing(now_ms).value,
            "landed_in_shadow_mode": self.landed_anyway(),
            "replaced_by": None if later is None else {"event_id": later.event_id, "version": later.version},
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


def ancestors_of(life: Life) -> set[str]:
    """Return the ids of the events that tainted an entry (at most as many as a verdict names)."""
    causes = (str(cause).partition(":") for cause in life.governing.verdict["taint_causes"])
    return {ancestor for kind, _, ancestor in causes if kind != "session" and ancestor}


class Collector:
    """Takes audit records, partition by partition in the order of offsets, and keeps what is of certain event ids.

    Headers that only *screen* can have set (``memsluice-event-id``, ``memsluice-target``) say whether a record is
    opened at all; what it says counts by its seal alone. Bounded by LIVES_MAX lives of ATTEMPTS_MAX attempts;
    ``left_out`` counts the records of further lives, ``unverified`` records that mattered and whose seal did not hold.
    """

    def __init__(self, event_ids: Set[str], keyring: Keyring, tenant: str | None = None) -> None:
        self._event_ids = {event_id.encode("utf-8", "surrogateescape"): event_id for event_id in event_ids}
        self._keyring = keyring
        self._tenant = tenant
        self._lives: dict[tuple[str, str], Life] = {}
        self._objects: dict[tuple[str, str], Life] = {}
        self.read = 0
        self.unverified = 0
        self.left_out = 0

    def lives(self) -> list[Life]:
        """Return the lives found, by tenant and id."""
        return [self._lives[name] for name in sorted(self._lives)]

    def take(self, record: Record) -> None:
        """Learn from one record."""
        self.read += 1
        tenant = (record.key or b"").decode("utf-8", "replace")
        if self._tenant not in (None, tenant) or record.value is None:
            return
        named = {name: value for name, value in record.headers if name in (EVENT_ID, TARGET_HEADER)}
        if EVENT_ID not in named or any(value in self._event_ids for value in named.values()):
            self._learn(tenant, record)
        elif any(owner == tenant for owner, _ in self._objects):
            self._look_for_successor(tenant, record.value)

    def _opened(self, tenant: str, value: bytes) -> dict[str, Any] | None:
        try:
            verdict = open_(self._keyring, tenant, VERDICT, value)
        except SealError:
            verdict = None
        if not (isinstance(verdict, dict) and verdict.keys() >= NEEDED and verdict["tenant"] == tenant):
            self.unverified += 1
            return None
        return verdict

    def _learn(self, tenant: str, record: Record) -> None:
        verdict = self._opened(tenant, record.value or b"")
        if verdict is None:
            return
        wanted = self._event_ids.values()
        target = target_of(verdict)
        if verdict["event_id"] in wanted:
            self._add(verdict["event_id"], verdict, record, order=False)
        if target in wanted:
            self._add(str(target), verdict, record, order=True)

    def _add(self, event_id: str, verdict: Mapping[str, Any], record: Record, *, order: bool) -> None:
        tenant = verdict["tenant"]
        if (tenant, event_id) not in self._lives and len(self._lives) >= LIVES_MAX:
            self.left_out += 1
            return
        life = self._lives.setdefault((tenant, event_id), Life(tenant, event_id))
        digest = sha256(record.value or b"").hexdigest()
        attempt = Attempt(Kind.ORDER, verdict, digest, record.partition, record.offset, record.timestamp_ms)
        for known in life.attempts:
            if known.intake == attempt.intake:
                known.redelivered += known.digest == digest
                known.contradictions += known.digest != digest
                return
        if not order:
            by_reason = [_BY_REASON[code] for code in verdict["reasons"] if code in _BY_REASON]
            seen_before = any(one.kind is not Kind.ORDER for one in life.attempts)
            attempt.kind = by_reason[0] if by_reason else Kind.AGAIN if seen_before else Kind.DECIDED
        life.counts[attempt.kind] += 1
        life.attempts.append(attempt)
        if attempt.places:
            life.replaced = None
            if verdict["object_id"] is not None:
                self._objects[tenant, str(verdict["object_id"])] = life
        if len(life.attempts) > ATTEMPTS_MAX:
            changing_nothing = (n for n in range(1, ATTEMPTS_MAX) if not life.attempts[n].places)
            del life.attempts[next(changing_nothing, 1)]

    def _look_for_successor(self, tenant: str, value: bytes) -> None:
        """Notice a later write to the same object. The cheap look comes first: most records are of other objects."""
        try:
            payload = dsse.parse(orjson.loads(value)).payload
        except (InputError, orjson.JSONDecodeError):
            self.unverified += 1
            return
        if not any(owner == tenant and name.encode() in payload for owner, name in self._objects):
            return
        verdict = self._opened(tenant, value)
        life = None if verdict is None else self._objects.get((tenant, str(verdict["object_id"])))
        if verdict is None or life is None or life.placing.verdict["object_id"] != verdict["object_id"]:
            return
        if verdict["sealed_offset"] > life.placing.verdict["sealed_offset"]:
            later = verdict.get("target") or verdict["event_id"]  # a release places the write that it is about
            life.replaced = Successor(later, verdict["sealed_offset"], verdict["decided_ms"])
