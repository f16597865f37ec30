"""Drift by many small steps: what one principal's writes together tell agents to do."""

from math import log
from typing import Any

from tests.gate.build import classifier
from tests.gate.landed import Shop
from tests.gate.test_replay import replay

from memsluice.envelope.seals import Wording
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.policy.model import default, laid_over
from memsluice.gate.state.kinds import DRIFT
from memsluice.gate.state.windows import DAY_MS

STEP, SMALLER, PLAIN = 0.0, -0.9, -2.0
"""Log-odds that one honest text in ten has, one in five, and one in two (:data:`tests.gate.build.EVEN`)."""
EACH = log(10) - 1.2


def shop(**drift: Any) -> Shop:
    """Return a shop whose wording model goes by the log-odds that a write is given."""
    made = Shop(
        laid_over(default().default, {"drift": {"action": "hold", **drift}, "writes_per_day": {"user_observed": None}})
    )
    made.memory, made.model = Memory.empty(50, 50), classifier()
    return made


def say(core: Shop, logit: float, who: str = "ana", channel: str = "user", **fields: Any) -> Verdict:
    """Return the verdict on a write of one principal that says so much to do."""
    if channel == "agent":
        core.observe("open", principal=who, session=f"of-{who}")
    text = f"Asking first takes long, number {core.offset}."
    shown = Wording(logit, 0, len(text), len(text))
    return core.write(channel, text, wording=shown, principal=who, session=f"of-{who}", **fields).verdict


def test_steps_add_up_until_one_is_held() -> None:
    """None of them is an order; the one that exceeds the limit is held, and says the sum and of how many writes."""
    core = shop()
    fit = int(5.0 / EACH)
    assert [say(core, STEP).decision for _ in range(fit)] == [Decision.ACCEPT] * fit
    verdict = say(core, STEP)
    assert (verdict.decision, verdict.reasons) == (Decision.QUARANTINE, ("drift.nudged",))
    detail = next(dict(one.detail) for one in verdict.findings if one.code == "drift.nudged")
    assert (detail["limit"], detail["writes"], detail["p"]) == (5.0, fit + 1, 0.1)
    assert abs(detail["sum"] - (fit + 1) * EACH) < 0.01


def test_what_is_held_for_it_adds_nothing() -> None:
    """The sum stays where it was, so a smaller step of the same principal lands, which fits only beside what landed."""
    core = shop()
    for _ in range(8):
        say(core, STEP)
    row = DRIFT.load(core.rows[DRIFT.key("acme", "ana\x1fuser")])
    assert row.total <= 5.0
    assert say(core, SMALLER).decision is Decision.ACCEPT
    grown = DRIFT.load(core.rows[DRIFT.key("acme", "ana\x1fuser")])
    assert row.total < grown.total <= 5.0


def test_plain_writes_pay_it_back() -> None:
    """One who says little to do between the steps never comes near the limit, and leaves no row behind."""
    core = shop()
    for _ in range(30):
        assert say(core, STEP).decision is Decision.ACCEPT
        assert [say(core, PLAIN).decision for _ in range(3)] == [Decision.ACCEPT] * 3
    assert DRIFT.key("acme", "ana\x1fuser") not in core.rows


def test_nobody_pays_for_another() -> None:
    """Principals and channels have sums of their own: an agent's steps are not those of the person it works for."""
    core = shop()
    for _ in range(6):
        say(core, STEP, channel="agent")
    assert say(core, STEP, channel="agent").reasons == ("drift.nudged",)
    assert say(core, STEP).decision is Decision.ACCEPT
    assert say(core, STEP, who="ben", channel="agent").decision is Decision.ACCEPT


def test_it_forgets() -> None:
    """After so many days without a step the sum begins anew."""
    core = shop(days=3)
    for _ in range(6):
        say(core, STEP)
    assert say(core, STEP).decision is Decision.QUARANTINE
    later = 1_780_000_000_000 + 4 * DAY_MS
    assert say(core, STEP, append_ms=later).decision is Decision.ACCEPT


def test_as_shipped_it_is_told_and_lands() -> None:
    """Every further step is told; ignore says nothing and keeps no row."""
    core = shop(action="report")
    told = [say(core, STEP).has("drift.nudged") for _ in range(8)]
    assert told == [False] * 4 + [True] * 4
    assert default().default.drift.action == "report"
    off = shop(action="ignore")
    assert not any(say(off, STEP).has("drift.nudged") for _ in range(8))
    assert DRIFT.key("acme", "ana\x1fuser") not in off.rows


def test_outside_content_is_no_step() -> None:
    """What a tool says is data, however often it says it."""
    core = shop()
    assert [say(core, STEP, channel="tool").decision for _ in range(8)] == [Decision.CONTAIN] * 8
    assert not [key for key in core.rows if b"\0drift\0" in key]


def test_a_replay_under_the_same_policy_lands_nothing_unread() -> None:
    """The sum is not counted again: the write stays held until somebody reads it, or the rule is made looser."""
    core = shop()
    while say(core, STEP).decision is Decision.ACCEPT:
        pass
    held = core.last
    assert held is not None
    assert replay(core, held).verdict.reasons == ("replay.recalibrated",)
    core.policy = laid_over(core.policy, {"drift": {"action": "report"}})
    assert replay(core, held).verdict.decision is Decision.ACCEPT
