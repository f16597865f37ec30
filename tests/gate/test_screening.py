"""A content on which screening itself fails stops nobody: it is held, and decided again once the gate is mended."""

from typing import Any

import pytest
from tests.gate.build import Core, axis
from tests.gate.test_replay import replay, row
from tests.gate.test_review import order

from memsluice.envelope.verdict import Decision
from memsluice.errors import StateError
from memsluice.events.models import Zone
from memsluice.gate.decision import Draft
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.policy.model import default

HOSTILE = "a text that a check was not made for"


def core() -> Core:
    """Return a core that remembers, as a worker's does."""
    policy = default().default
    return Core(policy, memory=Memory.empty(policy.detect.questions, policy.detect.entries))


def broken(monkeypatch: pytest.MonkeyPatch, name: str = "screen", error: type[Exception] = RecursionError) -> None:
    """Make one step of screening fail, on HOSTILE alone, after all that comes before it in the step was done."""
    sound = getattr(Draft, name)

    def fails(self: Draft, *args: Any) -> None:
        sound(self, *args)
        if any(one in args for one in Decision if one is not Decision.ACCEPT):
            return
        if any(HOSTILE in str(getattr(one, "content", getattr(one, "question", ""))) for one in _said(args)):
            raise error(HOSTILE)

    monkeypatch.setattr(Draft, name, fails)


def _said(args: tuple[Any, ...]) -> list[Any]:
    return [one for arg in args for one in (arg, getattr(arg, "payload", None))]


@pytest.mark.parametrize("step", ["screen", "screened", "learn"])
def test_a_write_on_which_screening_fails_is_held(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    """Wherever it fails: its verdict names the kind of error and not its words, and the next write lands."""
    broken(monkeypatch, step)
    gate = core()
    verdict = gate.write(content=HOSTILE).verdict
    assert (verdict.decision, verdict.reasons, verdict.object_id) == (
        Decision.QUARANTINE,
        ("screening.failed",),
        None,
    )
    (finding,) = [one for one in verdict.findings if one.code == "screening.failed"]
    assert finding.detail == {"error": "RecursionError"}
    assert gate.write(content="Ana prefers the late train.").verdict.decision is Decision.ACCEPT


def test_what_failed_leaves_no_trace_in_the_detectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """After it both remember what they would have without it, though it had been learned when it failed."""
    texts = [f"Ana prefers train number {number}." for number in range(6)]
    without, beside = core(), core()
    for text in texts[:3]:
        for one in (without, beside):
            one.write(content=text)
    broken(monkeypatch, "learn")
    beside.write(content=HOSTILE)
    for text in texts[3:]:
        for one in (without, beside):
            one.write(content=text)
    for one in (without, beside):
        assert one.memory is not None
        assert [entry.number for entry in one.memory.entries] == list(range(len(texts)))


def test_a_replay_by_a_mended_gate_decides_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """While screening fails a replay and a release are refused for it; afterwards a replay lets it in."""
    with monkeypatch.context() as patched:
        broken(patched)
        gate = core()
        gate.write(content=HOSTILE)
        entry = gate.last
        assert entry is not None
        again = replay(gate, entry).verdict
        assert (again.decision, again.reasons) == (Decision.REJECT, ("screening.failed",))
        assert row(gate)["state"] == "held"
    verdict = replay(gate, entry).verdict
    assert (verdict.decision, verdict.zone) == (Decision.ACCEPT, Zone.GUIDANCE)


def test_a_reviewer_releases_it_once_the_gate_can_learn_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A person who read it overrides that the gate could not; while learning it fails, too, the release is refused."""
    gate = core()
    with monkeypatch.context() as patched:
        broken(patched)
        gate.write(content=HOSTILE)
    entry = gate.last
    assert entry is not None
    with monkeypatch.context() as patched:
        broken(patched, "learn")
        assert order(gate, "release", entry).verdict.reasons == ("screening.failed",)
    verdict = order(gate, "release", entry).verdict
    assert verdict.decision is Decision.ACCEPT
    assert verdict.findings[-1].detail == {"overridden": ["screening.failed"]}


def test_a_recall_on_which_a_detector_fails_taints_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is recorded, the detectors do not learn it, and what it was given still taints its session."""
    broken(monkeypatch, "asked")
    gate = core()
    gate.observe("open")
    verdict = gate.recall(HOSTILE, vector=axis(3)).verdict
    assert verdict.decision is Decision.RECORD
    assert [one.code for one in verdict.findings] == ["screening.failed"]
    assert gate.memory is not None
    assert len(gate.memory.questions) == 0


def test_a_state_that_cannot_be_read_still_stops_the_partition(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says nothing of the event, so nothing is decided."""
    broken(monkeypatch, error=StateError)
    with pytest.raises(StateError):
        core().write(content=HOSTILE)
