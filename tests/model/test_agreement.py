"""The production core against the reference model: seeded sequences, and what a comparison is worth."""

import pytest

from memsluice.events.models import Origin, Tier, Visibility, Zone
from memsluice_lab.figures.modelled import BREAKABLE, first_difference, played
from memsluice_lab.model import rules
from memsluice_lab.model.actions import Actor, Given, Observe, Order, Read, Scope, Write
from memsluice_lab.model.compare import T0, Pair
from memsluice_lab.model.state import ModelState
from memsluice_lab.model.transition import step

ANA = Actor("s0", "planner", "ana")
BOB = Actor("s1", "clerk", "bob")
SEQUENCES = 600
"""More than twice the seed at which the last of the rules that are left out shows (140); a figure plays 100,000."""


def test_the_core_and_the_model_agree_on_every_step_of_random_sequences() -> None:
    """Decision, zone, taint, tier, visibility, expiry and what each session is given: a fifth of the sequences through
    the whole stage with crashes and re-deliveries; Theorem 1 holds throughout."""
    tally = played(range(SEQUENCES))
    assert tally.disagreements == []
    assert tally.staged == SEQUENCES // 5
    assert min(tally.decisions[name] for name in ("accept", "contain", "quarantine", "reject", "duplicate")) > 150


@pytest.mark.parametrize("rule", BREAKABLE)
def test_a_model_without_one_of_the_rules_is_told_from_the_core(rule: str) -> None:
    """The comparison can fail: leave one rule out of the oracle, and random sequences find it."""
    found = first_difference(rule)
    assert found is not None
    assert found < SEQUENCES / 2


def kept_key(*orders: Order) -> str:
    """Return what differs when Ana's first note under a key was replaced by a second, and these orders follow."""
    pair = Pair()
    notes = [Write(f"n{number}", ANA, "user", Tier.USER_OBSERVED, f"note {number}", key="k") for number in (1, 2)]
    return next((differs for one in (*notes, *orders) if (differs := pair.step(one))), "")


@pytest.mark.parametrize(
    ("away", "action"), [("promote", "revoke"), ("withdraw", "promote"), ("withdraw", "revoke"), ("revoke", "promote")]
)
def test_an_entry_that_was_replaced_stays_replaced_when_its_successor_goes(away: str, action: str) -> None:
    """m is not in M: no command brings the old value of a key back, or takes out what is not there."""
    assert not kept_key(Order("o1", "reviewer", away, "n2"), Order("o2", "reviewer", action, "n1"))


def test_rule_1_a_read_carries_taint_into_what_the_session_believes() -> None:
    """READ of a tainted item: what the agent writes afterwards is tainted; what the person types is not."""
    state = ModelState(T0)
    step(state, Observe("o", ANA, Origin.OPEN))
    step(state, Write("w", ANA, "web", Tier.EXTERNAL_WEB, "page"))
    assert step(state, Write("a1", ANA, "agent", Tier.USER_OBSERVED, "before")).zone is Zone.GUIDANCE
    step(state, Read("r", ANA, "default", Zone.EXTERNAL, (Given("w", Tier.EXTERNAL_WEB, True),)))
    assert step(state, Write("a2", ANA, "agent", Tier.USER_OBSERVED, "after")).zone is Zone.EXTERNAL
    assert step(state, Write("u", ANA, "user", Tier.USER_OBSERVED, "typed")).zone is Zone.GUIDANCE


@pytest.mark.parametrize(("source", "tier"), [("tool", Tier.EXTERNAL_TOOL), ("web", Tier.EXTERNAL_WEB)])
def test_rules_3_to_5_change_no_state_in_the_strict_profile(source: str, tier: Tier) -> None:
    """Immutable, tainted, untrusted: rejected, and M is what it was."""
    state = ModelState(T0, strict=True)
    scope = Scope(Visibility.PRINCIPAL, "ana", "default")
    step(state, Write("soul", ANA, "user", Tier.USER_OBSERVED, "v0", key="SOUL.md"))
    step(state, Order("p", "operator", "protect", "SOUL.md", scope))
    before = dict(state.memory)
    for write in (
        Write("w1", ANA, "user", Tier.USER_OBSERVED, "v1", key="SOUL.md"),
        Write("w2", ANA, "user", Tier.USER_OBSERVED, "v2", parents=("never-seen",)),
        Write("w3", ANA, source, tier, "v3"),
    ):
        assert step(state, write).decision == rules.REJECT
    assert state.memory == before


def test_rule_9_shows_a_session_its_own_and_what_is_shared() -> None:
    """Nobody shares by asking for it, except an operator."""
    state = ModelState(T0)
    step(state, Write("u", ANA, "user", Tier.USER_OBSERVED, "mine", visibility=Visibility.SHARED))
    step(state, Write("op", ANA, "operator", Tier.OPERATOR, "all", visibility=Visibility.SHARED))

    def seen(actor: Actor) -> set[str]:
        return {item.value for item in state.visible(actor.principal, actor.session, "default", Zone.GUIDANCE).values()}

    assert seen(ANA) == {"mine", "all"}
    assert seen(BOB) == {"all"}
