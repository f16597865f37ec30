"""Sessions: who runs in them, whether the platform opened them, and what they have seen (low-watermark taint).

A session is bound to agent and principal by its first event. Its taint is the maximum over everything it recalled or
observed and never falls; a session that no runtime credential opened counts as tainted, since what it saw is unknown.
"""

from collections import Counter

from msgspec.structs import replace

from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Observation, Origin, Recall, Returned, SessionPayload, Tier, Zone
from memsluice.gate.checks import influence
from memsluice.gate.policy.model import DAY_MS, Policy
from memsluice.gate.state.kinds import ENTRY, SESSION, Gone, Narrow, SessionRow
from memsluice.gate.state.lineage import CAUSES_MAX
from memsluice.gate.state.rows import LATE_MS, TenantRows

RETURNED, WITHHELD = "sessions.returned", "sessions.withheld"
MISMATCH = "sessions.mismatch"
ORIGIN_TIER = {
    Origin.WEB: Tier.EXTERNAL_WEB,
    Origin.UPLOAD: Tier.EXTERNAL_WEB,
    Origin.TOOL: Tier.EXTERNAL_TOOL,
    Origin.SKILL: Tier.EXTERNAL_TOOL,
}


def load(rows: TenantRows, session: str) -> SessionRow | None:
    """Return a session, or None where none is known."""
    row = rows.get(SESSION, session)
    if row is None or row.narrow is not None:
        return row
    return replace(row, narrow=row.narrower)


def _save(rows: TenantRows, name: str, session: SessionRow, policy: Policy, now_ms: int) -> None:
    expires_ms = now_ms + policy.session_retention_days * DAY_MS
    rows.put(SESSION, name, replace(session, narrow=session.narrower, expires_ms=expires_ms))


def tainted(session: SessionRow, cause: str, tier: Tier) -> SessionRow:
    """Return the session with one more cause of taint; beyond CAUSES_MAX the first ones are kept, the taint stays."""
    narrow = session.narrower
    turn, turn_worst = _with(narrow.turn, cause), max(narrow.turn_worst, int(tier))
    return replace(
        session,
        taint=True,
        worst=max(session.worst, int(tier)),
        causes=_with(session.causes, cause),
        narrow=replace(narrow, turn=turn, turn_worst=turn_worst, hard=True),
    )


def _with(causes: tuple[str, ...], cause: str) -> tuple[str, ...]:
    return causes if cause in causes or len(causes) >= CAUSES_MAX else (*causes, cause)


def enter(rows: TenantRows, sealed: Sealed, policy: Policy, now_ms: int) -> tuple[SessionRow, Finding | None]:
    """Bind the event's session, or find that agent or principal are not those it was bound to.

    Only the platform binds for good: a session that somebody used before it was opened is bound anew by its opening
    (whoever squats a session id keeps nobody out), and what it saw before stays with it.
    """
    payload = sealed.payload
    assert isinstance(payload, SessionPayload)
    assert sealed.identity is not None
    known = load(rows, payload.session)
    opening = sealed.identity.role is Role.RUNTIME and not sealed.problem
    if known is not None and opening and not known.opened:
        known_as = replace(known, agent=payload.agent, principal=payload.principal, opened=True)
        _save(rows, payload.session, known_as, policy, now_ms)
        return known_as, None
    if known is not None and (known.agent != payload.agent or known.principal != payload.principal):
        field = "agent" if known.agent != payload.agent else "principal"
        return known, Finding(MISMATCH, Decision.QUARANTINE, {"field": field})
    session = known or SessionRow(agent=payload.agent, principal=payload.principal, opened=opening, narrow=Narrow())
    retention_ms = policy.session_retention_days * DAY_MS
    used_up = session.expires_ms - now_ms < retention_ms - min(DAY_MS, retention_ms // 2)
    if known is None or used_up:  # kept alive by use, written at most twice a day for it
        _save(rows, payload.session, session, policy, now_ms)
    return session, None


def unverified(rows: TenantRows, sealed: Sealed, session: SessionRow, policy: Policy, now_ms: int) -> SessionRow:
    """Return and keep the session after a recall or observation that was refused: it saw something unknown."""
    payload = sealed.payload
    assert isinstance(payload, SessionPayload)
    after = tainted(session, f"unverified:{payload.id}", Tier.EXTERNAL_WEB)
    if after != session:
        _save(rows, payload.session, after, policy, now_ms)
    return after


def observe(
    rows: TenantRows, observation: Observation, sketch: str, session: SessionRow, policy: Policy, now_ms: int
) -> SessionRow:
    """Return and keep the session after an observation: outside content taints it, its mere opening does not.

    Opening it once more begins a new turn, which counts under a policy that asks for it alone.
    """
    if observation.origin is Origin.OPEN:
        after = replace(session, narrow=replace(session.narrower, turn=(), turn_worst=0))
    else:
        tier = ORIGIN_TIER[observation.origin]
        cause = f"{observation.origin.value}:{observation.id}"
        after = tainted(session, cause, tier)
        narrow = session.narrower
        numbered = (observation.session, narrow.seen)
        if policy.taint == "influence" and influence.keep(rows, *numbered, sketch, cause, tier, now_ms):
            narrow = replace(after.narrower, hard=narrow.hard, seen=narrow.seen + 1)
            after = replace(after, narrow=narrow)
    if after != session:
        _save(rows, observation.session, after, policy, now_ms)
    return after


def saw(session: SessionRow, event_id: str) -> int:
    """Return the tier of an observation that a session names among its causes of taint, whatever the policy's scope.

    0: it names none of this id, or had more causes than it names.
    """
    named = (tier for origin, tier in ORIGIN_TIER.items() if f"{origin.value}:{event_id}" in session.causes)
    return max(named, default=0)


def watermark(
    rows: TenantRows, name: str, session: SessionRow, sketch: str, policy: Policy
) -> tuple[tuple[str, ...], int]:
    """Return what of a session taints a write with these words under the policy, and the worst tier among it."""
    narrow = session.narrower
    if policy.taint == "session" or narrow.revoked:
        return session.causes, session.worst
    if policy.taint == "turn":
        return narrow.turn, narrow.turn_worst
    if policy.taint == "influence":
        return (session.causes, session.worst) if narrow.hard else influence.of(rows, name, narrow.seen, sketch)
    return (), 0


def recalled(rows: TenantRows, recall: Recall, session: SessionRow, policy: Policy, now_ms: int) -> SessionRow:
    """Return and keep the session after a recall: what it was given taints it unless known to be clean guidance."""
    after = session
    for returned in recall.returned:
        entry = rows.get(ENTRY, returned.event_id)
        untainted = entry is not None and not entry.taint and not returned.taint
        if not (untainted and _admitted(rows, returned) and recall.zone is Zone.GUIDANCE):
            tier = entry.tier if entry is not None else Tier.EXTERNAL_WEB
            after = tainted(after, f"recalled:{returned.event_id}", max(tier, returned.tier))
    if after != session:
        _save(rows, recall.session, after, policy, now_ms)
    return after


def read(rows: TenantRows, recall: Recall) -> Finding | None:
    """Count what a recall says it returned: by tier, and how many entries the gate never admitted (must be none).

    What expired or was taken away a moment ago is none of those: the reader was honest when it read.
    """
    if not recall.returned:
        return None
    tiers = Counter(returned.tier.name for returned in recall.returned)
    unknown = sum(not (_admitted(rows, returned) or _gone(rows, returned)) for returned in recall.returned)
    return Finding(RETURNED, Decision.ACCEPT, {"tiers": dict(sorted(tiers.items())), "unknown": unknown})


def withheld(recall: Recall) -> Finding | None:
    """Say what a recall found and did not return, by reason, as its reader says."""
    return Finding(WITHHELD, Decision.ACCEPT, dict(sorted(recall.withheld.items()))) if recall.withheld else None


def revoked(rows: TenantRows, name: str, cause: str, policy: Policy, now_ms: int) -> bool:
    """Taint a known session from now on, as if it had seen the worst; return False where nothing changes by it."""
    session = load(rows, name)
    if session is None or session.narrower.revoked:
        return False
    after = tainted(session, cause, Tier.EXTERNAL_WEB)
    after = replace(after, narrow=replace(after.narrower, revoked=cause))
    _save(rows, name, after, policy, now_ms)
    return True


def _admitted(rows: TenantRows, returned: Returned) -> bool:
    """Whether the gate admitted that very version; one that was moved or renewed a moment ago counts as well."""
    entry = rows.get(ENTRY, returned.event_id)
    if entry is None:
        return False
    named = (returned.object_id, returned.version)
    return named in ((entry.object_id, entry.version), entry.was)


def _gone(rows: TenantRows, returned: Returned) -> bool:
    """Whether that very version expired, or a command took it away, no longer than LATE_MS ago."""
    entry = rows.get(ENTRY, returned.event_id, late_ms=LATE_MS)
    if entry is None:
        return False
    last, still = (entry.object_id, entry.version), True
    if isinstance(entry.gone, Gone):
        last, still = entry.gone.was, rows.now_ms < entry.gone.ms + LATE_MS
    return still and (returned.object_id, returned.version) in (last, entry.was)
