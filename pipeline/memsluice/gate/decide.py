"""One decision: runs every check, records every finding, and takes the strongest. Pure: see the package's docstring."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from memsluice.envelope.codec import Vector
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding, Verdict
from memsluice.errors import MemsluiceError
from memsluice.events.models import Command, Observation, Origin, Recall, Visibility, Write
from memsluice.gate.checks import (
    authenticity,
    drift,
    duplicates,
    encoder,
    holding,
    limits,
    monitor,
    placing,
    rates,
    related,
    screening,
    sensitive,
    sessions,
)
from memsluice.gate.commands import dispatch, renewing, review
from memsluice.gate.commands.ruling import At, Carried
from memsluice.gate.decision import Draft, Screened, TenantState
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.policy.model import DAY_MS, Policy
from memsluice.gate.state import lineage
from memsluice.gate.state.kinds import ENCODER, ENTRY, SessionRow
from memsluice.gate.state.rows import TenantRows


class Context(Struct, frozen=True):
    """The clock (Unix ms: the broker's append time), the sealed record's offset, the keys that will sign, and the
    verdict's place in the tenant's chain: its number, and the digest of the verdict before it as it was sent."""

    now_ms: int
    sealed_offset: int
    seal_kid: str = ""
    admission_kid: str = ""
    chain_seq: int = 0
    chain_previous: str = ""


class Outcome(Struct, frozen=True):
    """A verdict, the rows it changes by (kind, id), and the detectors' next states."""

    verdict: Verdict
    changes: dict[tuple[str, str], Any]
    memsad: MemsadState
    memory: Memory | None = None


def decide(state: TenantState, sealed: Sealed, policy: Policy, context: Context, carried: Carried = None) -> Outcome:
    """Decide one authenticated event. ``carried`` is what a command brings along, opened and verified.

    Nothing is changed in ``state``; ``changes``, ``memsad`` and, unless it is None, ``memory`` give the state after it.
    An event on which screening itself fails is decided without: a write is held, a command refused, a recall teaches no
    detector.
    Raises what of the state cannot be read, and what fails without screening, too.
    """
    try:
        return _decided(state, sealed, policy, context, carried)
    except (MemsluiceError, MemoryError):
        raise  # not by what the event says: its partition stands still
    except Exception as error:
        return _decided(state, sealed, policy, context, carried, failed=type(error).__name__)


def _decided(
    state: TenantState, sealed: Sealed, policy: Policy, context: Context, carried: Carried, failed: str = ""
) -> Outcome:
    rows = TenantRows(state.rows, sealed.tenant, context.now_ms)
    repeated, vector = duplicates.check(rows, sealed), sealed.vector()
    delivered = repeated is not None and repeated.decision is Decision.DUPLICATE
    state, changed = (state, None) if delivered else _comparable(state, rows, sealed, vector)
    draft = Draft.begun(state, policy, vector, sealed)
    draft.add(changed)
    if repeated is not None and repeated.decision is Decision.DUPLICATE:
        if not sealed.problem:
            draft.add(repeated)
            return _finish(sealed, context, draft, Decision.DUPLICATE, rows)
        repeated = None  # what could not be read of it is not in what was compared: it taints all the same
    draft.add(repeated)
    payload = sealed.payload
    if isinstance(payload, Write):
        decision = _write(rows, sealed, payload, context, draft, failed)
        _place(rows, sealed, payload, context, draft, decision)
    elif isinstance(payload, Command):
        if failed:
            draft.add(screening.failed(failed, Decision.REJECT))
        refuse = repeated is not None or bool(failed)
        decision = Decision.REJECT if refuse else _command(rows, sealed, carried, context, draft, state)
    else:
        decision = _seen(rows, sealed, context, draft, failed, carried)
    return _finish(sealed, context, draft, decision, rows)


def _comparable(
    state: TenantState, rows: TenantRows, sealed: Sealed, vector: Vector | None
) -> tuple[TenantState, Finding | None]:
    """Return the state that an event's vector may be compared with: of another encoder's vectors nothing is left."""
    known = state.memsad.encoder
    after = encoder.entered(known, sealed, vector)
    if after is None:
        return state, None
    remembered = len(state.memsad.numbers) + len(state.memsad.reference)
    memory = state.memory
    if memory is not None:
        remembered += len(memory.questions) + len(memory.entries)
        memory = memory.anew(rows, after)
    rows.put(ENCODER, "0", after)
    fresh = replace(state, memsad=state.memsad.anew(rows, after), memory=memory)
    return fresh, encoder.changed(known, after, remembered=remembered)


def _command(
    rows: TenantRows, sealed: Sealed, carried: Carried, context: Context, draft: Draft, state: TenantState
) -> Decision:
    """Commands: a released write lands as if it were accepted now, and the detectors learn from it all the same."""
    at = At(context.now_ms, context.sealed_offset)
    assert isinstance(sealed.payload, Command)
    draft.target_offset = review.offset_of(rows, sealed.payload)
    ruling = dispatch.decide(rows, sealed, carried, draft.policy, at, state)
    draft.published.score, draft.withdraws, draft.tau = ruling.score, ruling.withdraws, ruling.tau
    if ruling.about is not None:  # it landed before, and was learned from then
        draft.place, draft.about = ruling.place, ruling.about
    if ruling.entry is not None:
        draft.place, draft.about = ruling.place, ruling.entry
        draft.vector, draft.default.seen = ruling.entry.vector(), ruling.seen
        if draft.vector is not None and ruling.seen is None:  # nobody screened it: it is weighed as it is learned
            draft.default.anomaly = draft.published.anomaly_of(draft.vector)
        draft.learn(rows, ruling.entry, ruling.decision)
        draft.add(draft.default.fed(), draft.published.fed())
    draft.add(sensitive.check(sealed, draft.policy))
    draft.add(*ruling.findings)  # last: what was done is the last thing that its verdict says
    return ruling.decision


def _seen(rows: TenantRows, sealed: Sealed, context: Context, draft: Draft, failed: str, carried: Carried) -> Decision:
    """Recalls and observations: they are recorded, taint their session, and a recall joins the detectors' history."""
    policy = draft.policy
    session, mismatch = sessions.enter(rows, sealed, policy, context.now_ms)
    draft.add(mismatch)  # what was seen still taints the session it names: fail closed
    payload = sealed.payload
    if sealed.problem:
        draft.add(authenticity.check(sealed))
        if not (isinstance(payload, Observation) and payload.origin is Origin.OPEN):
            sessions.unverified(rows, sealed, session, policy, context.now_ms)
    elif isinstance(payload, Observation):
        sessions.observe(rows, payload, sealed.sketch, session, policy, context.now_ms)
    elif isinstance(payload, Recall):
        if failed:
            draft.add(screening.failed(failed, Decision.ACCEPT))
        elif draft.vector is not None and not draft.findings:
            draft.asked(rows, payload, draft.vector, context.now_ms)
        # After look back: what just left taints the session that it was given to.
        sessions.recalled(rows, payload, session, policy, context.now_ms)
        draft.add(sessions.read(rows, payload), sessions.withheld(payload))
        if not failed and draft.decision() is Decision.ACCEPT:
            _used(rows, sealed, session, context, draft, carried)
    draft.add(sensitive.check(sealed, policy))
    return Decision.REJECT if draft.decision() is not Decision.ACCEPT else Decision.RECORD


def _used(
    rows: TenantRows, sealed: Sealed, session: SessionRow, context: Context, draft: Draft, carried: Carried
) -> None:
    """Renew what a recall carries of what it returned, where its use does; ``session`` is as the recall found it."""
    at, known = At(context.now_ms, context.sealed_offset), draft.published.state.encoder
    ruling = renewing.decide(rows, sealed, session, carried, draft.policy, at, known)
    if ruling is None:
        return
    draft.add(*ruling.findings)
    if ruling.about is not None:
        draft.place, draft.about, draft.tau = ruling.place, ruling.about, ruling.tau
        draft.target = ruling.about.event_id


def _write(rows: TenantRows, sealed: Sealed, write: Write, context: Context, draft: Draft, failed: str) -> Decision:
    assert sealed.identity is not None
    policy = draft.policy
    session, mismatch = sessions.enter(rows, sealed, policy, context.now_ms)
    draft.add(mismatch)
    draft.tau = monitor.label(rows, write, sealed.identity, session, policy, sealed.sketch)
    draft.add(*monitor.check_write(rows, write, sealed.identity, draft.tau, policy))
    draft.add(*limits.check(write, policy), sensitive.check(sealed, policy))
    if draft.decision() is not Decision.REJECT:  # what is refused for good is not worth screening
        if failed:
            draft.add(screening.failed(failed, Decision.QUARANTINE))
        else:
            _screen(rows, sealed, write, draft)
        draft.add(rates.check(rows, write.principal, sealed.identity, policy, context.now_ms))
    if draft.decision() is Decision.QUARANTINE:
        draft.add(holding.check(rows, write.principal, policy, context.now_ms))
    decision = draft.decision()
    draft.learn(rows, sealed, decision)
    return decision


def _screen(rows: TenantRows, sealed: Sealed, write: Write, draft: Draft) -> None:
    assert sealed.identity is not None
    draft.screen(write, Screened.of(sealed))
    draft.add(*related.look(rows, write, draft.policy))
    if draft.decision() is Decision.ACCEPT:
        draft.add(drift.check(rows, write.principal, sealed.identity, draft.default.reads, draft.policy.drift))
    draft.screened(rows, write)


def _finish(sealed: Sealed, context: Context, draft: Draft, decision: Decision, rows: TenantRows) -> Outcome:
    payload, identity, position, about, place = (
        sealed.payload,
        sealed.identity,
        sealed.position,
        draft.about,
        draft.place,
    )
    assert payload is not None
    assert identity is not None
    assert about is not None
    tier = draft.tau.tier if draft.tau is not None else identity.tier
    command = payload if isinstance(payload, Command) else None
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
        policy=draft.policy.digest,
        model=about.model,
        content_digest=about.content_digest or (command.digest or "" if command is not None else ""),
        vector_digest=about.vector_digest,
        mode=draft.policy.mode,
        score=draft.published.score,
        object_id=place.object_id,
        zone=place.zone,
        visibility=place.visibility,
        expires_ms=place.expires_ms,
        seal_kid=context.seal_kid,
        admission_kid=context.admission_kid,
        approvers=sealed.approvers,
        action=command.action.value if command is not None else "",
        target=command.target if command is not None else draft.target,
        occurred_ms=round(payload.time.timestamp() * 1_000),
        append_ms=position.append_ms,
        waited=sealed.waited is not None,
        parents=payload.parents if isinstance(payload, Write) else (),
        returned=_returned(payload) if isinstance(payload, Recall) else (),
        origin=payload.origin.value if isinstance(payload, Observation) else "",
        withdraws=draft.withdraws,
        chain_seq=context.chain_seq,
        chain_previous=context.chain_previous,
        held_until_ms=draft.held_until_ms,
        target_offset=draft.target_offset,
        usual=draft.default.usual,
    )
    return Outcome(verdict, rows.changes, draft.published.state, draft.default.memory)


def _returned(recall: Recall) -> tuple[str, ...]:
    return tuple(dict.fromkeys(returned.event_id for returned in recall.returned))


def _reasons(findings: list[Finding], decision: Decision) -> tuple[str, ...]:
    """Return the codes that asked for this decision; where none asked for just this, of all that asked for any."""
    exact = tuple(f.code for f in findings if f.decision is decision and decision is not Decision.ACCEPT)
    return exact or tuple(f.code for f in findings if f.decision is not Decision.ACCEPT)


def _foreign(write: Write, draft: Draft) -> bool:
    """Whether it would lie in the scope of a session that is another's: there it would take the place of an entry.

    Shadow mode lands nothing of the kind either.
    """
    mismatch = any(finding.code == sessions.MISMATCH for finding in draft.findings)
    return mismatch and write.visibility is Visibility.SESSION


def _place(rows: TenantRows, sealed: Sealed, write: Write, context: Context, draft: Draft, decision: Decision) -> None:
    """Say where a write lands, if it does, or that it is held or refused; and keep its lineage."""
    assert draft.tau is not None
    policy, now_ms = draft.policy, context.now_ms
    landed = draft.lands() and not _foreign(write, draft)
    if landed:
        draft.place = placing.place(write, draft.tau, draft.landing(), policy, now_ms)
    if rows.get(ENTRY, write.id) is None:  # another content under a known id takes over no lineage
        expires_ms = draft.place.expires_ms if landed else now_ms + policy.quarantine.age_days * DAY_MS
        lineage.keep_lineage(
            rows, sealed, draft.tau, decision, draft.place, context.sealed_offset, expires_ms, reads=draft.default.read
        )
    if landed:
        return
    if decision is Decision.QUARANTINE:
        draft.held_until_ms = review.hold(rows, sealed, draft.tau, draft.findings, draft.weighed(), policy, now_ms)
    elif decision is Decision.REJECT:
        _refused(rows, sealed, context, draft)


def _refused(rows: TenantRows, sealed: Sealed, context: Context, draft: Draft) -> None:
    """Keep what is rejected: a later policy may let it in. Not what took an id: the doubt about that never ends."""
    assert draft.tau is not None
    if any(finding.code.startswith("duplicates.") for finding in draft.findings):
        return
    against = holding.check_refused(rows, sealed, draft.policy, context.now_ms)
    draft.add(against)
    if against is None:
        draft.held_until_ms = review.hold(
            rows, sealed, draft.tau, draft.findings, draft.weighed(), draft.policy, context.now_ms, state="refused"
        )
