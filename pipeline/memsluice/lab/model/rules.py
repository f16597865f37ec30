"""The transitions: S --a--> S', Rules 1 to 9 of seed 001, Section 3.3, and what the design adds around them.

Reading aid: ``tau`` is the taint bit, ``pi`` the provenance label (TRUSTED: tiers 1 to 3), ``iota`` immutability,
``sigma`` a scope. Where the paper says "no state change", the profile *strict* rejects; the profile *tiered* contains:
the item is kept as data in a zone of its own, from which nothing is read as guidance.
"""

from dataclasses import dataclass, replace

from memsluice.events.models import Origin, Tier, Visibility, Zone
from memsluice.lab.model.actions import Actor, Event, Observe, Order, Read, Scope, Write
from memsluice.lab.model.state import EVENT_ID_MS, HELD_MS, LIFETIME_MS, Belief, Held, Item, Known, Session, State

ORIGIN = {Origin.WEB: Tier.EXTERNAL_WEB, Origin.UPLOAD: Tier.EXTERNAL_WEB}
"""Every other origin is a tool or a skill."""
UNKNOWN = Belief(tau=True, tier=Tier.EXTERNAL_TOOL)
"""What is believed of an ancestor, or of a past, that nothing is known of."""
ACCEPT, CONTAIN, HOLD, REJECT = "accept", "contain", "quarantine", "reject"
STRENGTH = (ACCEPT, CONTAIN, HOLD, REJECT)
RECORD, DUPLICATE = "record", "duplicate"


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a transition came to. ``tier`` and ``taint`` are None if it judged no write, ``zone`` if nothing landed."""

    decision: str
    tier: Tier | None = None
    taint: bool | None = None
    zone: Zone | None = None
    visibility: Visibility | None = None
    until: int | None = None


def step(state: State, event: Event) -> Verdict:
    """Do one transition. An event id that was seen is the same event again, or another one that takes its id."""
    first = _first(state, event.id)
    if first == event:
        return Verdict(DUPLICATE)
    if isinstance(event, Write):
        verdict = _write(state, event, repeated=first is not None)
    elif isinstance(event, Order):
        verdict = Verdict(REJECT) if first is not None else order(state, event)
    else:
        verdict = _seen(state, event, repeated=first is not None)
    if event.id not in state.events or not state.alive(state.events[event.id][1]):
        state.events[event.id] = (event, state.now + EVENT_ID_MS)
    return verdict


def _first(state: State, event_id: str) -> Event | None:
    seen = state.events.get(event_id)
    if seen is not None and state.alive(seen[1]):
        return seen[0]
    lineage = state.lineage(event_id)
    return None if lineage is None else lineage.event


def _enter(state: State, actor: Actor, *, opening: bool) -> tuple[Session, bool]:
    """Bind a session by its first event, for good by the platform; return it, and whether the actor is its own."""
    session = state.session(actor.session)
    if session is None:
        session = Session(actor.agent, actor.principal, opened=opening)
    elif opening and not session.opened:
        session = replace(session, agent=actor.agent, principal=actor.principal, opened=True)
    own = (session.agent, session.principal) == (actor.agent, actor.principal)
    return state.use(actor.session, session), own


def _seen(state: State, event: Read | Observe, *, repeated: bool) -> Verdict:
    """Rule 1 (READ): B' = B and b_m, which carries m.tau. An observation adds a belief that never was an item.

    Something that was refused has been seen all the same.
    """
    opening = isinstance(event, Observe) and not event.refused
    session, own = _enter(state, event.actor, opening=opening)
    if event.refused:
        nothing = isinstance(event, Observe) and event.origin is Origin.OPEN
        new = set() if nothing else {Belief(tau=True, tier=Tier.EXTERNAL_WEB)}
    elif isinstance(event, Read):
        new = {_belief(state, event, number) for number in range(len(event.given))}
    else:
        outside = Belief(tau=True, tier=ORIGIN.get(event.origin, Tier.EXTERNAL_TOOL))
        new = set() if event.origin is Origin.OPEN else {outside}
    if state.keeps("rule_1"):
        state.use(event.actor.session, replace(session, beliefs=session.beliefs | new))
    return Verdict(RECORD if own and not repeated and not event.refused else REJECT)


def _belief(state: State, read: Read, number: int) -> Belief:
    """b_m for one item of a READ: tainted unless it is just what was admitted, and clean, as guidance."""
    given = read.given[number]
    known = state.lineage(given.event)
    if known is None:
        return Belief(tau=True, tier=Tier.EXTERNAL_WEB)
    clean = known.landed and given.exact and not known.belief.tau and not given.taint and read.zone is Zone.GUIDANCE
    return Belief(not clean, max(known.belief.tier, given.tier))


def ancestors(state: State, write: Write) -> list[Belief]:
    """deps of a write: what it declares, and, of an agent's, all that its session believes.

    What a person typed did not pass through the session's context; what an agent wrote did (Assumption A3).
    """
    deps = []
    for parent in write.parents if state.keeps("rule_8") else ():
        known = state.lineage(parent)
        if known is None:
            deps.append(UNKNOWN)
        else:
            deps.append(known.belief if known.landed else replace(known.belief, tau=True))
    if write.source == "agent":
        session = state.session(write.actor.session)
        deps += session.beliefs if session is not None else ()
        if session is None or not session.opened:
            deps.append(UNKNOWN)
    return deps


def label(write: Write, deps: list[Belief]) -> Belief:
    """Rule 8: tau(b) = max over d in ancestors(b) of tau(d). The tier is the worst of those that taint, at best 4."""
    tainted = [dep.tier for dep in deps if dep.tau]
    return Belief(bool(tainted), max([write.tier, *([Tier.EXTERNAL_TOOL] if tainted else []), *tainted]))


def _sigma(state: State, write: Write, tier: Tier) -> Scope:
    """Rule 9: nobody but an operator writes into sigma_shared; who asks for it gets the scope of the principal."""
    visibility = write.visibility
    if visibility is Visibility.SHARED and tier is not Tier.OPERATOR and state.keeps("rule_9"):
        visibility = Visibility.PRINCIPAL
    owner = {
        Visibility.SESSION: write.actor.session,
        Visibility.PRINCIPAL: write.actor.principal,
        Visibility.SHARED: "",
    }
    return Scope(visibility, owner[visibility], write.namespace)


def judge(state: State, write: Write, tau: Belief) -> str:
    """Rules 2 to 5 on a labelled write."""
    refused = REJECT if state.strict else CONTAIN
    sigma = _sigma(state, write, tau.tier)
    if write.key is not None and (sigma, write.key) in state.immutable and state.keeps("rule_3"):
        return REJECT  # Rule 3: iota(k) = 1
    if tau.tau and state.keeps("rule_4"):
        return refused  # Rule 4: exists b in deps with tau(b) = 1
    if not write.tier.trusted and state.keeps("rule_5"):
        return refused  # Rule 5: pi = UNTRUSTED
    return ACCEPT  # Rule 2


def _write(state: State, write: Write, *, repeated: bool) -> Verdict:
    _session, own = _enter(state, write.actor, opening=False)
    tau = label(write, ancestors(state, write))
    ruled = judge(state, write, tau)
    doubtful = repeated or not own
    asked = [ruled, HOLD if doubtful else ACCEPT]
    if write.suspect and (ruled is not CONTAIN or doubtful or state.hold_contained):
        asked.append(HOLD)
    decision = max(asked, key=STRENGTH.index)
    landed = decision in (ACCEPT, CONTAIN)
    until = lifetime(state, tau.tier) if landed else state.now + HELD_MS
    if state.lineage(write.id) is None:  # another content under a known id takes over no lineage
        remember(state, write, tau, landed=landed, until=until)
    if decision is HOLD and not repeated:
        state.held[write.id] = Held(write, tau, doubtful, state.now + HELD_MS)
    return land(state, write, tau, decision) if landed else Verdict(decision, tau.tier, tau.tau)


def remember(state: State, write: Write, tau: Belief, *, landed: bool, until: int | None) -> None:
    """Keep b_m of a write, for those that come after. An untrusted principal's item taints whoever reads it."""
    belief = replace(tau, tau=tau.tau or not tau.tier.trusted)
    state.known[write.id] = Known(belief, landed, until, write)


def lifetime(state: State, tier: Tier) -> int | None:
    """Return until when something of this tier lives."""
    life = LIFETIME_MS[tier]
    return None if life is None else state.now + life


def land(state: State, write: Write, tau: Belief, decision: str) -> Verdict:
    """Rule 2: M' = M[k -> (k, v, pi, tau, iota(k), sigma)]; what is contained goes to the other zone."""
    zone = Zone.EXTERNAL if decision is CONTAIN else Zone.GUIDANCE
    sigma, until = _sigma(state, write, tau.tier), lifetime(state, tau.tier)
    slot = (zone, sigma, write.key if write.key is not None else write.id, write.key is not None)
    state.memory[slot] = Item(write.id, write.value, write.actor.principal, tau.tier, tau.tau, until)
    return Verdict(decision, tau.tier, tau.tau, zone, sigma.visibility, until)


def order(state: State, command: Order) -> Verdict:
    """Commands of the design: who may give which, and what none of them overrides."""
    by = {"protect": "operator", "release": "reviewer", "reject": "reviewer", "replay": "reviewer"}
    if command.late or by.get(command.action) != command.by:
        return Verdict(REJECT)
    if command.action == "protect":
        return _protect(state, command)
    held = state.held.get(command.target)
    if held is None or not held.open or not state.alive(held.until) or not command.digest:
        return Verdict(REJECT)
    if command.action == "reject":
        state.held[command.target] = replace(held, open=False)
        return Verdict(RECORD)
    return _release(state, held) if command.action == "release" else _replay(state, held)


def _protect(state: State, command: Order) -> Verdict:
    """iota(k) := 1. No transition sets it back."""
    assert command.scope is not None
    if (command.scope, command.target) in state.immutable:
        return Verdict(REJECT)
    state.immutable.add((command.scope, command.target))
    return Verdict(RECORD)


def _release(state: State, held: Held) -> Verdict:
    """A release overrides what detection found: never taint, never a doubt about sender or id, never iota."""
    if (held.label.tau and state.keeps("rule_7")) or held.doubtful:
        return Verdict(REJECT)
    decision = judge(state, held.write, held.label)
    return Verdict(REJECT) if decision is REJECT else _settle(state, held, held.label, decision)


def _replay(state: State, held: Held) -> Verdict:
    """A replay judges anew; taint never falls: what tainted then and what taints now both do."""
    write = held.write
    tau = label(write, [*ancestors(state, write), held.label])
    ruled = judge(state, write, tau)
    asked = [ruled, HOLD if held.doubtful else ACCEPT]
    if write.suspect and (ruled is not CONTAIN or held.doubtful or state.hold_contained):
        asked.append(HOLD)
    decision = max(asked, key=STRENGTH.index)
    if decision in (ACCEPT, CONTAIN):
        return _settle(state, held, tau, decision)
    state.held[write.id] = replace(held, label=tau, open=decision is HOLD)
    return Verdict(decision, tau.tier, tau.tau)


def _settle(state: State, held: Held, tau: Belief, decision: str) -> Verdict:
    write = held.write
    remember(state, write, tau, landed=True, until=lifetime(state, tau.tier))
    state.held[write.id] = replace(held, label=tau, open=False)
    return land(state, write, tau, decision)
