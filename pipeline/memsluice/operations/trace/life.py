"""The life of an event id, put together from records of the audit topic alone. Pure: no I/O, no clock.

Every record counts only once its seal holds. What the audit cannot tell: events that nobody authenticated (they are
dead letters and never reach a tenant's audit), and whether *land* has written by now what *screen* admitted.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from memsluice.envelope.verdict import Decision, Verdict, Withdrawal
from memsluice.events.models import Action, Tier, Visibility, Zone
from memsluice.events.names import EventType
from memsluice.operations.verdict_words import from_refused, stands_for

ORDERS = frozenset({
    Action.RELEASE, Action.REJECT, Action.REPLAY, Action.APPEAL, Action.DECLASSIFY, Action.PROMOTE, Action.WITHDRAW,
    Action.REVOKE, Action.RENEW, Action.REOPEN, Action.NOTE,
})  # fmt: skip
"""Commands whose target is an event id; that of ``protect`` is a key, and might be worded like one."""
REOPENED = "reopening.reopened"
OF_A_SESSION = frozenset({"revocation.session", "revocation.unknown_session"})
"""Findings that say that a revocation's target was a session all the same."""


class RecordRole(StrEnum):
    """What one record about an event id is, by the reason its verdict names."""

    DECIDED = "decided"
    REPLAYED = "replayed"
    OTHER_CONTENT = "other_content"
    AGAIN = "decided_again"
    ORDER = "order"
    LOOK_BACK = "look_back"
    USED = "renewed_by_use"


GOVERNING = (RecordRole.DECIDED, RecordRole.AGAIN)
"""What says where the entry is, together with the orders that were carried out, look back, and use."""
ABOUT_IT = (RecordRole.ORDER, RecordRole.LOOK_BACK, RecordRole.USED)
"""What is no appearance of the id itself."""


class EntryStanding(StrEnum):
    """Where an entry is now, as far as the audit tells."""

    GUIDANCE = "guidance"
    EXTERNAL = "external"
    HELD = "held"
    REFUSED = "refused"
    REPLACED = "replaced"
    WITHDRAWN = "withdrawn"
    EXPIRED = "expired"
    LAPSED = "lapsed"
    RECORDED = "recorded"


@dataclass(slots=True)
class Attempt:
    """One appearance of the id at the gate, or one order about it, or a recall whose look back took it out or by
    which it holds longer: an intake offset, its verdict, its audit record.

    ``about`` is the digest of the content that the verdict is about. ``redelivered`` counts the same bytes again,
    ``contradictions`` other bytes for the same intake offset, which must not happen. ``audit_ms`` is when the broker
    appended the (first) audit record, Unix ms.
    """

    kind: RecordRole
    verdict: Verdict
    about: str
    digest: str
    audit_partition: int
    audit_offset: int
    audit_ms: int
    redelivered: int = 0
    contradictions: int = 0

    @property
    def intake(self) -> tuple[str, int, int]:
        """Topic, partition and offset of the intake record."""
        return self.verdict.intake

    @property
    def places(self) -> bool:
        """Whether its verdict says where the entry is from then on: a decision, or an order that was carried out."""
        if self.kind is RecordRole.ORDER:
            return moves(self.verdict)
        return self.kind in (*GOVERNING, RecordRole.LOOK_BACK, RecordRole.USED)


@dataclass(frozen=True, slots=True)
class Placed:
    """What the verdict that placed an entry last says of its place. ``by`` is the recall whose look back took it out.

    ``withdraws`` is whether the verdict took something out of the store, ``kept`` whether it left a rejected write
    where a replay may still let it in, until ``held_until_ms``.
    """

    decision: Decision
    action: str
    object_id: str | None
    zone: Zone | None
    visibility: Visibility | None
    tier: Tier
    taint: bool
    expires_ms: int | None
    held_until_ms: int | None
    sealed_offset: int
    decided_ms: int
    withdraws: bool
    by: str = ""
    kept: bool = False

    @classmethod
    def of(cls, verdict: Verdict) -> "Placed":
        """Return what a verdict says."""
        again = Decision.REJECT if from_refused(verdict) else Decision.QUARANTINE  # as before it was rejected
        return cls(
            decision=again if reopened(verdict) else verdict.decision,
            action=verdict.action,
            object_id=verdict.object_id,
            zone=verdict.zone,
            visibility=verdict.visibility,
            tier=verdict.tier,
            taint=verdict.taint,
            expires_ms=verdict.expires_ms,
            held_until_ms=verdict.held_until_ms,
            sealed_offset=verdict.sealed_offset,
            decided_ms=verdict.decided_ms,
            withdraws=bool(verdict.withdraws),
            kept=_refused_and_kept(verdict),
        )

    def replayable(self, now_ms: int) -> bool:
        """Whether it was rejected, and a replay may still let it in (Unix ms)."""
        return self.kept and self.held_until_ms is not None and now_ms < self.held_until_ms

    def standing(self, now_ms: int, *, replaced: bool) -> EntryStanding:
        """Return where the entry is now (Unix ms)."""
        if self.object_id is not None:
            if replaced:
                return EntryStanding.REPLACED
            if self.expires_ms is not None and self.expires_ms <= now_ms:
                return EntryStanding.EXPIRED
            return EntryStanding.GUIDANCE if self.zone is Zone.GUIDANCE else EntryStanding.EXTERNAL
        if self.withdraws and self.action:
            return EntryStanding.WITHDRAWN
        if self.decision is Decision.QUARANTINE:
            until_ms = self.held_until_ms
            return EntryStanding.LAPSED if until_ms is not None and until_ms <= now_ms else EntryStanding.HELD
        if self.decision in (Decision.REJECT, Decision.DUPLICATE) or self.action == Action.REJECT:
            kept_to_ms = self.held_until_ms if self.kept else None
            return EntryStanding.LAPSED if kept_to_ms is not None and kept_to_ms <= now_ms else EntryStanding.REFUSED
        return EntryStanding.RECORDED


def _refused_and_kept(verdict: Verdict) -> bool:
    rejects = verdict.decision is Decision.REJECT or reopened(verdict)
    if not rejects or verdict.object_id is not None:
        return False
    return from_refused(verdict) if verdict.action else verdict.held_until_ms is not None


def moves(verdict: Verdict) -> bool:
    """Whether the verdict on a command, or on a recall, says where the entry that it names is from then on."""
    if renews(verdict):
        return True
    if verdict.action == Action.REPLAY:
        return replayed(verdict)
    if verdict.decision in (Decision.REJECT, Decision.DUPLICATE):
        return False
    places = verdict.object_id is not None or bool(verdict.withdraws)
    return verdict.action in (Action.REJECT, Action.REOPEN) or (verdict.action in ORDERS and places)


def target_of(verdict: Verdict) -> str | None:
    """Return the event id that a command is about, or that a recall renews; None where it is about something else."""
    if renews(verdict):
        return verdict.target
    of_a_session = any(finding.code in OF_A_SESSION for finding in verdict.findings)
    return verdict.target if verdict.action in ORDERS and not of_a_session else None


def taken_back(verdict: Verdict) -> tuple[Withdrawal, ...]:
    """Return what a recall's look back took out of the store; empty for any other verdict."""
    return verdict.withdraws if verdict.type == EventType.RECALL else ()


def renews(verdict: Verdict) -> bool:
    """Whether a recall lets an entry that it was given hold longer: its verdict's ``target``, whose place it has."""
    return verdict.type == EventType.RECALL and verdict.object_id is not None


def replayed(verdict: Verdict) -> bool:
    """Whether a replay's verdict is the entry's new one, whatever it decided; a refused or dry one decides nothing."""
    return verdict.has("replay.decided")


def reopened(verdict: Verdict) -> bool:
    """Whether a command took a rejection back: the entry waits again, for what held or refused it before."""
    return verdict.has(REOPENED)


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
    counts: Counter[RecordRole] = field(default_factory=Counter)
    replaced: Successor | None = None

    @property
    def governing(self) -> Attempt:
        """The attempt whose verdict the gate stands by: the latest that was not merely a repetition."""
        kept = [one for one in self.attempts if one.kind not in ABOUT_IT] or self.attempts
        return next((one for one in reversed(kept) if one.kind in GOVERNING), kept[0])

    @property
    def placing(self) -> Attempt:
        """The decision, or the order carried out or the look back since, that says where the entry is.

        An order is bound to a content: one about another content under the same id moves this entry nowhere, nor does
        one about another held write of the same content.
        """
        return self._placing(RecordRole)

    @property
    def lay(self) -> Attempt:
        """What said where the entry lay before look back took it out; where none did, as ``placing``."""
        return self._placing(set(RecordRole) - {RecordRole.LOOK_BACK})

    def _placing(self, kinds: Iterable[RecordRole]) -> Attempt:
        governing, counted = self.governing, set(kinds)
        offsets = (None, governing.verdict.offset)
        same = [
            one for one in self.attempts
            if one.about == governing.about and one.verdict.target_offset in offsets and one.kind in counted
        ]  # fmt: skip
        return next((one for one in reversed(same) if one.places), governing)

    @property
    def placed(self) -> Placed:
        """What the verdict that placed it last says of its place."""
        placed = Placed.of(self.placing.verdict)
        if self.placing is self.governing and renews(self.placing.verdict):  # what it places is another's
            placed = replace(placed, object_id=None, zone=None, visibility=None, expires_ms=None)
        if placed.held_until_ms is None:  # a replay that held it again gave it no more time
            placed = replace(placed, held_until_ms=self.governing.verdict.held_until_ms)
        return placed

    def standing(self, now_ms: int) -> EntryStanding:
        """Return where the entry is now (Unix ms)."""
        if self.placing.kind is RecordRole.LOOK_BACK:
            return EntryStanding.WITHDRAWN
        return self.placed.standing(now_ms, replaced=self.replaced is not None)

    @property
    def because(self) -> tuple[str, ...]:
        """The codes of the verdict that the entry stands by now; none where a command or look back placed it.

        A replay that did not land it is such a verdict: it is held or refused for what that found.
        """
        placing = self.placing
        if placing is self.governing:
            return placing.verdict.reasons
        if reopened(placing.verdict):
            return next(tuple(one.detail["codes"]) for one in placing.verdict.findings if one.code == REOPENED)
        again = placing.verdict.action == Action.REPLAY and placing.verdict.object_id is None
        return stands_for(placing.verdict) if again else ()

    def landed_anyway(self) -> bool:
        """Whether shadow mode landed what would have been held or refused."""
        verdict = self.placing.verdict
        return verdict.object_id is not None and verdict.decision in (Decision.QUARANTINE, Decision.REJECT)

    def as_data(self, now_ms: int) -> dict[str, Any]:
        """Return the life as JSON values, the verdicts as they were signed."""
        later = self.replaced
        return {
            "tenant": self.tenant,
            "event_id": self.event_id,
            "now": self.standing(now_ms).value,
            "replayable": self.placed.replayable(now_ms),
            "landed_in_shadow_mode": self.landed_anyway(),
            "replaced_by": None if later is None else {"event_id": later.event_id, "version": later.version},
            "counts": {kind.value: self.counts[kind] for kind in RecordRole},
            "attempts": [
                {
                    "kind": one.kind.value,
                    "audit": {"partition": one.audit_partition, "offset": one.audit_offset, "append_ms": one.audit_ms},
                    "redelivered": one.redelivered,
                    "contradictions": one.contradictions,
                    "verdict": one.verdict.to_json(),
                }
                for one in self.attempts
            ],
        }


def ancestors_of(life: Life) -> set[str]:
    """Return the ids of the events that tainted an entry (at most as many as a verdict names)."""
    causes = (cause.partition(":") for cause in life.governing.verdict.taint_causes)
    return {ancestor for kind, _, ancestor in causes if kind != "session" and ancestor}
