"""What holds an entry after a replay is what the gate says, and the views of verdicts do not hang on one another."""

from dataclasses import replace

import layers
import pytest
from tests.gate.build import Core
from tests.gate.test_replay import relaxed, replay
from tests.gate.test_unread import held_by_memsad, held_for_two_reasons
from tests.test_house import TOP

from memsluice.envelope.verdict import Decision, Finding, Verdict
from memsluice.gate.policy.model import default, laid_over
from memsluice.operations.verdict_words import found_words, stands_for


def decided(verdict: Verdict) -> dict[str, object]:
    """Return what the verdict on a replay says of its decision."""
    return next(one.detail for one in verdict.findings if one.code == "replay.decided")


def of_an_older_version(verdict: Verdict) -> Verdict:
    """Return a replay's verdict without what it stands for."""
    found = [
        Finding(one.code, one.decision, {name: some for name, some in one.detail.items() if name != "stands"})
        for one in verdict.findings
    ]
    return replace(verdict, findings=tuple(found))


def test_what_a_finding_has_is_told_in_words_however_deep_it_lies() -> None:
    """A reviewer reads names and numbers, and none of a programming language's brackets and quotation marks."""
    nearest = {"recall": "r-1", "cosine": 0.93}
    told = found_words({"phase": "cold", "nearest": nearest, "parts": {"wording": 1.2}, "codes": ["a", {"b": 1}]})
    assert told == "parts (wording 1.2), phase cold, nearest (recall r-1, cosine 0.93), codes a, (b 1)"


def test_a_rule_that_forgot_stands_beside_one_that_still_holds() -> None:
    """Held for its rate by a replay, and by MEMSAD as before, whose rule nobody changed: it stands for both."""
    core, entry = held_for_two_reasons()
    verdict = replay(core, entry).verdict
    assert verdict.reasons == ("rates.exceeded",)
    assert stands_for(verdict) == ("memsad.above_threshold", "rates.exceeded")
    assert stands_for(of_an_older_version(verdict)) == ("rates.exceeded",)


def test_what_only_the_calibration_moved_stands_for_its_rule_in_every_version() -> None:
    """The code that says so is no reason of its own; a verdict of before the field is read as it was."""
    core, entry = held_by_memsad()
    verdict = replay(core, entry).verdict
    assert verdict.reasons == ("replay.recalibrated",)
    for one in (verdict, of_an_older_version(verdict)):
        assert stands_for(one) == ("memsad.above_threshold",)


def test_what_lands_stands_for_nothing() -> None:
    """Only what stays to be decided later says what for."""
    core, entry = held_by_memsad()
    assert "stands" in decided(replay(core, entry).verdict)
    relaxed(core, detector="default")
    verdict = replay(core, entry).verdict
    assert (verdict.decision, "stands" in decided(verdict)) == (Decision.ACCEPT, False)


def test_what_asks_for_less_than_to_be_held_holds_nothing() -> None:
    """The row keeps that it would be contained as well; what it stands for is what holds it, as its first reasons."""
    core = Core(laid_over(default().default, {"writes_per_day": {"user_observed": 1}}))
    core.write("agent")
    core.observe("web")
    first = core.write("agent").verdict
    entry = core.last
    assert entry is not None
    verdict = replay(core, entry).verdict
    assert {one.decision for one in verdict.findings} >= {Decision.CONTAIN, Decision.QUARANTINE}
    assert stands_for(verdict) == verdict.reasons == first.reasons == ("rates.exceeded",)


@pytest.mark.parametrize(("one", "other"), [("held", "trace"), ("trace", "held")])
def test_the_quarantine_and_the_trace_do_not_import_each_other(one: str, other: str) -> None:
    """What both need lies below both: neither can be changed by the other's change."""
    folder = TOP / "pipeline"
    known, exported = layers.modules(folder), layers.exports(folder)
    those = {name: path for name, path in known.items() if name.startswith(f"memsluice.operations.{one}.")}
    assert those
    for name, path in those.items():
        named = [target for _, target in layers.imports(name, path, known, exported)]
        assert not [target for target in named if target.startswith(f"memsluice.operations.{other}.")], name
