"""Model and production side by side: after every action both must say the same, and Theorem 1 must hold.

What is compared of a write: decision, zone, taint, tier, visibility, expiry, and so whether it landed. Of what a
session may be given: exactly the same items. The theorem is checked of what production landed.
"""

from memsluice.envelope.verdict import Verdict
from memsluice.events.models import Tier, Visibility, Zone
from memsluice_lab.model import rules
from memsluice_lab.model.actions import Action, Actor, Crash, Event, Order, Read, Redeliver, Scope, Wait, Write
from memsluice_lab.model.production import Decided, Shelved, policy
from memsluice_lab.model.staged import Staged
from memsluice_lab.model.state import ModelState
from memsluice_lab.model.transition import step

T0 = 1_780_000_000_000
TICK_MS = 1_000


class Pair:
    """One run of both. ``broken`` names rules that the model leaves out on purpose; see :class:`ModelState`."""

    def __init__(
        self,
        *,
        strict: bool = False,
        hold_contained: bool = False,
        staged: bool = False,
        broken: frozenset[str] = frozenset(),
    ) -> None:
        self.model = ModelState(T0, strict, hold_contained, broken)
        in_force = policy(strict=strict, hold_contained=hold_contained)
        self.production = Staged(in_force) if staged else Decided(in_force)
        self.verdict: Verdict | None = None
        self._dies = False
        self._frozen: dict[tuple[Zone, Scope, str], tuple[str, str] | None] = {}
        self._promoted: set[str] = set()

    def step(self, action: Action) -> str:
        """Do one action on both sides; return where they differ or the theorem fails, "" where neither is so."""
        if isinstance(action, Wait):
            self.model.now += action.ms
            return ""
        if isinstance(action, Crash):
            self._dies = True
            return ""
        if isinstance(action, Redeliver):
            return self.production.redeliver(action.back)
        return self._event(action)

    def _event(self, event: Event) -> str:
        self.model.now += TICK_MS
        before = self.production.guidance_changes
        said = self.verdict = self.production.decide(event, self.model.now, self._dies)
        self._dies = False
        expected = step(self.model, event)
        if isinstance(event, Order) and said.decision not in (rules.REJECT, rules.DUPLICATE):
            self._ordered(event)
        differs = self._verdicts(expected, said) or self._theorem(event, said, expected, before)
        if not differs and isinstance(event, Read):
            differs = self.visible(event.actor, event.namespace, event.zone)
        return f"{event}: {differs}" if differs else ""

    def _verdicts(self, expected: rules.Verdict, said: Verdict) -> str:
        pairs: list[tuple[str, object, object]] = [("decision", expected.decision, said.decision)]
        if expected.decision != rules.DUPLICATE:
            pairs += [
                ("zone", expected.zone, said.zone),
                ("visibility", expected.visibility, said.visibility),
                ("until", expected.until, said.expires_ms),
                ("landed", expected.zone is not None, said.object_id is not None),
            ]
        if expected.tier is not None:
            pairs += [("tier", expected.tier, said.tier), ("taint", expected.taint, said.taint)]
        return "; ".join(f"{what}: model {one!r}, gate {other!r}" for what, one, other in pairs if one != other)

    def _theorem(self, event: Event, said: Verdict, expected: rules.Verdict, before: int) -> str:
        """Theorem 1 of what production did. Part III at large is :meth:`visible`; here: what just landed."""
        for (zone, scope, key), lay in self._frozen.items():
            if self._lies(zone, scope, key) != lay:
                return f"Part I: {key!r} in {scope} is immutable and changed"
        tainted = isinstance(event, Write) and (expected.taint or not event.tier.trusted)
        if tainted and self.production.guidance_changes != before:
            return "Part II: a tainted write changed what agents follow"
        if self.production.guidance_changes != before and said.object_id is not None:
            landed = self.production.shelf[said.object_id]
            if landed.zone is Zone.GUIDANCE and (landed.taint or not landed.tier.trusted):
                return f"Part II: {landed.writer.id} lies in guidance and is tainted"
            if not self._stays(landed):
                return f"Part III: {landed.visibility} of {landed.owner!r} is not the writer's own"
        return ""

    def visible(self, actor: Actor, namespace: str, zone: Zone) -> str:
        """Compare what both would give to a session."""
        who = (actor.principal, actor.session, namespace, zone)
        wanted = sorted((item.event, item.value) for item in self.model.visible(*who).values())
        shown = [item for item in self.production.shelf.values() if item.shown_to(*who, self.model.now)]
        found = sorted((item.writer.id, item.writer.value) for item in shown)
        return f"visible to {who}: model {wanted}, gate {found}" if wanted != found else ""

    def _ordered(self, order: Order) -> None:
        """Note what a command allows from now on."""
        if order.action == "promote":
            self._promoted.add(order.target)
        if order.action == "protect" and order.scope is not None:
            places = [(zone, order.scope, order.target) for zone in Zone]
            self._frozen |= {place: self._lies(*place) for place in places}
        if order.action in ("revoke", "withdraw") and not order.session:
            self._taken_out(order)

    def _taken_out(self, order: Order) -> None:
        """Note where the target of a command lay that is there no more. Nothing else may differ by it, not even then.

        What is followed goes by an operator's word alone, which ends the protection; what is data, by a reviewer's too.
        """
        for place, lay in list(self._frozen.items()):
            zone, scope, key = place
            if lay is None or lay[0] != order.target or self._lies(*place) is not None:
                continue
            if zone is Zone.EXTERNAL:
                self._frozen[place] = None
            elif order.by == "operator":
                self._frozen = {one: was for one, was in self._frozen.items() if one[1:] != (scope, key)}

    def _lies(self, zone: Zone, scope: Scope, key: str) -> tuple[str, str] | None:
        """Return whose item lies under a key, and its value."""
        for item in self.production.shelf.values():
            place = (item.zone, Scope(item.visibility, item.owner, item.writer.namespace), item.writer.key)
            if place == (zone, scope, key):
                return item.writer.id, item.writer.value
        return None

    def _stays(self, item: Shelved) -> bool:
        """Whether an item is visible in its writer's own scope alone, or shared by an operator or a promotion."""
        writer = item.writer
        if item.visibility is Visibility.SHARED:
            return writer.id in self._promoted or (writer.source == "operator" and writer.tier is Tier.OPERATOR)
        return item.owner == (writer.actor.session if item.visibility is Visibility.SESSION else writer.actor.principal)
