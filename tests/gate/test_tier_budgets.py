"""The evidence's budget by trust tier: its factor counts where a write is screened, screened again, looked back on."""

import numpy as np
import pytest
from msgspec.structs import replace
from tests.gate.build import axis, classifier
from tests.gate.landed import Shop
from tests.gate.looking import Looking, fill
from tests.gate.test_landed import refused
from tests.gate.test_replay import replay

from memsluice.envelope.verdict import Decision, Verdict
from memsluice.events.models import Tier
from memsluice.gate.detectors.calibration.base import Settings
from memsluice.gate.detectors.calibration.conformal import Conformal
from memsluice.gate.detectors.calibration.state import EMPTY, State
from memsluice.gate.detectors.rarity import screen
from memsluice.gate.policy.model import DetectPolicy, default, laid_over

ASKED = "Which pier has the old blue boat of the harbour master?"
ANSWER = f"{ASKED} {'Pier nine has it, as pier nine had it. ' * 3}"


def shop(**per_tier: float) -> Shop:
    """Return a shop in which hundreds of plain statements landed, and somebody asked what a write is about to answer.

    Nothing is held there for its wording.
    """
    made = Shop(laid_over(default().default, {"detect": {"per_tier": per_tier}}))
    made.memory, made.model = fill(made.rows), classifier()
    made.observe("open")
    made.recall(ASKED, principal="ben", session="s2", vector=axis(2))
    return made


def answered(core: Shop, who: str = "agent") -> Verdict:
    """Return the verdict on an answer to what somebody else had asked."""
    return core.write(who, ANSWER, vector=axis(2)).verdict


@pytest.mark.parametrize(("per_tier", "held"), [({}, True), ({"operator": 0.0}, True), ({"user_observed": 0.0}, False)])
def test_the_same_write_is_held_by_the_factor_of_its_tier(per_tier: dict[str, float], held: bool) -> None:
    """A tier whose factor is small is held less; what another tier's is does nothing to it. The verdict has the level
    that held for the write, its factor included."""
    verdict = answered(shop(**per_tier))
    assert verdict.reasons == (("detect.held",) if held else ())
    assert verdict.usual is not None
    assert verdict.usual.level == (0.02 if held else 0.0)
    assert verdict.has("detect.scored") is not held


def test_two_tiers_have_two_verdicts_on_one_text() -> None:
    """An operator's and an agent's, in the same tenant and under the same policy."""
    decisions = [answered(shop(operator=0.0), who).decision for who in ("operator", "agent")]
    assert decisions == [Decision.ACCEPT, Decision.QUARANTINE]
    assert [answered(shop(), who).decision for who in ("operator", "agent")] == [Decision.QUARANTINE] * 2


def test_a_factor_that_is_left_out_is_one() -> None:
    """The shipped policy holds as it did, and a policy that names one tier changes no other."""
    assert default().default.detect.per_tier == DetectPolicy().per_tier
    for per_tier in ({}, {"user_verified": 0.5}):
        factors = DetectPolicy.model_validate({"per_tier": per_tier}).per_tier
        assert {tier: factors.of(tier) for tier in Tier if tier is not Tier.USER_VERIFIED} == dict.fromkeys(
            (tier for tier in Tier if tier is not Tier.USER_VERIFIED), 1.0
        )


def test_a_lifted_label_is_weighed_by_the_tier_that_the_content_gets() -> None:
    """Declassified content becomes an observed word: the factor of outside content says nothing any more."""
    for per_tier, code in (({"external_web": 0.0}, "declassification.detected"), ({"user_observed": 0.0}, "")):
        core = shop(**per_tier)
        assert answered(core, "web").decision is Decision.CONTAIN
        outcome = core.order("declassify", f"e{core.offset}")
        assert (refused(outcome) if code else outcome.verdict.decision) == (code or Decision.ACCEPT)


def test_a_replay_under_another_factor_is_one_under_another_policy() -> None:
    """Somebody decided that this tier is held less: what was held lands, since no calibration moved."""
    core = shop()
    assert answered(core).decision is Decision.QUARANTINE
    entry = core.last
    assert entry is not None
    core.policy = laid_over(core.policy, {"detect": {"per_tier": {"operator": 0.0}}})
    assert replay(core, entry).verdict.reasons == ("detect.held",), "another tier's"
    core.policy = laid_over(core.policy, {"detect": {"per_tier": {"user_observed": 0.0}}})
    assert replay(core, entry).verdict.decision is Decision.ACCEPT


def test_look_back_goes_by_the_tier_of_the_entry() -> None:
    """What would not have been held when it was written is not taken out by a question that comes later."""
    taken = []
    for per_tier in ({}, {"operator": 0.0}, {"user_observed": 0.0}):
        found = Looking(per_tier=per_tier)
        found.passage()
        taken.append(len(found.ask().verdict.withdraws))
    assert taken == [1, 1, 0]


def test_the_tenants_level_is_one_and_its_factor_the_writes() -> None:
    """The level that follows what is held stands on the budget itself; a tier's writes meet it times their factor, are
    expected to be held so much more or less, and no line lies above 1."""
    usual = Settings("conformal", alpha=0.02, gamma=0.01)
    small, large = (replace(usual, factor=factor) for factor in (0.5, 10.0))
    state = EMPTY.over(np.zeros(100))
    assert [Conformal(one).judge(1.0, state).level for one in (small, usual, large)] == [0.01, 0.02, 0.2]
    assert Conformal(replace(large, alpha=0.5)).judge(1.0, state).level == 1.0
    levels = [moved(one, held=held) for one in (small, usual, large) for held in (False, True)]
    assert levels == pytest.approx([0.0201, 0.0101, 0.0202, 0.0102, 0.022, 0.012])


def moved(settings: Settings, *, held: bool) -> float | None:
    """Return the level after one screened write."""
    state: State = EMPTY.screened(settings, "e1", 0.5, held=held)
    return state.level


def test_settings_are_those_of_the_tier() -> None:
    """Nobody's budget is a tier's by accident: without a tier there is no factor."""
    policy = DetectPolicy.model_validate({"per_tier": {"user_verified": 0.25}})
    assert [screen.settings(policy, tier).factor for tier in (None, Tier.OPERATOR, Tier.USER_VERIFIED)] == [
        1.0,
        1.0,
        0.25,
    ]
