"""The transitions: S --a--> S', Rules 1 to 9 of seed 001, Section 3.3, and what the design adds around them.

Reading aid: ``tau`` is the taint bit, ``pi`` the provenance label (TRUSTED: tiers 1 to 3), ``iota`` immutability,
``sigma`` a scope. Where the paper says "no state change", the profile *strict* rejects; the profile *tiered* contains:
the item is kept as data in a zone of its own, from which nothing is read as guidance.
"""

from dataclasses import dataclass, replace

from memsluice.events.models import Origin, Tier, Visibility, Zone
from memsluice_lab.model.actions import Actor, Observe, Read, Scope, Write
from memsluice_lab.model.state import HELD_MS, LIFETIME_MS, Belief, Held, Item, Known, ModelState, Session, Slot

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


def _enter(state: ModelState, actor: Actor, *, opening: bool) -> tuple[Session, bool]:
    """Bind a session by its first event, for good by the platform; return it, and whether the actor is its own."""
    session = state.session(actor.session)
    if session is None:
        session = Session(actor.agent, actor.principal, opened=opening)
    elif opening and not session.opened:
        session = replace(session, agent=actor.agent, principal=actor.principal, opened=True)
    own = (session.agent, session.principal) == (actor.agent, actor.principal)
    return state.use(actor.session, session), own


def seen(state: ModelState, event: Read | Observe, *, repeated: bool) -> Verdict:
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


def _belief(state: ModelState, read: Read, number: int) -> Belief:
    """b_m for one item of a READ: tainted unless it is just what was admitted, and clean, as guidance."""
    given = read.given[number]
    known = state.lineage(given.event)
    if known is None:
        return Belief(tau=True, tier=Tier.EXTERNAL_WEB)
    clean = known.landed and given.exact and not known.belief.tau and not given.taint and read.zone is Zone.GUIDANCE
    return Belief(not clean, max(known.belief.tier, given.tier))


def ancestors(state: ModelState, write: Write) -> list[Belief]:
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


def fell(state: ModelState, write: Write, number: int) -> bool:
    """Rule 8 once more, after the label was given: whether an ancestor is tainted, or out of memory, by now.

    A declared parent that is not known taints, as it does a WRITE; farther up, what is not known any more has no say.
    Where two reviewers lifted a label, nobody asks what lies behind it. ``number`` is the write's place in the log: who
    has an ancestor's name and came later is none.
    """
    waiting = [_before(state, parent, number) for parent in write.parents if state.keeps("rule_8")]
    if None in waiting:
        return True
    asked = set()
    while waiting:
        known = waiting.pop()
        if known is None or known.event.id in asked:
            continue
        if known.belief.tau or not known.landed:
            return True
        asked.add(known.event.id)
        waiting += [] if known.lifted else [_before(state, up, known.number) for up in known.event.parents]
    return False


def _before(state: ModelState, name: str, number: int) -> Known | None:
    known = state.lineage(name)
    return known if known is not None and known.number < number else None


def _sigma(state: ModelState, write: Write, tier: Tier) -> Scope:
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


def immutable(state: ModelState, sigma: Scope, key: str | None) -> bool:
    """Rule 3: iota(k) = 1."""
    return key is not None and (sigma, key) in state.immutable and state.keeps("rule_3")


def judge(state: ModelState, write: Write, tau: Belief, *, lifted: bool = False) -> str:
    """Rules 2 to 5 on a labelled write. ``lifted``: it was declassified, whoever its principal is."""
    refused = REJECT if state.strict else CONTAIN
    if immutable(state, _sigma(state, write, tau.tier), write.key):
        return REJECT  # Rule 3
    if tau.tau and state.keeps("rule_4"):
        return refused  # Rule 4: exists b in deps with tau(b) = 1
    if not write.tier.trusted and not lifted and state.keeps("rule_5"):
        return refused  # Rule 5: pi = UNTRUSTED
    return ACCEPT  # Rule 2


def write(state: ModelState, write: Write, *, repeated: bool) -> Verdict:
    """WRITE: label it, judge it, and what content checks and doubts about its sender add."""
    _session, own = _enter(state, write.actor, opening=False)
    tau = label(write, ancestors(state, write))
    doubtful = repeated or not own
    decision = decide(state, write, judge(state, write, tau), doubtful=doubtful)
    new = state.lineage(write.id) is None  # another content under a known id takes over no lineage
    if decision in (ACCEPT, CONTAIN):
        return land(state, write, tau, decision, state.number)
    if new:
        belief = replace(tau, tau=tau.tau or not tau.tier.trusted)
        state.known[write.id] = Known(belief, None, state.now + HELD_MS, write, state.number)
    if not repeated:
        until, refused = state.now + HELD_MS, decision is REJECT
        stopped = suspicious(state, write, judge(state, write, tau), doubtful=doubtful)
        state.held[write.id] = Held(
            write,
            tau,
            doubtful,
            until,
            state.number,
            refused=refused,
            at_first=refused,
            suspect=stopped and not refused,
        )
    return Verdict(decision, tau.tier, tau.tau)


def decide(state: ModelState, write: Write, ruled: str, *, doubtful: bool) -> str:
    """Return the strongest of what the rules say, a content check, and a doubt. What is contained is only reported."""
    asked = [ruled, HOLD if doubtful else ACCEPT]
    if suspicious(state, write, ruled, doubtful=doubtful):
        asked.append(HOLD)
    return max(asked, key=STRENGTH.index)


def suspicious(state: ModelState, write: Write, ruled: str, *, doubtful: bool) -> bool:
    """Whether a content check stops it: outside content that is contained is only reported, unless it asks for more."""
    return write.suspect and (ruled is not CONTAIN or doubtful or state.hold_contained)


def lifetime(state: ModelState, tier: Tier) -> int | None:
    """Return until when something of this tier lives."""
    life = LIFETIME_MS[tier]
    return None if life is None else state.now + life


def slot_of(state: ModelState, write: Write, tau: Belief, decision: str) -> Slot:
    """Return where a write lands: sigma by its tier, the other zone where it is contained."""
    zone = Zone.EXTERNAL if decision is CONTAIN else Zone.GUIDANCE
    return zone, _sigma(state, write, tau.tier), write.key if write.key is not None else write.id, write.key is not None


def land(state: ModelState, write: Write, tau: Belief, decision: str, number: int, *, lifted: bool = False) -> Verdict:
    """Rule 2: M' = M[k -> (k, v, pi, tau, iota(k), sigma)]; what is contained goes to the other zone.

    An untrusted principal's item taints whoever reads it, whether or not something tainted it.
    """
    slot, until = slot_of(state, write, tau, decision), lifetime(state, tau.tier)
    zone, sigma, *_ = slot
    state.memory[slot] = Item(write.id, write.value, write.actor.principal, tau.tier, tau.tau, until, number)
    belief = replace(tau, tau=tau.tau or not tau.tier.trusted)
    state.known[write.id] = Known(belief, slot, until, write, number, landings=1, lifted=lifted)
    return Verdict(decision, tau.tier, tau.tau, zone, sigma.visibility, until)
