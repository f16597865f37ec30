"""One decision: runs every check, records every finding, and takes the strongest. Pure: see the package's docstring."""

from dataclasses import dataclass, field
from typing import Any

from memsluice.envelope.codec import Vector
from memsluice.envelope.seals import Sealed
from memsluice.events.ids import object_id, scope_owner
from memsluice.events.models import Command, Kind, Observation, Origin, Recall, Visibility, Write, Zone
from memsluice.gate import (
    commands,
    duplicates,
    holding,
    instructions,
    limits,
    memsad_state,
    monitor,
    rates,
    sessions,
    ttl,
)
from memsluice.gate.memsad_state import MemsadState
from memsluice.gate.policy import DAY_MS, Policy
from memsluice.gate.rows import Getter, TenantRows
from memsluice.gate.verdict import SEVERITY, Decision, Finding, Score, Verdict

FOUND_MAX = 8
FIRM = ("monitor.rule_3_immutable", "limits.content_bytes", "duplicates.other_content")
"""Findings that hold in shadow mode too: what they stop would take the place of an entry, or is too large for one."""


@dataclass(frozen=True, slots=True)
class TenantState:
    """What earlier events of a tenant left: its rows, and MEMSAD's part of them decoded into matrices."""

    rows: Getter
    memsad: MemsadState


@dataclass(frozen=True, slots=True)
class Context:
    """The clock (Unix ms: the broker's append time), the sealed record's offset, and the keys that will sign."""

    now_ms: int
    sealed_offset: int
    seal_kid: str = ""
    admission_kid: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A verdict, the same as JSON values, the rows it changes by (kind, id), and MEMSAD's next state."""

    verdict: Verdict
    record: dict[str, Any]
    changes: dict[tuple[str, str], Any]
    memsad: MemsadState


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a write lands: nothing of it is set where it does not."""

    object_id: str | None = None
    zone: Zone | None = None
    visibility: Visibility | None = None
    expires_ms: int | None = None


@dataclass(slots=True)
class _Draft:
    findings: list[Finding] = field(default_factory=list)
    score: Score | None = None
    tau: monitor.Label | None = None
    memsad: MemsadState | None = None
    vector: Vector | None = None

    def decision(self) -> Decision:
        return max((f.decision for f in self.findings), key=SEVERITY.index, default=Decision.ACCEPT)

    def add(self, *findings: Finding | None) -> None:
        self.findings += [finding for finding in findings if finding is not None]


def decide(state: TenantState, sealed: Sealed, policy: Policy, context: Context) -> Outcome:
    """Decide one authenticated event.

    Nothing is changed in ``state``; applying ``changes`` and ``memsad`` gives the state after the event.
    """
    rows = TenantRows(state.rows, sealed.tenant, context.now_ms)
    draft = _Draft(memsad=state.memsad, vector=sealed.vector())
    repeated = duplicates.check(rows, sealed)
    if repeated is not None and repeated.decision is Decision.DUPLICATE:
        draft.add(repeated)
        return _finish(rows, sealed, policy, context, draft, Decision.DUPLICATE)
    draft.add(repeated)
    payload = sealed.payload
    if isinstance(payload, Write):
        decision = _write(rows, sealed, payload, policy, context, draft)
    elif isinstance(payload, Command):
        if repeated is None:  # another command under a known id is refused, and so not carried out
            draft.add(commands.decide(rows, sealed, payload, context.now_ms))
        decision = Decision.REJECT if draft.findings else Decision.RECORD
    else:
        decision = _seen(rows, sealed, policy, context, draft)
    return _finish(rows, sealed, policy, context, draft, decision)


def _seen(rows: TenantRows, sealed: Sealed, policy: Policy, context: Context, draft: _Draft) -> Decision:
    """Recalls and observations: they are recorded, taint their session, and a recall joins MEMSAD's history."""
    session, mismatch = sessions.enter(rows, sealed, policy, context.now_ms)
    draft.add(mismatch)  # what was seen still taints the session it names: fail closed
    payload = sealed.payload
    if sealed.problem:
        draft.add(Finding(f"authenticity.{sealed.problem}", Decision.REJECT))
        if not (isinstance(payload, Observation) and payload.origin is Origin.OPEN):
            sessions.unverified(rows, sealed, session, policy, context.now_ms)
    elif isinstance(payload, Observation):
        sessions.observe(rows, payload, session, policy, context.now_ms)
    elif isinstance(payload, Recall):
        sessions.recalled(rows, payload, session, policy, context.now_ms)
        if draft.vector is not None and not draft.findings and draft.memsad is not None:
            draft.memsad = draft.memsad.asked(rows, draft.vector)
    return Decision.REJECT if draft.findings else Decision.RECORD


def _write(rows: TenantRows, sealed: Sealed, write: Write, policy: Policy, context: Context, draft: _Draft) -> Decision:
    assert sealed.identity is not None
    session, mismatch = sessions.enter(rows, sealed, policy, context.now_ms)
    draft.add(mismatch)
    draft.tau = monitor.label(rows, write, sealed.identity, session)
    draft.add(*monitor.check_write(rows, write, sealed.identity, draft.tau, policy))
    draft.add(*limits.check(write, policy))
    if draft.decision() is not Decision.REJECT:  # what is refused for good is not worth screening
        _content(write, policy, draft)
        draft.add(rates.check(rows, write.principal, sealed.identity, policy, context.now_ms))
    if draft.decision() is Decision.QUARANTINE:
        draft.add(holding.check(rows, write.principal, policy, context.now_ms))
    decision = draft.decision()
    learns = decision is Decision.ACCEPT and sealed.identity.tier.trusted
    if learns and draft.vector is not None and draft.memsad is not None:
        draft.memsad = draft.memsad.learned(rows, draft.vector)
    return decision


def _content(write: Write, policy: Policy, draft: _Draft) -> None:
    """Screen what is written. What is contained anyway is data in its own zone: reported, not held, by default."""
    contained = draft.decision() is Decision.CONTAIN and not policy.instructions.hold_contained
    least = Decision.ACCEPT if contained else Decision.QUARANTINE
    if policy.instructions.enabled:
        matches = instructions.find(write.content)
        if matches:
            detail = {"patterns": sorted({match.name for match in matches})[:FOUND_MAX], "count": len(matches)}
            draft.add(Finding("instructions.found", least, detail))
        if write.kind is Kind.FACTS and len(write.content) > policy.instructions.facts_chars_max:
            longest = {"chars": len(write.content), "chars_max": policy.instructions.facts_chars_max}
            draft.add(Finding("instructions.long_fact", least, longest))
    if policy.memsad.enabled and draft.vector is not None and draft.memsad is not None:
        draft.score, finding = memsad_state.check(draft.memsad, draft.vector, policy.memsad, least)
        draft.add(finding)


def _finish(
    rows: TenantRows, sealed: Sealed, policy: Policy, context: Context, draft: _Draft, decision: Decision
) -> Outcome:
    payload, identity, position = sealed.payload, sealed.identity, sealed.position
    assert payload is not None
    assert identity is not None
    assert draft.memsad is not None
    tier = draft.tau.tier if draft.tau is not None else identity.tier
    place = _Place()
    if isinstance(payload, Write) and decision is not Decision.DUPLICATE:
        place = _placed(rows, sealed, payload, policy, context, draft, decision)
    verdict = Verdict(
        tenant=payload.tenant,
        event_id=payload.id,
        type=str(sealed.type),
        decision=decision,
        reasons=_reasons(draft.findings, decision),
        findings=tuple(draft.findings),
        decided_ms=context.now_ms,
        topic=position.topic,
        partition=position.partition,
        offset=position.offset,
        sealed_offset=context.sealed_offset,
        kid=identity.kid,
        role=identity.role.value,
        credential_tier=identity.tier,
        channel=identity.channel,
        tier=tier,
        taint=draft.tau is not None and draft.tau.taint,
        taint_causes=draft.tau.causes if draft.tau is not None else (),
        agent=getattr(payload, "agent", ""),
        principal=getattr(payload, "principal", ""),
        session=getattr(payload, "session", ""),
        policy=policy.digest,
        model=sealed.model,
        content_digest=sealed.content_digest,
        vector_digest=sealed.vector_digest,
        mode=policy.mode,
        score=draft.score,
        object_id=place.object_id,
        zone=place.zone,
        visibility=place.visibility,
        expires_ms=place.expires_ms,
        seal_kid=context.seal_kid,
        admission_kid=context.admission_kid,
        approvers=sealed.approvers,
        occurred_ms=round(payload.time.timestamp() * 1_000),
        append_ms=position.append_ms,
    )
    return Outcome(verdict, verdict.to_json(), rows.changes, draft.memsad)


def _reasons(findings: list[Finding], decision: Decision) -> tuple[str, ...]:
    """Return the codes that asked for this decision; where none asked for just this, of all that asked for any."""
    exact = tuple(f.code for f in findings if f.decision is decision and decision is not Decision.ACCEPT)
    return exact or tuple(f.code for f in findings if f.decision is not Decision.ACCEPT)


def _placed(
    rows: TenantRows,
    sealed: Sealed,
    write: Write,
    policy: Policy,
    context: Context,
    draft: _Draft,
    decision: Decision,
) -> _Place:
    """Say where a write lands, if it does, and keep its lineage for those that will name it as a parent."""
    assert draft.tau is not None
    tau, place = draft.tau, _Place()
    firm = any(f.code in FIRM for f in draft.findings)  # shadow mode, too, overwrites no protected key
    landed = decision in (Decision.ACCEPT, Decision.CONTAIN) or (policy.mode == "shadow" and not firm)
    if landed:
        zone = Zone.EXTERNAL if decision is Decision.CONTAIN else Zone.GUIDANCE
        visibility = monitor.effective_visibility(write, tau.tier)
        target = object_id(
            tenant=write.tenant,
            zone=zone,
            visibility=visibility,
            owner=scope_owner(visibility, write.principal, write.session),
            namespace=write.namespace,
            key=write.key,
            event_id=write.id,
        )
        place = _Place(str(target), zone, visibility, ttl.expires_ms(tau.tier, policy, context.now_ms))
    if rows.get(duplicates.ENTRY, write.id) is None:  # another content under a known id takes over no lineage
        lineage = {
            "tier": int(tau.tier),
            "taint": tau.taint or not tau.tier.trusted,
            "landed": landed,
            "decision": decision.value,
            "object": place.object_id,
            "version": context.sealed_offset,
            "topic": sealed.position.topic,
            "offset": sealed.position.offset,
            "digest": sealed.payload_digest,
            "causes": list(tau.causes),
            "x": place.expires_ms if landed else context.now_ms + policy.quarantine.age_days * DAY_MS,
        }
        rows.put(duplicates.ENTRY, write.id, lineage)
    return place
