"""A replay lets in nothing that a rule on contents held and that nobody read, while the rule itself did not change."""

from typing import Any

import pytest
from tests.gate.build import Core, axis
from tests.gate.test_replay import relaxed, replay, row
from tests.gate.test_review import order

from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision
from memsluice.events.models import Tier
from memsluice.gate.policy import parts
from memsluice.gate.policy.model import default, laid_over
from memsluice.gate.policy.wording import Reach

NEAR = "The key lies under the mat."


def held_by_memsad(**changes: Any) -> tuple[Core, Sealed]:
    """Return a core whose MEMSAD held a write near the only question, which it has forgotten since."""
    policy = {"detector": "memsad", "memsad": {"history_size": 1}, **changes}
    core = Core(laid_over(default().default, policy))
    core.recall(vector=axis(0))
    assert core.write(content=NEAR, vector=axis(0)).verdict.reasons == ("memsad.above_threshold",)
    entry = core.last
    assert entry is not None
    core.recall(vector=axis(9))
    return core, entry


def test_what_only_the_calibration_would_let_in_stays_held_and_says_what_moved() -> None:
    """The verdict has the old numbers and the new; the row keeps why it is held, and which run showed it."""
    core, entry = held_by_memsad()
    verdict = replay(core, entry, parameters={"run": "r1"}).verdict
    assert (verdict.decision, verdict.reasons) == (Decision.QUARANTINE, ("replay.recalibrated",))
    assert verdict.object_id is None
    (told,) = next(one.detail["changes"] for one in verdict.findings if one.code == "replay.recalibrated")
    assert told == {
        "rule": "memsad", "was": {"score": 1.0, "threshold": 0.6}, "now": {"score": 0.0, "threshold": 0.6},
    }  # fmt: skip
    kept = row(core, "e1")
    assert (kept["state"], kept["codes"], kept["shown"]) == ("held", ["memsad.above_threshold"], ["r1"])
    assert replay(core, entry).verdict.reasons == ("replay.recalibrated",)


def test_it_lands_by_a_replay_that_names_the_run_which_showed_it() -> None:
    """Bound to this write: the command carries its digest, and the row has the run."""
    core, entry = held_by_memsad()
    replay(core, entry, parameters={"run": "r1"})
    verdict = replay(core, entry, parameters={"run": "r2", "accept": "r1"}).verdict
    assert verdict.decision is Decision.ACCEPT
    assert verdict.object_id is not None
    assert verdict.has("replay.accepted")


def test_a_run_that_did_not_show_it_lets_nothing_in() -> None:
    """Neither one that nobody knows, nor one in which a rule still held it, nor one of long ago."""
    core = Core(laid_over(default().default, {"detector": "memsad", "memsad": {"history_size": 1}}))
    core.recall(vector=axis(0))
    core.write(content=NEAR, vector=axis(0))
    entry = core.last
    assert entry is not None
    assert replay(core, entry, parameters={"run": "held"}).verdict.reasons == ("memsad.above_threshold",)
    core.recall(vector=axis(9))
    for run in ("held", "never"):
        verdict = replay(core, entry, parameters={"run": "r", "accept": run}).verdict
        assert (verdict.decision, verdict.reasons) == (Decision.REJECT, ("replay.not_shown",))
    for number in range(5):
        replay(core, entry, parameters={"run": f"r{number}"})
    assert row(core, "e1")["shown"] == ["r1", "r2", "r3", "r4"]
    assert replay(core, entry, parameters={"accept": "r0"}).verdict.reasons == ("replay.not_shown",)


def test_a_dry_run_shows_it_too_and_lets_nothing_in() -> None:
    """It says that it would stay held; what it showed may be accepted, and an acceptance may be rehearsed."""
    core, entry = held_by_memsad()
    dry = replay(core, entry, parameters={"run": "d1", "dry": "yes"}).verdict
    assert (dry.decision, dry.reasons) == (Decision.RECORD, ("replay.recalibrated",))
    assert dry.findings[-1].detail["would"] == "quarantine"
    rehearsed = replay(core, entry, parameters={"run": "d2", "dry": "yes", "accept": "d1"}).verdict
    assert (rehearsed.findings[-1].detail["would"], rehearsed.object_id) == ("accept", None)
    assert replay(core, entry, parameters={"accept": "d1"}).verdict.decision is Decision.ACCEPT


@pytest.mark.parametrize(
    ("changed", "lands"),
    [
        ({"memsad": {"history_size": 1, "cold_threshold": 0.7}}, True),
        ({"detector": "default", "memsad": {"history_size": 1}}, True),
        ({"quarantine": {"age_days": 5}, "ttl_seconds": {"user_observed": 60}}, False),
        ({"instructions": {"enabled": False}, "detect": {"threshold": 9.0}}, False),
        ({"name": "renamed", "writes_per_day": {"user_observed": None}}, False),
        ({"memsad": {"history_size": 1, "kappa": 0.5}}, False),
        ({"memsad": {"history_size": 1, "kappa": 9.0}}, True),
        ({"memsad": {"history_size": 1, "cold_threshold": 0.5}}, False),
        ({"memsad": {"history_size": 1, "alpha": 0.5, "proactive_threshold": 0.1, "watermark_z": 9.0}}, False),
        ({"memsad": {"history_size": 1, "calibration": {"strategy": "m_star", "gamma": 0.1, "credit": True}}}, False),
        ({"memsad": {"history_size": 1, "calibration": {"strategy": "fixed"}}}, True),
        ({"mode": "shadow"}, True),
    ],
)
def test_only_a_change_of_the_rule_that_held_it_lets_it_in(changed: dict[str, Any], lands: bool) -> None:
    """Lifetimes, shares, a name, and the rules of other detectors say nothing of it, nor does the rule itself, made
    stricter, or told what its strategy does not read: then it was the calibration that let it in. Shadow mode lands
    everything."""
    core, entry = held_by_memsad()
    core.policy = laid_over(core.policy, changed)
    verdict = replay(core, entry).verdict
    assert (verdict.object_id is not None) == lands, verdict.reasons


RANKS, MOMENTS, FIXED = {"strategy": "conformal"}, {"strategy": "rolling"}, {"strategy": "fixed"}


@pytest.mark.parametrize(
    ("module", "was", "now", "loosened"),
    [
        ("detect", {"reach": ["relied"]}, {"reach": ["own", "relied", "shared"]}, False),
        ("detect", {"reach": ["relied", "shared"]}, {"reach": ["relied"]}, False),
        ("detect", {"reach": ["relied", "shared"]}, {"reach": ["shared"]}, True),
        ("detect", {}, {"alpha": 0.5, "kappa": 0.1}, False),
        ("detect", {}, {"alpha": 0.001}, True),
        ("detect", {}, {"kappa": 9.0}, False),
        ("detect", {}, {"per_tier": {"user_observed": 0.5}}, True),
        ("detect", {}, {"per_tier": {"user_observed": 2.0}}, False),
        ("detect", {"calibration": MOMENTS}, {"calibration": MOMENTS, "per_tier": {"user_observed": 0.5}}, False),
        ("memsad", {"calibration": RANKS}, {"calibration": RANKS, "alpha": 0.5}, False),
        ("memsad", {"calibration": RANKS}, {"calibration": RANKS, "alpha": 0.001}, True),
        ("memsad", {"calibration": RANKS}, {"calibration": RANKS | {"gamma": 0.05}}, True),
        ("memsad", {"variant": "composite"}, {"variant": "composite", "proactive_threshold": 0.1}, False),
        ("memsad", {"variant": "composite"}, {"variant": "composite", "proactive_threshold": 0.5}, True),
        ("wording", {"own": 0.01}, {"own": 0.02, "per_tier": {"operator": 0.5}}, False),
        ("wording", {}, {"with_pattern": 0.05}, True),
        ("wording", {}, {"with_pattern_own": 0.01, "own": 0.01, "shared": 0.04}, False),
        ("wording", {}, {"relied": 0.01}, True),
        ("wording", {}, {"per_tier": {"operator": 0.1}}, False),
        ("wording", {}, {"per_tier": {"user_observed": 0.1}}, True),
        ("detect", {}, {"per_tier": {"operator": 0.1}}, False),
        ("drift", {}, {"limit": 9.0}, True),
        ("drift", {}, {"limit": 1.0, "days": 1}, False),
        ("wording", {}, {"action": "report"}, True),
        ("memsad", {"calibration": FIXED}, {"calibration": FIXED, "window": 300}, False),
        ("memsad", {"calibration": FIXED}, {"calibration": FIXED, "delta": 0.2, "kappa": 1.9}, False),
        ("memsad", {"calibration": MOMENTS}, {"calibration": MOMENTS, "window": 300, "reference_size": 90}, False),
        ("memsad", {"history_size": 50}, {"history_size": 60}, False),
        ("memsad", {}, {"history_size": 60}, False),
        ("memsad", {"variant": "composite"}, {"variant": "composite", "watermark_z": 9.0}, False),
        ("memsad", {}, {"mode": "max"}, True),
        ("memsad", {"enabled": True}, {"enabled": False}, True),
        ("detect", {"signals": ["wording"]}, {"signals": ["wording", "question"]}, False),
        ("detect", {}, {"signals": ["wording"]}, True),
        ("detect", {}, {"questions": 2_000, "entries": 2_000, "window": 300}, False),
        ("detect", {}, {"questions": 999, "entries": 999}, False),
        ("detect", {"calibration": FIXED}, {"calibration": FIXED, "window": 300}, False),
        ("memsad", {"variant": "memsad_plus"}, {"variant": "memsad_plus", "kappa": 9.0}, True),
    ],
)
def test_a_rule_is_looser_where_what_it_reads_lets_more_in(
    module: str, was: dict[str, Any], now: dict[str, Any], loosened: bool
) -> None:
    """More reach, a larger share and a lower threshold hold more; what strategy and variant do not read does nothing,
    nor does what is said of other tiers and reaches, or how much is remembered. A digest that another version took
    tells of no change. The write is an observed user's that others rely on."""
    before, after = (laid_over(default().default, {module: some}) for some in (was, now))
    said = parts.digest(before, module), parts.strictness(before, module)
    whose = Tier.USER_OBSERVED, Reach.RELIED
    assert parts.loosened(after, module, *whose, *said) == loosened
    assert not parts.loosened(after, module, *whose, said[0].removeprefix(parts.FORM), said[1])


@pytest.mark.parametrize("between", [{}, {"memsad": {"history_size": 1, "kappa": 9.0}}])
def test_a_policy_that_refuses_it_outright_forgets_no_rule(between: dict[str, Any]) -> None:
    """A replay under a policy by which the write is too long looks at nothing else: what held it before holds it
    still, whatever that policy says of the rule, and the policy of before that is put back lets nothing in unread."""
    core, entry = held_by_memsad()
    before = core.policy
    core.policy = laid_over(before, {"content_bytes_max": 1, **between})
    replay(core, entry)
    assert set(row(core, "e1")["codes"]) == {"limits.content_bytes", "memsad.above_threshold"}
    core.policy = before
    assert replay(core, entry).verdict.reasons == ("replay.recalibrated",)


def held_for_two_reasons() -> tuple[Core, Sealed]:
    """Return a core whose MEMSAD held a write that was beyond its writer's rate, too, and has forgotten why."""
    policy = {"detector": "memsad", "memsad": {"history_size": 1}, "writes_per_day": {"user_observed": 1}}
    core = Core(laid_over(default().default, policy))
    core.recall(vector=axis(0))
    core.write()
    core.write(content=NEAR, vector=axis(0))
    entry = core.last
    assert entry is not None
    core.recall(vector=axis(9))
    return core, entry


def test_another_reason_hides_none() -> None:
    """Held for its rate too, and for nothing else at a first replay: the next day's does not let it in unread."""
    core, entry = held_for_two_reasons()
    verdict = replay(core, entry).verdict
    assert verdict.reasons == ("rates.exceeded",)
    assert row(core, "e2")["codes"] == ["memsad.above_threshold", "rates.exceeded"]
    told = next(one.detail for one in verdict.findings if one.code == "replay.decided")
    assert told["stands"] == ("memsad.above_threshold", "rates.exceeded"), "the verdict says so, too"
    relaxed(core, writes_per_day={"user_observed": None})
    assert replay(core, entry).verdict.reasons == ("replay.recalibrated",)


def test_a_row_of_an_older_version_counts_as_unchanged() -> None:
    """It does not say by which rules it was held: nobody knows that somebody changed them."""
    core, entry = held_by_memsad()
    old = {name: value for name, value in row(core, "e1").items() if name not in ("weighed", "shown")}
    import orjson

    core.rows[b"acme\0review\0e1"] = orjson.dumps(old)
    relaxed(core, memsad={**core.policy.memsad.model_dump(), "cold_threshold": 0.7})
    assert replay(core, entry).verdict.reasons == ("replay.recalibrated",)


def test_a_release_is_a_persons_word_on_one_content() -> None:
    """A reviewer who read it lets it in: the command names one write, and is bound to its digest."""
    core, entry = held_by_memsad()
    assert order(core, "release", entry, digest="0" * 64).verdict.reasons == ("review.other_digest",)
    assert order(core, "release", entry).verdict.decision is Decision.ACCEPT


@pytest.mark.parametrize("module", parts.CONTENT)
def test_a_rule_changes_with_what_it_reads_and_with_nothing_else(module: str) -> None:
    """What a replay compares is stable: the same of the same rules, whatever else the policy says."""
    policy = default().default
    same = laid_over(policy, {"name": "x", "quarantine": {"age_days": 1}, "detect": {"look_back_per_day": 1}})
    looser = laid_over(policy, {
        "detect": {"threshold": 9}, "memsad": {"cold_threshold": 0.7}, "drift": {"action": "ignore"},
        "instructions": {"enabled": False, "facts_chars_max": 2_000}, "wording": {"action": "report"},
    })  # fmt: skip
    said = parts.digest(policy, module), parts.strictness(policy, module)
    assert said == (parts.digest(same, module), parts.strictness(same, module))
    assert parts.loosened(looser, module, None, None, *said)
    looser_said = parts.digest(looser, module), parts.strictness(looser, module)
    assert not parts.loosened(policy, module, None, None, *looser_said)


@pytest.mark.parametrize("module", ["detect", "instructions", "memsad", "overrides", "wording"])
def test_what_is_contained_is_held_by_these_or_by_none_of_them(module: str) -> None:
    """An operator who has outside content only reported again has changed every rule that it was held by."""
    holding = laid_over(default().default, {"instructions": {"hold_contained": True}})
    assert parts.loosened(
        default().default, module, None, None, parts.digest(holding, module), parts.strictness(holding, module)
    )


def test_the_form_of_a_part_is_known() -> None:
    """Rows keep these digests. Where a version takes them of other fields, FORM must change with them: else every
    write that an older version held would count as held by a rule that somebody loosened, and land unread."""
    taken = {module: parts.digest(default().default, module) for module in parts.CONTENT}
    assert taken == {
        "detect": "5.4d30853039d428dc",
        "drift": "5.e83a1ab021c29d64",
        "facts": "5.a76102fc96f4cfa6",
        "instructions": "5.8e33d7b779a1750e",
        "memsad": "5.dfaa3afb482b3720",
        "overrides": "5.d6af541859d8accd",
        "wording": "5.52ad30e18e2f225b",
    }, "the fields of a part changed, or the shipped policy: in the first case change parts.FORM"
