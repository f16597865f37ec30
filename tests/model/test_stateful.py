"""Hypothesis looks for an interleaving on which the production core and the reference model differ, and shrinks it."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, multiple, rule

from memsluice.events.models import Origin, Tier, Visibility, Zone
from memsluice_lab.model.actions import Action, Crash, Given, Observe, Order, Read, Redeliver, Scope, Wait, Write
from memsluice_lab.model.compare import Pair
from memsluice_lab.model.walk import ACTORS, DAYS_MS, KEYS, LONG_MS, NAMESPACES, SHORT_MS, SOURCES

ACTOR = st.sampled_from(ACTORS)
NAMESPACE = st.sampled_from(NAMESPACES)
OUTSIDE = st.sampled_from([Origin.WEB, Origin.TOOL, Origin.SKILL, Origin.UPLOAD])
OWNERS = {Visibility.SESSION: ["s0", "s1", "s2", "s3"], Visibility.PRINCIPAL: ["ana", "bob"], Visibility.SHARED: [""]}


class Interleaving(RuleBasedStateMachine):
    """Any order of reads, writes, observations, commands, waits, crashes and re-deliveries, through the real stage."""

    writes: Bundle[str] = Bundle("writes")
    held: Bundle[str] = Bundle("held")

    @initialize(strict=st.booleans(), hold=st.booleans())
    def start(self, strict: bool, hold: bool) -> None:
        """Begin with nothing, under one of four policies."""
        self.pair = Pair(strict=strict, hold_contained=hold, staged=True)
        self.number = 0
        self.days = 0
        self.past: list[Action] = []

    def do(self, action: Action) -> None:
        """Do an action on both sides."""
        differs = self.pair.step(action)
        assert not differs, differs
        if isinstance(action, Write | Observe | Order):
            self.past.append(action)

    def fresh(self) -> str:
        """Return an id that was not used."""
        self.number += 1
        return f"e{self.number}"

    @rule(actor=ACTOR)
    def opens(self, actor: Any) -> None:
        """The platform opens a session."""
        self.do(Observe(self.fresh(), actor, Origin.OPEN))

    @rule(actor=ACTOR, origin=OUTSIDE, refused=st.booleans())
    def observes(self, actor: Any, origin: Origin, refused: bool) -> None:
        """A session sees outside content."""
        self.do(Observe(self.fresh(), actor, origin, refused))

    @rule(
        target=writes,
        actor=ACTOR,
        source=st.sampled_from(sorted(SOURCES)),
        key=st.sampled_from([None, *KEYS]),
        visibility=st.sampled_from(Visibility),
        namespace=NAMESPACE,
        parents=st.lists(writes | st.just("never-seen"), max_size=2, unique=True),
    )
    def remembers(self, actor: Any, source: str, parents: list[str], **place: Any) -> Any:
        """Something wants to be remembered."""
        name = self.fresh()
        self.do(Write(name, actor, source, SOURCES[source], f"note {name}", parents=tuple(parents), **place))
        return name

    @rule(target=held, actor=ACTOR, source=st.sampled_from(["user", "agent"]), key=st.sampled_from([None, *KEYS]))
    def is_suspected(self, actor: Any, source: str, key: str | None) -> Any:
        """Something that a content check stops."""
        name = self.fresh()
        self.do(Write(name, actor, source, SOURCES[source], f"note {name}", suspect=True, key=key))
        return name if name in self.pair.model.held else multiple()

    @rule(actor=ACTOR, namespace=NAMESPACE, zone=st.sampled_from(Zone))
    def recalls(self, actor: Any, namespace: str, zone: Zone) -> None:
        """A session asks its memory and is given all that it may see."""
        items = self.pair.model.visible(actor.principal, actor.session, namespace, zone).values()
        given = tuple(Given(item.event, item.tier, item.tau) for item in items)
        self.do(Read(self.fresh(), actor, namespace, zone, given))

    @rule(actor=ACTOR, event=writes, tier=st.sampled_from(Tier), taint=st.booleans(), exact=st.booleans())
    def is_given(self, actor: Any, event: str, tier: Tier, taint: bool, exact: bool) -> None:
        """A reader reports something that may be none of it: another's, an old version, a wrong label."""
        self.do(Read(self.fresh(), actor, "default", Zone.GUIDANCE, (Given(event, tier, taint, exact),)))

    @rule(key=st.sampled_from(KEYS), visibility=st.sampled_from(Visibility), namespace=NAMESPACE, data=st.data())
    def protects(self, key: str, visibility: Visibility, namespace: str, data: Any) -> None:
        """An operator makes a key immutable."""
        scope = Scope(visibility, data.draw(st.sampled_from(OWNERS[visibility])), namespace)
        self.do(Order(self.fresh(), "operator", "protect", key, scope))

    @rule(
        target=held,
        event=consumes(held),
        action=st.sampled_from(["release", "replay", "reject", "declassify", "revoke"]),
        fair=st.booleans(),
    )
    def is_reviewed(self, event: str, action: str, fair: bool) -> Any:
        """A reviewer decides about what is held, or somebody who may not."""
        self.do(Order(self.fresh(), "reviewer" if fair else "operator", action, event, approvals=2))
        return event

    @rule(
        event=writes,
        action=st.sampled_from(["promote", "declassify", "revoke", "withdraw", "renew"]),
        by=st.sampled_from(["reviewer", "reviewer", "operator"]),
        approvals=st.integers(1, 2),
        digest=st.booleans(),
        stale=st.booleans(),
    )
    def is_ordered(self, event: str, action: str, by: str, **command: Any) -> None:
        """A command about an entry, landed or held."""
        self.do(Order(self.fresh(), by, action, event, **command))

    @rule(span=st.sampled_from([SHORT_MS, DAYS_MS, LONG_MS]))
    def waits(self, span: int) -> None:
        """Time passes."""
        span = LONG_MS if span == DAYS_MS and self.days == 2 else span
        self.days = {SHORT_MS: self.days, DAYS_MS: self.days + 1, LONG_MS: 0}[span]
        self.do(Wait(span))

    @rule()
    def crashes(self) -> None:
        """The worker dies before the next event is committed."""
        self.do(Crash())

    @rule(back=st.integers(1, 20))
    def is_redelivered(self, back: int) -> None:
        """The broker gives an old record again."""
        self.do(Redeliver(back))

    @rule(data=st.data())
    def is_repeated(self, data: Any) -> None:
        """A producer sends an event once more."""
        if self.past:
            self.do(data.draw(st.sampled_from(self.past)))

    @invariant()
    def everybody_sees_the_same(self) -> None:
        """Rule 9 and Part III: each session would be given exactly what the model says."""
        for actor in ACTORS if hasattr(self, "pair") else ():
            assert not self.pair.visible(actor, "default", Zone.GUIDANCE)


TestInterleaving = Interleaving.TestCase
TestInterleaving.settings = settings(
    max_examples=120, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
