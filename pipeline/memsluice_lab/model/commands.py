"""Commands of the design: who may give which, and what none of them overrides.

PROMOTE is the paper's (Rules 6 and 7); declassification is what it left open. No command changes what iota keeps: an
operator may take it out, and iota ends with it. None removes taint from what was made before, or lets in what its
sender or its id casts doubt on.
"""

from collections.abc import Callable
from dataclasses import replace

from memsluice.events.models import Tier, Visibility, Zone
from memsluice_lab.model.actions import Order, Scope
from memsluice_lab.model.rules import (
    ACCEPT,
    CONTAIN,
    HOLD,
    RECORD,
    REJECT,
    UNKNOWN,
    Verdict,
    ancestors,
    decide,
    fell,
    immutable,
    judge,
    label,
    land,
    lifetime,
    slot_of,
)
from memsluice_lab.model.state import Belief, Held, Item, Known, ModelState, Slot

WHO = {
    "protect": ("operator",),
    "release": ("reviewer",),
    "reject": ("reviewer",),
    "replay": ("reviewer",),
    "reopen": ("reviewer",),
    "note": ("reviewer",),
    "promote": ("operator", "reviewer"),
    "declassify": ("reviewer",),
    "revoke": ("operator", "reviewer"),
    "withdraw": ("operator", "reviewer"),
    "renew": ("reviewer",),
}
APPROVALS = {"declassify": 2}
REFUSED, DONE = Verdict(REJECT), Verdict(RECORD)


def order(state: ModelState, command: Order) -> Verdict:
    """Carry out a command, or refuse it."""
    allowed = command.by in WHO[command.action] and command.approvals >= APPROVALS.get(command.action, 1)
    if command.late or not allowed or command.shown is False:
        return REFUSED
    if command.action == "protect":
        return _protect(state, command)
    if command.session:
        return _distrust_session(state, command)
    held = state.held.get(command.target)
    held = held if held is not None and state.alive(held.until) else None
    known = state.lineage(command.target)
    if command.action in ("reopen", "note"):
        return _at_the_desk(state, command, held)
    if command.action in ("release", "reject", "replay") or (
        command.action in ("declassify", "revoke") and held is not None and not (known is not None and known.landed)
    ):
        if held is not None and held.refused and command.action in ("release", "declassify"):
            return REFUSED  # a policy rejected it: a policy alone lets it in
        return REFUSED if held is None or not held.open or not command.digest else _held(state, command, held)
    if known is None or not known.landed or not command.digest:
        return REFUSED
    about: dict[str, Callable[[ModelState, Order, Known], Verdict]] = {
        "promote": _promote,
        "declassify": _declassify,
        "revoke": _revoke,
        "withdraw": _withdraw,
        "renew": _renew,
    }
    if command.action in ("revoke", "withdraw") and _guarded(state, known):
        return _unprotected(state, command, known, about[command.action])
    return about[command.action](state, command, known)


def _guarded(state: ModelState, known: Known) -> bool:
    """Whether it is m, in M, with iota(m) = 1. What is kept as data is none that anybody follows."""
    assert known.slot is not None
    zone, scope, *_ = known.slot
    there = state.memory.get(known.slot)
    lies = there is not None and there.event == known.event.id
    return lies and zone is Zone.GUIDANCE and immutable(state, scope, known.event.key)


def _unprotected(
    state: ModelState, command: Order, known: Known, take_out: Callable[[ModelState, Order, Known], Verdict]
) -> Verdict:
    """Part I: nobody changes m. Who set iota(k) := 1 takes m out, and with m iota(k) ends."""
    assert known.slot is not None
    assert known.event.key is not None
    done = take_out(state, command, known) if command.by == "operator" else REFUSED
    if done.decision is not REJECT:
        state.immutable.discard((known.slot[1], known.event.key))
    return done


def _protect(state: ModelState, command: Order) -> Verdict:
    """iota(k) := 1."""
    assert command.scope is not None
    if (command.scope, command.target) in state.immutable:
        return REFUSED
    state.immutable.add((command.scope, command.target))
    return DONE


def _at_the_desk(state: ModelState, command: Order, held: Held | None) -> Verdict:
    """Take a rejection back, or note something: neither changes what it is, or lets anything in."""
    if held is None or not command.digest or _stale(held, command):
        return REFUSED
    if command.action == "note":
        return DONE if held.open or held.rejected else REFUSED
    if not held.rejected:
        return REFUSED
    state.held[held.write.id] = replace(held, open=True, rejected=False, refused=held.at_first, last=command.id)
    return DONE


def _stale(held: Held, command: Order) -> bool:
    """Whether it was decided anew after whoever signs looked at it."""
    return bool(held.last and command.on and command.on != held.last)


def _held(state: ModelState, command: Order, held: Held) -> Verdict:
    """Decide about a write that waits."""
    name = held.write.id
    if _stale(held, command):
        return REFUSED
    if command.action == "reject":
        state.held[name] = replace(held, open=False, rejected=True, last=command.id)
        return DONE
    if command.action == "declassify":
        if not held.label.tau and held.label.tier.trusted:
            return REFUSED
        good = Belief(tau=False, tier=Tier.USER_OBSERVED)
        state.held[name] = replace(held, label=good, lifted=True, revoked=False, last=command.id)
        return DONE
    if command.action == "revoke":
        return _distrust(state, command, held)
    return _release(state, held) if command.action == "release" else _replay(state, command, held)


def _distrust(state: ModelState, command: Order, held: Held) -> Verdict:
    if held.revoked:
        return REFUSED
    label = worse(held.label)
    state.held[held.write.id] = replace(held, label=label, lifted=False, revoked=True, last=command.id)
    known = state.lineage(held.write.id)
    if known is not None:
        state.known[held.write.id] = replace(known, belief=worse(known.belief), revoked=True, lifted=False)
    return DONE


def _distrust_session(state: ModelState, command: Order) -> Verdict:
    """B' = B and a belief as bad as any: whatever its agent writes from now on is tainted."""
    session = state.session(command.target)
    if session is None or session.revoked:
        return REFUSED
    worst = Belief(tau=True, tier=Tier.EXTERNAL_WEB)
    state.use(command.target, replace(session, beliefs=session.beliefs | {worst}, revoked=True))
    return DONE


def worse(belief: Belief) -> Belief:
    """Return what is left of a belief whose source is distrusted."""
    return Belief(tau=True, tier=max(belief.tier, Tier.EXTERNAL_TOOL))


def _release(state: ModelState, held: Held) -> Verdict:
    """A release overrides what detection found: never taint, never a doubt about sender or id, never iota."""
    if (held.label.tau and state.keeps("rule_7")) or held.doubtful:
        return REFUSED
    if not held.lifted and fell(state, held.write, held.number):
        return REFUSED
    decision = judge(state, held.write, held.label, lifted=held.lifted)
    if decision is REJECT or not _fits(state, held, held.label, decision):
        return REFUSED
    return _settle(state, held, held.label, decision)


def _replay(state: ModelState, command: Order, held: Held) -> Verdict:
    """A replay judges anew; taint never falls, unless it was lifted: what tainted then and what taints now both do.

    It closes nothing: what was held and would be rejected now stays held.
    """
    deps = [] if held.lifted else ancestors(state, held.write)
    if not held.lifted and fell(state, held.write, held.number):
        deps.append(UNKNOWN)
    tau = held.label if held.lifted else label(held.write, [*deps, held.label])
    decision = decide(state, held.write, judge(state, held.write, tau, lifted=held.lifted), doubtful=held.doubtful)
    if decision in (ACCEPT, CONTAIN) and held.suspect:
        decision = HOLD  # no rule on contents changed, and nobody read it: what holds it is only seen no more
    if decision in (ACCEPT, CONTAIN):
        if not _fits(state, held, tau, decision):
            return REFUSED
        return _settle(state, held, tau, decision)
    refused = held.refused and decision is REJECT
    suspect = held.suspect or (decision is HOLD and held.write.suspect)
    state.held[held.write.id] = replace(held, label=tau, refused=refused, suspect=suspect, last=command.id)
    return Verdict(decision if refused else HOLD, tau.tier, tau.tau)


def _fits(state: ModelState, held: Held, tau: Belief, decision: str) -> bool:
    """Whether nothing that was written later lies where a held write would land: a key never goes back in time.

    Whose label was lifted takes no better item's place either.
    """
    slot = slot_of(state, held.write, tau, decision)
    return _gives_way(state, slot, held.number, tau.tier) if held.lifted else _room(state, slot, held.number)


def _settle(state: ModelState, held: Held, tau: Belief, decision: str) -> Verdict:
    state.held[held.write.id] = replace(held, label=tau, open=False)
    return land(state, held.write, tau, decision, held.number, lifted=held.lifted)


def _item(state: ModelState, command: Order, known: Known) -> Item | None:
    """Return m, if it is in M, and if what the command carries is m as it is now."""
    assert known.slot is not None
    item = state.memory.get(known.slot)
    stale = command.stale and known.landings > 1
    return item if item is not None and item.event == command.target and not stale else None


def _room(state: ModelState, slot: Slot, number: int) -> bool:
    """Whether what was written later does not lie there."""
    there = state.memory.get(slot)
    return there is None or not state.alive(there.until) or there.number <= number


def _gives_way(state: ModelState, slot: Slot, number: int, tier: Tier) -> bool:
    """Whether there is room, and what lies there is of no better tier: who judges m has no word on another item."""
    there = state.memory.get(slot)
    better = there is not None and state.alive(there.until) and there.tier < tier
    return _room(state, slot, number) and not better


def _move(state: ModelState, known: Known, slot: Slot, until: int | None, belief: Belief | None = None) -> Verdict:
    """Take an item from where it is and put it into another slot, with another label or its own; no descendant."""
    assert known.slot is not None
    item = state.memory.pop(known.slot)
    item = (
        replace(item, until=until) if belief is None else replace(item, tier=belief.tier, tau=belief.tau, until=until)
    )
    state.memory[slot] = item
    left = belief or known.belief
    state.known[item.event] = replace(known, slot=slot, belief=left, until=until, landings=known.landings + 1)
    zone, scope, *_ = slot
    return Verdict(CONTAIN if zone is Zone.EXTERNAL else ACCEPT, item.tier, item.tau, zone, scope.visibility, until)


def _promote(state: ModelState, command: Order, known: Known) -> Verdict:
    """Rule 6: tau(m) = 0 and a TRUSTED authoriser give m[sigma := sigma_shared]. Rule 7 refuses all else."""
    assert known.slot is not None
    zone, scope, name, keyed = known.slot
    if (known.belief.tau or zone is Zone.EXTERNAL) and state.keeps("rule_6"):
        return REFUSED
    item = _item(state, command, known)
    shared = Scope(Visibility.SHARED, "", scope.namespace)
    fixed = any(immutable(state, one, known.event.key) for one in (scope, shared))
    if not known.lifted and fell(state, known.event, known.number):
        return REFUSED
    to = (Zone.GUIDANCE, shared, name, keyed)
    if item is None or scope == shared or fixed or not _gives_way(state, to, known.number, item.tier):
        return REFUSED
    if known.event.suspect and not command.despite:
        return REFUSED
    return _move(state, known, to, known.until)


def _declassify(state: ModelState, command: Order, known: Known) -> Verdict:
    """Lift the label of one content, as a person's observed word at best; never iota.

    What detection says of it they set aside only if both sign that.
    """
    assert known.slot is not None
    _zone, scope, name, keyed = known.slot
    to = (Zone.GUIDANCE, scope, name, keyed)
    fixed = immutable(state, scope, known.event.key)
    if not known.belief.tau or _item(state, command, known) is None or fixed:
        return REFUSED
    if known.event.suspect and not command.despite:
        return REFUSED
    good = Belief(tau=False, tier=Tier.USER_OBSERVED)
    if not _gives_way(state, to, known.number, good.tier):
        return REFUSED
    return _move(state, replace(known, revoked=False, lifted=True), to, lifetime(state, good.tier), good)


def _revoke(state: ModelState, command: Order, known: Known) -> Verdict:
    """Contain an item. What is not in M any more, since a later write took its key, is only labelled."""
    assert known.slot is not None
    zone, scope, name, keyed = known.slot
    belief = worse(known.belief)
    there = state.memory.get(known.slot)
    if there is None or there.event != command.target:
        state.known[command.target] = replace(known, belief=belief, revoked=True, lifted=False)
        return DONE
    if zone is Zone.EXTERNAL or _item(state, command, known) is None:
        return REFUSED
    to = (Zone.EXTERNAL, scope, name, keyed)
    if not _room(state, to, known.number):
        return _withdraw(state, command, known)
    ends = [until for until in (known.until, lifetime(state, belief.tier)) if until is not None]
    return _move(state, replace(known, revoked=True, lifted=False), to, min(ends, default=None), belief)


def _withdraw(state: ModelState, command: Order, known: Known) -> Verdict:
    """Take an item out of M. Whatever names it from now on is tainted."""
    assert known.slot is not None
    there = state.memory.get(known.slot)
    if there is not None and there.event == command.target:
        del state.memory[known.slot]
    state.known[command.target] = replace(known, slot=None, belief=worse(known.belief), revoked=True, lifted=False)
    return DONE


def _renew(state: ModelState, command: Order, known: Known) -> Verdict:
    """Seed 002: what a person looked at holds for its tier's whole time once more."""
    assert known.slot is not None
    until = lifetime(state, known.belief.tier)
    if known.until is None or known.revoked or _item(state, command, known) is None:
        return REFUSED
    if until is not None and until <= known.until:
        return REFUSED
    if not known.belief.tau and not known.lifted and fell(state, known.event, known.number):
        return REFUSED
    return _move(state, known, known.slot, until)
