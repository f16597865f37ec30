"""Sessions: who runs in them, whether the platform opened them, and what they have seen (low-watermark taint).

A session is bound to agent and principal by its first event. Its taint is the maximum over everything it recalled or
observed and never falls; a session that no runtime credential opened counts as tainted, since what it saw is unknown.
"""

from collections import Counter
from dataclasses import dataclass, replace

from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Observation, Origin, Recall, Returned, SessionPayload, Tier, Zone
from memsluice.gate.checks import influence
from memsluice.gate.policy.model import DAY_MS, Policy
from memsluice.gate.state.lineage import CAUSES_MAX, ENTRY
from memsluice.gate.state.rows import LATE_MS, TenantRows

KIND = "session"
RETURNED = "sessions.returned"
MISMATCH = "sessions.mismatch"
NARROW = ("turn", "turn_worst", "hard", "seen", "revoked")
ORIGIN_TIER = {
    Origin.WEB: Tier.EXTERNAL_WEB,
    Origin.UPLOAD: Tier.EXTERNAL_WEB,
    Origin.TOOL: Tier.EXTERNAL_TOOL,
    Origin.SKILL: Tier.EXTERNAL_TOOL,
}


@dataclass(frozen=True, slots=True)
class Session:
    """One session. ``worst`` is the least trusted tier among what tainted it; ``causes`` the nearest, bounded.

    For policies with a narrower watermark: ``turn`` and ``turn_worst`` are the same since the platform last opened it;
    ``seen`` counts observations whose words are kept, ``hard`` says that something else tainted it; ``revoked`` is the
    cause by which an order distrusts it, which no scope narrows.
    """

    agent: str
    principal: str
    opened: bool = False
    taint: bool = False
    worst: int = 0
    causes: tuple[str, ...] = ()
    expires_ms: int = 0
    turn: tuple[str, ...] = ()
    turn_worst: int = 0
    hard: bool = False
    seen: int = 0
    revoked: str = ""


def load(rows: TenantRows, session: str) -> Session | None:
    """Return a session, or None where none is known."""
    row = rows.get(KIND, session)
    if row is None:
        return None
    causes, taint, worst = tuple(row["causes"]), row["taint"], row["worst"]
    known = (row["agent"], row["principal"], row["opened"], taint, worst, causes, row["x"])
    narrow = row.get("narrow") or {"turn": causes, "turn_worst": worst, "hard": taint}
    more = (narrow["hard"], narrow.get("seen", 0), narrow.get("revoked", ""))
    return Session(*known, tuple(narrow["turn"]), narrow["turn_worst"], *more)


def _save(rows: TenantRows, name: str, session: Session, policy: Policy, now_ms: int) -> None:
    rows.put(
        KIND,
        name,
        {
            "agent": session.agent,
            "principal": session.principal,
            "opened": session.opened,
            "taint": session.taint,
            "worst": session.worst,
            "causes": session.causes,
            "narrow": {name: getattr(session, name) for name in NARROW},
            "x": now_ms + policy.session_retention_days * DAY_MS,
        },
    )


def tainted(session: Session, cause: str, tier: Tier) -> Session:
    """Return the session with one more cause of taint; beyond CAUSES_MAX the first ones are kept, the taint stays."""
    causes, turn = (_with(known, cause) for known in (session.causes, session.turn))
    worst, turn_worst = max(session.worst, tier), max(session.turn_worst, tier)
    return replace(session, taint=True, worst=worst, causes=causes, turn=turn, turn_worst=turn_worst, hard=True)


def _with(causes: tuple[str, ...], cause: str) -> tuple[str, ...]:
    return causes if cause in causes or len(causes) >= CAUSES_MAX else (*causes, cause)


def enter(rows: TenantRows, sealed: Sealed, policy: Policy, now_ms: int) -> tuple[Session, Finding | None]:
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
    session = known or Session(payload.agent, payload.principal, opened=opening)
    retention_ms = policy.session_retention_days * DAY_MS
    used_up = session.expires_ms - now_ms < retention_ms - min(DAY_MS, retention_ms // 2)
    if known is None or used_up:  # kept alive by use, written at most twice a day for it
        _save(rows, payload.session, session, policy, now_ms)
    return session, None


def unverified(rows: TenantRows, sealed: Sealed, session: Session, policy: Policy, now_ms: int) -> Session:
    """Return and keep the session after a recall or observation that was refused: it saw something unknown."""
    payload = sealed.payload
    assert isinstance(payload, SessionPayload)
    after = tainted(session, f"unverified:{payload.id}", Tier.EXTERNAL_WEB)
    if after != session:
        _save(rows, payload.session, after, policy, now_ms)
    return after


def observe(
    rows: TenantRows, observation: Observation, sketch: str, session: Session, policy: Policy, now_ms: int
) -> Session:
    """Return and keep the session after an observation: outside content taints it, its mere opening does not.

    Opening it once more begins a new turn, which counts under a policy that asks for it alone.
    """
    if observation.origin is Origin.OPEN:
        after = replace(session, turn=(), turn_worst=0)
    else:
        tier = ORIGIN_TIER[observation.origin]
        cause = f"{observation.origin.value}:{observation.id}"
        after = tainted(session, cause, tier)
        numbered = (observation.session, session.seen)
        if policy.taint == "influence" and influence.keep(rows, *numbered, sketch, cause, tier, now_ms):
            after = replace(after, hard=session.hard, seen=session.seen + 1)
    if after != session:
        _save(rows, observation.session, after, policy, now_ms)
    return after


def watermark(
    rows: TenantRows, name: str, session: Session, sketch: str, policy: Policy
) -> tuple[tuple[str, ...], int]:
    """Return what of a session taints a write with these words under the policy, and the worst tier among it."""
    if policy.taint == "session" or session.revoked:
        return session.causes, session.worst
    if policy.taint == "turn":
        return session.turn, session.turn_worst
    if policy.taint == "influence":
        return (session.causes, session.worst) if session.hard else influence.of(rows, name, session.seen, sketch)
    return (), 0


def recalled(rows: TenantRows, recall: Recall, session: Session, policy: Policy, now_ms: int) -> Session:
    """Return and keep the session after a recall: what it was given taints it unless known to be clean guidance."""
    after = session
    for returned in recall.returned:
        entry = rows.get(ENTRY, returned.event_id)
        clean = _admitted(rows, returned) and not entry["taint"] and recall.zone is Zone.GUIDANCE and not returned.taint
        if not clean:
            tier = Tier(entry["tier"]) if entry is not None else Tier.EXTERNAL_WEB
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


def revoked(rows: TenantRows, name: str, cause: str, policy: Policy, now_ms: int) -> bool:
    """Taint a known session from now on, as if it had seen the worst; return False where nothing changes by it."""
    session = load(rows, name)
    if session is None or session.revoked:
        return False
    after = replace(tainted(session, cause, Tier.EXTERNAL_WEB), revoked=cause)
    _save(rows, name, after, policy, now_ms)
    return True


def _admitted(rows: TenantRows, returned: Returned) -> bool:
    """Whether the gate admitted that very version; one that was moved or renewed a moment ago counts as well."""
    entry = rows.get(ENTRY, returned.event_id)
    if entry is None:
        return False
    named = (returned.object_id, returned.version)
    return named in ((entry["object"], entry["version"]), tuple(entry.get("was") or ()))


def _gone(rows: TenantRows, returned: Returned) -> bool:
    """Whether that very version expired, or a command took it away, no longer than LATE_MS ago."""
    entry = rows.get(ENTRY, returned.event_id, late_ms=LATE_MS)
    if entry is None:
        return False
    taken = entry.get("gone")
    last = (entry["object"], entry["version"]) if taken is None else tuple(taken["was"])
    still = taken is None or rows.now_ms < taken["ms"] + LATE_MS
    return still and (returned.object_id, returned.version) in (last, tuple(entry.get("was") or ()))
