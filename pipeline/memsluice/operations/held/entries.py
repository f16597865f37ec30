"""Held writes and what became of them, read from their records. Pure: every record is verified, none is fetched."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import held_from_bytes
from memsluice.envelope.seals import sealed_from_bytes
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.errors import SealError
from memsluice.events.models import Action, Tier, Write
from memsluice.events.records import Record
from memsluice.operations.trace.verdicts import verified
from memsluice.operations.verdict_words import NOTED, between_words, from_refused, stands_for

PREVIEW_CHARS = 120
DAY_MS = 86_400_000
REVIEWS = frozenset({
    Action.RELEASE.value, Action.REJECT.value, Action.REPLAY.value, Action.APPEAL.value, Action.DECLASSIFY.value,
    Action.REVOKE.value, Action.DISMISS.value, Action.REOPEN.value, Action.NOTE.value,
})  # fmt: skip
DISMISSED = "dismissal.noted"
RECALIBRATED = "replay.recalibrated"
RESTORED = "restoring.restored"
CARRIED_OUT = {"review.released", "review.rejected", "review.appealed", "replay.decided", DISMISSED, RESTORED}
REOPENED = "reopening.reopened"
LABELS = {"declassification.lifted": "declassified", "revocation.held": "revoked"}
"""Findings by which a command changed a held write's label, and what that came to."""
DRY = "replay.dry_run"
"""Codes of the findings by which the gate says that it did what was ordered, or would have."""


class HeldState(StrEnum):
    """What became of a held write. ``lapsed`` is older than the policy keeps it: nobody can release it any more.

    ``refused`` was rejected by *screen* and kept: a replay under a later policy may let it in or hold it.
    """

    PENDING = "pending"
    REFUSED = "refused"
    RELEASED = "released"
    REJECTED = "rejected"
    LAPSED = "lapsed"


class CommandOutcome(StrEnum):
    """What a command came to, a producer's appeal among them.

    ``held`` is a replay's that decided to hold; ``refused again`` one's that left a refused write refused; ``dry``
    one's that changed nothing. ``declassified`` and ``revoked`` changed its label and left it held. ``reopened`` took a
    rejection back: it waits again. ``noted`` decided nothing. ``dismissed`` is a dead letter's, which is no write.
    """

    RELEASED = "released"
    REJECTED = "rejected"
    HELD = "held"
    REFUSED_AGAIN = "refused again"
    DRY = "dry"
    APPEALED = "appealed"
    DISMISSED = "dismissed"
    DECLASSIFIED = "declassified"
    REVOKED = "revoked"
    REOPENED = "reopened"
    NOTED = "noted"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class HeldVerdict:
    """What a list needs of the verdict that held or refused a write: tens of thousands of them are in memory at once.

    ``score`` is MEMSAD's anomaly score, ``evidence`` what the default detector holds it by; None where it does not.
    ``repeated_id`` says that its event id was used before: such an entry is named by id and intake offset. ``refused``
    says that it was not held but rejected, and is kept.
    """

    decided_ms: int
    content_digest: str
    reasons: tuple[str, ...]
    channel: str
    agent: str
    principal: str
    session: str
    kid: str
    policy: str
    tier: Tier
    taint: bool
    held_until_ms: int | None
    score: float | None
    evidence: float | None
    repeated_id: bool
    refused: bool = False

    @property
    def decision(self) -> Decision:
        """What was decided: quarantine, or reject."""
        return Decision.REJECT if self.refused else Decision.QUARANTINE

    @classmethod
    def of(cls, verdict: Verdict) -> "HeldVerdict":
        """Return what is kept of a verdict."""
        return cls(
            decided_ms=verdict.decided_ms,
            content_digest=verdict.content_digest,
            reasons=verdict.reasons,
            channel=verdict.channel,
            agent=verdict.agent,
            principal=verdict.principal,
            session=verdict.session,
            kid=verdict.kid,
            policy=verdict.policy,
            tier=verdict.tier,
            taint=verdict.taint,
            held_until_ms=verdict.held_until_ms,
            score=None if verdict.score is None else verdict.score.score,
            evidence=_evidence(verdict),
            repeated_id=verdict.has("duplicates.other_content"),
            refused=verdict.decision is Decision.REJECT,
        )


@dataclass(frozen=True, slots=True)
class HeldWrite:
    """One held write. ``offset`` is its intake offset, ``record_offset`` that of its quarantine record.

    ``write``, ``verdict``, ``sealed`` (the sealed write as JSON text, which a release carries) and ``vector_text`` (its
    embedding, base64; "" where it has none) are None and "" in a list, where ``preview`` alone is kept, at most
    PREVIEW_CHARS characters of the content.
    """

    tenant: str
    event_id: str
    partition: int
    offset: int
    record_offset: int
    held: HeldVerdict
    preview: str
    write: Write | None = None
    verdict: Verdict | None = None
    sealed: str = ""
    vector_text: str = ""

    @property
    def name(self) -> tuple[str, str, int]:
        """What tells it from every other: tenant, event id and intake offset."""
        return self.tenant, self.event_id, self.offset

    @property
    def held_ms(self) -> int:
        """When it was held (Unix ms)."""
        return self.held.decided_ms

    @property
    def digest(self) -> str:
        """Digest of the content, to which commands are bound."""
        return self.held.content_digest

    @property
    def reasons(self) -> tuple[str, ...]:
        """Reason codes, as the verdict has them."""
        return self.held.reasons

    @property
    def score(self) -> float | None:
        """MEMSAD's anomaly score, or None where nothing was scored."""
        return self.held.score

    @property
    def evidence(self) -> float | None:
        """What the default detector holds it by, or None where it does not hold it."""
        return self.held.evidence

    @property
    def repeated_id(self) -> bool:
        """Whether its event id was used before: such an entry is named by id and intake offset."""
        return self.held.repeated_id


ANEW = frozenset({
    CommandOutcome.HELD, CommandOutcome.REFUSED_AGAIN, CommandOutcome.DECLASSIFIED, CommandOutcome.REVOKED,
    CommandOutcome.REOPENED,
})  # fmt: skip
"""What decides a write anew and leaves it waiting: whoever looked at it before looks again (``review.stale``)."""


@dataclass(frozen=True, slots=True)
class Ruled:
    """What the audit says of one command about a held write, or a dead letter.

    ``decision`` is the write's: of a refused command, an appeal and a note None, of a dry run what would have been
    decided, of a reopening what it waits by again.
    ``note`` is why a dead letter was dismissed, or the text of a note; ``assignee``, ``claimed_by`` and
    ``claim_until_ms`` (Unix ms) are as a note left them ("" and 0 for nobody). ``offset`` is the intake offset of the
    write that the command named; None where the gate knew none by then, or the verdict is older than the field: then
    its digest tells. ``changes`` is what a replay says of the rules that find nothing any more, though no policy
    changed: it then lets nothing in. ``holds_for`` are the codes for which a write is held or refused after it,
    ``evidence`` as in HeldVerdict. ``between`` says of a command that came too late who came first, in words.
    """

    outcome: CommandOutcome
    tenant: str
    target: str
    digest: str
    action: str
    command_id: str
    decision: Decision | None
    reasons: tuple[str, ...]
    score: float | None
    policy: str
    kid: str
    at_ms: int
    object_id: str | None
    note: str = ""
    offset: int | None = None
    changes: tuple[Mapping[str, Any], ...] = ()
    holds_for: tuple[str, ...] = ()
    evidence: float | None = None
    assignee: str = ""
    claimed_by: str = ""
    claim_until_ms: int = 0
    between: str = ""

    def about(self, entry: HeldWrite) -> bool:
        """Whether the command was about an entry, and not about another one of its event id."""
        if self.offset is not None:
            return self.offset == entry.offset
        return self.digest in ("", entry.digest)

    @property
    def closes(self) -> bool:
        """Whether the write is decided by it for good."""
        return self.outcome in (CommandOutcome.RELEASED, CommandOutcome.REJECTED)


@dataclass(frozen=True, slots=True)
class HeldNow:
    """What the verdict says by which an entry is held or refused now: the first one, or that of the last replay."""

    decision: Decision
    reasons: tuple[str, ...]
    score: float | None
    evidence: float | None
    policy: str

    @classmethod
    def of(cls, entry: HeldWrite, others: Iterable[Ruled]) -> "HeldNow":
        """Return it, given the commands about the entry that did not close it, oldest first."""
        now = cls(entry.held.decision, entry.reasons, entry.score, entry.evidence, entry.held.policy)
        for one in others:
            if one.decision is not None and one.outcome in (CommandOutcome.HELD, CommandOutcome.REFUSED_AGAIN):
                now = cls(one.decision, one.holds_for, one.score, one.evidence, one.policy)
            elif one.decision is not None and one.outcome is CommandOutcome.REOPENED:
                now = replace(now, decision=one.decision)
        return now


def read_entry(keyring: Keyring, record: Record, *, whole: bool) -> HeldWrite:
    """Return the held write of a record of memory.quarantine.v1, with its content where ``whole``. Raises SealError."""
    tenant = (record.key or b"").decode(errors="replace")
    value, verdict = held_from_bytes(keyring, tenant, record.value or b"")
    sealed = sealed_from_bytes(keyring, tenant, value)
    write = sealed.payload
    if not isinstance(write, Write):
        raise SealError("held record holds no write")
    return HeldWrite(
        tenant=tenant,
        event_id=write.id,
        partition=record.partition,
        offset=sealed.position.offset,
        record_offset=record.offset,
        held=HeldVerdict.of(verdict),
        preview=write.content[:PREVIEW_CHARS],
        write=write if whole else None,
        verdict=verdict if whole else None,
        sealed=value.decode() if whole else "",
        vector_text=(sealed.vector_text or "") if whole else "",
    )


def read_ruling(keyring: Keyring, record: Record) -> Ruled | None:
    """Return what an audit record says of a command of REVIEWS; None for any other verdict. Raises SealError."""
    return ruling_of(verified(keyring, record))


def ruling_of(verdict: Verdict) -> Ruled | None:
    """Return what a verdict says of a command of REVIEWS; None for any other verdict. Raises SealError."""
    if verdict.action not in REVIEWS or verdict.decision is Decision.DUPLICATE:
        return None
    try:
        outcome, decision = _outcome(verdict)
        changes = next((one.detail["changes"] for one in verdict.findings if one.code == RECALIBRATED), ())
        note = next((str(one.detail["why"]) for one in verdict.findings if one.code == DISMISSED), "")
        desk = next((one.detail for one in verdict.findings if one.code == NOTED), {})
    except (KeyError, ValueError) as error:
        raise SealError(f"verdict is not of this version ({type(error).__name__})") from None
    return Ruled(
        outcome=outcome,
        tenant=verdict.tenant,
        target=verdict.target,
        digest=verdict.content_digest,
        action=verdict.action,
        command_id=verdict.event_id,
        decision=decision,
        reasons=verdict.reasons,
        score=None if verdict.score is None else verdict.score.score,
        policy=verdict.policy,
        kid=verdict.kid,
        holds_for=stands_for(verdict),
        evidence=_evidence(verdict),
        at_ms=verdict.decided_ms,
        object_id=verdict.object_id,
        note=str(desk.get("note", note)),
        assignee=str(desk.get("assignee", "")),
        claimed_by=str(desk.get("claimed_by", "")),
        claim_until_ms=int(desk.get("claim_until_ms", 0)),
        between=between_words(verdict),
        offset=verdict.target_offset,
        changes=tuple(changes),
    )


def _outcome(verdict: Verdict) -> tuple[CommandOutcome, Decision | None]:
    """Return what a command came to, and the decision about the write. Raises KeyError, ValueError."""
    told = {finding.code: finding.detail for finding in verdict.findings}
    if DRY in told:
        return CommandOutcome.DRY, Decision(told[DRY]["would"])
    labelled = next((LABELS[code] for code in told if code in LABELS), None)
    if labelled is not None:
        return CommandOutcome(labelled), None
    if REOPENED in told:
        return CommandOutcome.REOPENED, Decision.REJECT if from_refused(verdict) else Decision.QUARANTINE
    if NOTED in told:
        return CommandOutcome.NOTED, None
    if not told.keys() & CARRIED_OUT:
        return CommandOutcome.REFUSED, None
    if verdict.action == Action.APPEAL.value:
        return CommandOutcome.APPEALED, None
    if verdict.action == Action.DISMISS.value:
        return CommandOutcome.DISMISSED, None
    decision = verdict.decision
    if verdict.action == Action.REJECT.value:
        return CommandOutcome.REJECTED, Decision.REJECT
    if verdict.object_id is not None:
        return CommandOutcome.RELEASED, decision
    if decision is Decision.REJECT and from_refused(verdict):
        return CommandOutcome.REFUSED_AGAIN, decision
    return (CommandOutcome.REJECTED if decision is Decision.REJECT else CommandOutcome.HELD), decision


def _evidence(verdict: Verdict) -> float | None:
    """Return what the default detector holds a write by; None where it does not."""
    return verdict.usual.score if verdict.usual is not None and "detect.held" in verdict.reasons else None


def closing(about: Iterable[Ruled]) -> Ruled | None:
    """Return the command that decided an entry for good, of those about it, oldest first; None where it waits.

    The first one counts, unless a reopening took it back.
    """
    closed: Ruled | None = None
    for one in about:
        if one.outcome is CommandOutcome.REOPENED:
            closed = None
        elif one.closes and closed is None:
            closed = one
    return closed


def stands_by(entry: HeldWrite, ruled: Ruled | None, others: Iterable[Ruled]) -> str:
    """Return the id of the event by which an entry stands: of the command that closed it, or of the last that decided
    it anew, or its own. A decision names it as ``parameters.decided_on``."""
    if ruled is not None:
        return ruled.command_id
    return next((one.command_id for one in reversed(tuple(others)) if one.outcome in ANEW), entry.event_id)


def lapses_ms(entry: HeldWrite, age_days: int) -> int:
    """Return when an entry lapses (Unix ms): as the policy that held it said, else after ``age_days``."""
    return entry.held.held_until_ms or entry.held_ms + age_days * DAY_MS


def state_of(
    entry: HeldWrite, ruled: Ruled | None, now_ms: int, age_days: int, others: Iterable[Ruled] = ()
) -> HeldState:
    """Return what became of an entry, given the command that closed it, if one did, and the others about it.

    It lapses when the policy that held it said; ``age_days`` stands in where a verdict is too old to tell.
    """
    if ruled is not None:
        return HeldState.RELEASED if ruled.outcome is CommandOutcome.RELEASED else HeldState.REJECTED
    until_ms = lapses_ms(entry, age_days)
    if now_ms >= until_ms:
        return HeldState.LAPSED
    refused = entry.held.refused
    for one in others:
        if one.outcome in (CommandOutcome.HELD, CommandOutcome.REOPENED):
            refused = one.decision is Decision.REJECT
    return HeldState.REFUSED if refused else HeldState.PENDING
