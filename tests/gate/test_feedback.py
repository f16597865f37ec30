"""What a reviewer's release teaches is in its verdict; what shadow mode finds by looking back stays where it is."""

from typing import Any

import pytest
from tests.gate.build import RING, T0, TENANT, Core, MemoryRows, axis, sealed
from tests.gate.looking import stems_of, values_of
from tests.gate.test_detector import filled, told, unit
from tests.gate.test_review import order
from tests.stages.test_screen import apply, record, stage
from tests.stages.test_screen_review import by_topic, hold, release

from memsluice.envelope.seals import open_
from memsluice.envelope.verdict import Decision
from memsluice.events.models import Tier, Zone
from memsluice.events.names import VERDICT, EventType
from memsluice.gate.decision import Draft, TenantState
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.rarity.evidence import G
from memsluice.gate.detectors.rarity.memory import KeptEntry, Memory
from memsluice.gate.policy.model import default, laid_over
from memsluice.gate.state.kinds import ENTRY, LOOKED, EntryRow
from memsluice.topics.names import AUDIT

POLICY = default().default


def released(rows: MemoryRows, offset: int, **fields: Any) -> dict[str, Any]:
    """Have a write held at an offset and released after it; return the release's findings by code."""
    held, entry = hold(rows, offset)
    step = stage().process(record(release(offset + 1, held, entry, **fields), offset + 1), rows)
    apply(rows, step)
    verdict = open_(RING, TENANT, VERDICT, by_topic(list(step.outputs))[AUDIT].value)
    assert verdict["findings"][-1]["code"].startswith("review.")
    return {finding["code"]: finding["detail"] for finding in verdict["findings"]}


def test_a_release_says_what_it_fed() -> None:
    """Score, reference before and after, how many were as high: the loop from reviewers to the budget is audited."""
    rows = MemoryRows()
    first, second = released(rows, 0), released(rows, 2)
    assert first["detect.fed"]["reference"] == [0, 1]
    assert first["memsad.fed"] == {"reference": [0, 1], "reference_max": POLICY.memsad.reference_size}
    assert second["detect.fed"]["reference"] == [1, 2]
    assert second["detect.fed"]["reference_max"] == POLICY.detect.entries
    before, after = second["detect.fed"]["at_least_as_high"]
    assert after == before + 1
    memory = Memory.load(rows, TENANT, POLICY.detect.questions, POLICY.detect.entries)
    assert [round(float(g), 4) for g in values_of(memory)[:, G]] == [
        one["detect.fed"]["score"] for one in (first, second)
    ]


def test_what_was_not_carried_out_fed_nothing() -> None:
    """A release that is refused has no such finding, nor has a rejection."""
    rows = MemoryRows()
    assert not any(code.endswith(".fed") for code in released(rows, 0, digest="0" * 64))


@pytest.mark.parametrize(("mode", "code", "stays"), [("enforce", "detect.looked_back", False),
                                                     ("shadow", "detect.look_back_shadow", True)])  # fmt: skip
def test_look_back_in_shadow_mode_tells_and_takes_nothing(mode: str, code: str, stays: bool) -> None:
    """Shadow decides and records: what a question shows to be an attack is named, stays, and costs nobody's budget."""
    memory, rows = filled(200, w=0.3)
    memory = memory.landed(rows, KeptEntry(0, "poison", stems_of([f"w{n}" for n in range(20)]), False), unit(0.9),
                           told(w=0.3))  # fmt: skip
    rows.put(ENTRY, "poison", EntryRow(tier=Tier.USER_OBSERVED, taint=False, landed=True, decision=Decision.ACCEPT,
                                       object_id="o", zone=Zone.GUIDANCE, version=1, topic="t", offset=0, digest="",
                                       content="d" * 64, causes=(), expires_ms=None))  # fmt: skip
    asked = sealed("reader", EventType.RECALL, 0, question="what colour has the new boat", vector=unit(0.9))
    policy = POLICY.model_copy(update={"mode": mode})
    state = TenantState(MemoryRows(), MemsadState.empty(policy.memsad), memory)
    draft = Draft.begun(state, policy, unit(0.9), asked)
    draft.asked(rows, asked.payload, unit(0.9), T0)  # type: ignore[arg-type]
    assert [finding.code for finding in draft.findings] == [code]
    assert draft.findings[0].detail["entries"][0]["event"] == "poison"
    assert draft.default.memory is not None
    assert any(entry.event_id == "poison" for entry in draft.default.memory.entries) is stays
    assert any(kind == LOOKED.name for kind, _ in rows.changes) is not stays


def test_a_release_feeds_the_score_that_the_write_was_held_by() -> None:
    """Its deviations above MEMSAD's line are part of it, as of the write: else no number of releases lets it in."""
    policy = laid_over(POLICY, {
        "memsad": {"reference_size": 4, "calibration": {"strategy": "fixed"}},
        "writes_per_day": {"user_observed": None},
        "detect": {"threshold": 0.5, "reach": ["own", "relied", "shared"], "window": 50},
    })  # fmt: skip
    core = Core(policy, memory=Memory.empty(policy.detect.questions, policy.detect.entries))
    question = "Which train does Ana take on Monday morning from the harbour?"
    core.recall(question=question, vector=axis(0))
    for number in range(60):
        core.write(vector=unit(0.1 + 0.001 * (number % 4)))
    held = core.write(content=f"{question} The early one.", vector=unit(0.95), visibility="shared").verdict
    entry = core.last
    assert entry is not None
    assert held.reasons == ("detect.held",)
    detail = next(one.detail for one in held.findings if one.code == "detect.held")
    assert detail["parts"]["anomaly"] > 0
    fed = next(one.detail for one in order(core, "release", entry).verdict.findings if one.code == "detect.fed")
    assert (fed["score"], fed["at_least_as_high"], fed["window"]) == (detail["score"], [0, 1], 50)
