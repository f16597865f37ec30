"""Random sequences of actions from a seed. They look at the model's state only to make interesting choices likely."""

import random
from collections import Counter
from dataclasses import dataclass, replace
from itertools import product

from memsluice.events.models import Origin, Tier, Visibility, Zone
from memsluice_lab.model.actions import (
    Action,
    Actor,
    Crash,
    Event,
    Given,
    Observe,
    Order,
    Read,
    Redeliver,
    Scope,
    Wait,
    Write,
)
from memsluice_lab.model.compare import Pair
from memsluice_lab.model.state import ModelState

ACTORS = (
    Actor("s0", "planner", "ana"),
    Actor("s1", "planner", "ana"),
    Actor("s2", "clerk", "bob"),
    Actor("s3", "scout", "bob"),
)
NAMESPACES = ("default", "work")
KEYS = ("SOUL.md", "address")
SOURCES = {
    "user": Tier.USER_OBSERVED,
    "agent": Tier.USER_OBSERVED,
    "tool": Tier.EXTERNAL_TOOL,
    "web": Tier.EXTERNAL_WEB,
    "operator": Tier.OPERATOR,
}
SHORT_MS, DAYS_MS, LONG_MS = 7_200_000, 8 * 86_400_000, 40 * 86_400_000
"""Past the life of what came from the web; past a tool's and past the window of event ids; past everything's but an
operator's. No two of the middle one fall into another's retention by a margin, since sessions are kept to the day."""
LENGTH_MIN, LENGTH_MAX, OPENINGS = 4, 24, 2
PARENTS_MAX = 3
ACTIONS, WEIGHTS = zip(
    ("write", 40), ("observe", 9), ("read", 14), ("protect", 4), ("review", 10), ("landed", 10), ("wait", 6),
    ("crash", 3), ("redeliver", 3), ("open", 5), ("repeat", 4), strict=True,
)  # fmt: skip


class Walk:
    """Draws one action after another; ``state`` is the model's. Without ``desk`` commands say nothing of screens, and
    take no rejection back: as it was drawn before there was a desk."""

    def __init__(self, chance: random.Random, state: ModelState, *, desk: bool = False) -> None:
        self._desk = desk
        self._chance = chance
        self._state = state
        self._past: list[Event] = []
        self._days = 0
        self._number = 0

    def draw(self) -> Action:
        """Return the next action."""
        name = self._chance.choices(ACTIONS, WEIGHTS)[0]
        action: Action = getattr(self, f"_{name}")()
        if isinstance(action, Write | Observe | Read | Order):
            self._past.append(action)
        return action

    def opening(self) -> Observe:
        """Return the opening of a session."""
        return self._open()

    def _id(self) -> str:
        """A fresh id, sometimes one that was used."""
        self._number += 1
        known = list(self._state.known)
        if known and self._chance.random() < 0.03:
            return self._chance.choice(known)
        return f"e{self._number}"

    def _fresh(self) -> str:
        self._number += 1
        return f"e{self._number}"

    def _actor(self) -> Actor:
        """Mostly a session's own, sometimes somebody else in it."""
        actor = self._chance.choice(ACTORS)
        if self._chance.random() < 0.05:
            return Actor(actor.session, actor.agent, "mallory")
        return actor

    def _open(self) -> Observe:
        return Observe(self._fresh(), self._actor(), Origin.OPEN, refused=self._chance.random() < 0.05)

    def _observe(self) -> Observe:
        outside = self._chance.choice((Origin.WEB, Origin.TOOL, Origin.SKILL, Origin.UPLOAD))
        return Observe(self._id(), self._actor(), outside, refused=self._chance.random() < 0.1)

    def _some(self) -> str:
        """The id of a write, or of none."""
        known = list(self._state.known)
        return self._chance.choice(known) if known and self._chance.random() < 0.93 else "never-seen"

    def _read(self) -> Read:
        actor, namespace = self._actor(), self._chance.choice(NAMESPACES)
        zone = Zone.GUIDANCE if self._chance.random() < 0.75 else Zone.EXTERNAL
        items = self._state.visible(actor.principal, actor.session, namespace, zone).values()
        given = [Given(item.event, item.tier, item.tau) for item in items]
        if self._chance.random() < 0.15:  # a reader that lies, or one whose store did
            tier = self._chance.choice(tuple(Tier))
            given.append(Given(self._some(), tier, self._chance.random() < 0.3, exact=self._chance.random() < 0.7))
        if given and self._chance.random() < 0.3:
            given = [self._chance.choice(given)]
        return Read(self._id(), actor, namespace, zone, tuple(given), refused=self._chance.random() < 0.05)

    def _write(self) -> Write:
        chance = self._chance
        source = chance.choices(tuple(SOURCES), (8, 7, 2, 2, 1))[0]
        tier = Tier.EXTERNAL_WEB if chance.random() < 0.03 else SOURCES[source]
        if source == "user" and chance.random() < 0.1:
            tier = Tier.USER_VERIFIED
        event_id = self._id()
        parents = {self._some() for _ in range(chance.randint(1, PARENTS_MAX))} if chance.random() < 0.4 else ()
        return Write(
            event_id,
            self._actor(),
            source,
            tier,
            value=f"note {self._number}",
            suspect=chance.random() < 0.15,
            key=chance.choice((None, None, None, *KEYS)),
            visibility=chance.choices(tuple(Visibility), (3, 6, 2))[0],
            namespace=chance.choice(NAMESPACES),
            parents=tuple(sorted(parents)),
        )

    def _scope(self) -> Scope:
        visibility, actor = self._chance.choice(tuple(Visibility)), self._chance.choice(ACTORS)
        owner = {Visibility.SESSION: actor.session, Visibility.PRINCIPAL: actor.principal, Visibility.SHARED: ""}
        return Scope(visibility, owner[visibility], self._chance.choice(NAMESPACES))

    def _protect(self) -> Order:
        by = "operator" if self._chance.random() < 0.85 else "reviewer"
        late = self._chance.random() < 0.05
        lies = [slot for slot in self._state.memory if slot[3]]
        if lies and self._chance.random() < 0.5:
            _, scope, key, _ = self._chance.choice(lies)
        else:
            scope, key = self._scope(), self._chance.choice(KEYS)
        return Order(self._fresh(), by, "protect", key, scope, late=late)

    def _review(self) -> Order | Write:
        """A decision about what waits; where nothing does, mostly a write that will, or may."""
        chance, waiting = self._chance, [name for name, held in self._state.held.items() if held.open]
        if self._desk and not waiting and chance.random() < 0.8:
            return replace(self._write(), suspect=True)
        target = chance.choice(waiting) if waiting and chance.random() < 0.85 else self._some()
        by = "reviewer" if chance.random() < 0.9 else "operator"
        action = chance.choices(("release", "replay", "reject"), (5, 5, 1))[0]
        digest, late = chance.random() < 0.93, chance.random() < 0.05
        order = Order(self._fresh(), by, action, target, digest=digest, late=late)
        return self._at_the_desk(order) if self._desk else order

    def _at_the_desk(self, order: Order) -> Order:
        """Return an order as a person at a screen gives it; sometimes one that takes a rejection back, or a note."""
        chance, held = self._chance, self._state.held
        closed = [name for name, one in held.items() if one.rejected]
        if closed and chance.random() < 0.4:
            order = replace(order, action="reopen", target=chance.choice(closed))
        elif chance.random() < 0.05:
            order = replace(order, action="note")
        elif chance.random() < 0.15:
            order = replace(order, action="reject")
        if order.action not in ("reopen", "note") and chance.random() < 0.5:
            order = replace(order, shown=chance.random() < 0.9)
        last = held[order.target].last if order.target in held else ""
        saw = chance.random()
        return replace(order, on="an-older-one" if saw < 0.1 else last if saw < 0.6 else "")

    def _landed(self) -> Order:
        """A command about an entry, mostly one that can be carried out."""
        chance = self._chance
        action = chance.choices(("promote", "declassify", "revoke", "withdraw", "renew"), (5, 5, 3, 2, 2))[0]
        lies = [name for name, known in self._state.known.items() if known.landed]
        held = [name for name, one in self._state.held.items() if one.open]
        if action == "declassify":
            lies = [name for name in lies if self._state.known[name].belief.tau]
        fit = held if held and action in ("declassify", "revoke") and chance.random() < 0.3 else lies
        target = chance.choice(fit) if fit and chance.random() < 0.9 else self._some()
        by = "reviewer" if chance.random() < (0.7 if action in ("revoke", "withdraw") else 0.9) else "operator"
        if action == "revoke" and chance.random() < 0.3:
            return Order(self._fresh(), by, action, chance.choice(ACTORS).session, session=True)
        return Order(
            self._fresh(),
            by,
            action,
            target,
            digest=chance.random() < 0.95,
            late=chance.random() < 0.03,
            approvals=2 if chance.random() < 0.85 else 1,
            stale=chance.random() < 0.2,
            despite=action in ("declassify", "promote") and chance.random() < 0.3,
        )

    def _wait(self) -> Wait:
        span = self._chance.choices((SHORT_MS, DAYS_MS, LONG_MS), (6, 3, 2))[0]
        if span == DAYS_MS and self._days == 2:
            span = LONG_MS
        self._days = {SHORT_MS: self._days, DAYS_MS: self._days + 1, LONG_MS: 0}[span]
        if span != SHORT_MS:  # the id that a command names may be another write's by now
            self._past = [event for event in self._past if not isinstance(event, Order)]
        return Wait(span)

    def _crash(self) -> Crash:
        return Crash()

    def _redeliver(self) -> Redeliver:
        return Redeliver(self._chance.randint(1, 8))

    def _repeat(self) -> Action:
        """The same event once more, at another offset."""
        past = [event for event in self._past if not isinstance(event, Read)]
        return self._chance.choice(past) if past else self._open()


@dataclass(frozen=True, slots=True)
class Played:
    """One sequence as it went: its actions, what was decided how often, and what differed at the end ("": nothing)."""

    seed: int
    actions: tuple[Action, ...]
    decisions: Counter[str]
    differs: str


def play(seed: int, *, staged: bool = False, broken: frozenset[str] = frozenset()) -> Played:
    """Play the sequence of a seed on both sides, up to the first difference."""
    chance = random.Random(seed)  # noqa: S311 - a sequence that can be drawn again, no secret
    strict, hold = chance.random() < 0.3, chance.random() < 0.3
    pair = Pair(strict=strict, hold_contained=hold, staged=staged, broken=broken)
    drawn = Walk(chance, pair.model, desk=True)
    actions: list[Action] = []
    decisions: Counter[str] = Counter()
    for number in range(chance.randint(LENGTH_MIN, LENGTH_MAX)):
        actions.append(drawn.opening() if number < OPENINGS else drawn.draw())
        differs = pair.step(actions[-1])
        if isinstance(actions[-1], Event):
            assert pair.verdict is not None
            decisions[pair.verdict.decision] += 1
        if differs:
            return Played(seed, tuple(actions), decisions, differs)
    return Played(seed, tuple(actions), decisions, _shown_differently(pair))


def _shown_differently(pair: Pair) -> str:
    """Compare what each session would be given in the end."""
    asked = product(ACTORS, NAMESPACES, Zone)
    return next(filter(None, (pair.visible(actor, namespace, zone) for actor, namespace, zone in asked)), "")
