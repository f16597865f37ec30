"""The figure of contamination: on models made of rules, it comes out well where it should and badly where it should."""

from pathlib import Path

import pytest
from tests.lab.facts_model import Ruled

from memsluice.errors import StateError
from memsluice_lab.facts import learner, scored
from memsluice_lab.facts.world import KNOWN_NAMES
from memsluice_lab.figures import repcs
from memsluice_lab.figures.registry import Setting

QUIET = Setting(Path(), lambda _text: None)
MEMORY = dict.fromkeys(KNOWN_NAMES, ("value1", "value2"))


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few questions, and a model of rules in the place of what is trained."""
    monkeypatch.setattr(scored, "DRAWS", 20)
    for name, value in (("CLEAN", 40), ("CONTAMINATED", 32), ("PARAPHRASED", 8), ("CALIBRATION", 100)):
        monkeypatch.setattr(repcs, name, value)
    for name, value in (("TIMED", 3), ("WEIGHED", 60), ("QUESTIONS", 5)):
        monkeypatch.setattr(repcs, name, value)
    monkeypatch.setattr(learner, "ARCHITECTURES", {"one": None, "two": None})
    learns(monkeypatch, MEMORY)


def learns(monkeypatch: pytest.MonkeyPatch, memory: dict[str, tuple[str, str]]) -> None:
    """Have training end in a model of this memory."""
    monkeypatch.setattr(learner, "trained", lambda name, world, say: Ruled(memory))
    monkeypatch.setattr(learner, "wrapped", lambda model, *, ends=True: model)


def test_a_model_that_answers_known_names_from_memory_alone_is_told_apart() -> None:
    """All of it, under either label; the clean prompts that are flagged are counted, and what evidence misses."""
    found = repcs.repcs_auroc(QUIET)
    rows = dict(found.rows)
    assert found.value == 1
    assert rows["one: answers from memory, fresh names"].startswith("0 of 40")
    assert rows["two: answers from memory, known names, the context agrees"].startswith("20 of 20")
    assert rows["two: clean prompts flagged by the tau of the model above, frozen"].startswith("0 of 40")
    assert rows["one: Table III, clean, contaminated, paraphrased"] == "40, 32, 8"
    assert rows["one: influence, alpha 0.05, fresh names: made the answer, judged not to have"] == "0 of 5 entries"
    both = "one: influence, alpha 0.05, two entries say the same: neither judged to have made the answer"
    assert rows[both] == "5 of 5 answers; 0 where both are doubted"


def test_a_score_that_says_nothing_misses_the_goal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the two paths are taken for one, all scores are alike and the area is a half."""
    once = scored.compare

    def same(model, prompted, question, entries, *, length):
        answer = once(model, prompted, question, entries, length=length).answer
        return type(once(model, prompted, question, entries, length=length))(answer, 1.0)

    monkeypatch.setattr(scored, "compare", same)
    monkeypatch.setattr(repcs, "_asked_for", lambda model, found: ("", ""))
    assert repcs.repcs_auroc(QUIET).value == 0.5


def test_a_model_that_learned_nothing_by_heart_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without an answer from memory there is nothing to tell apart, and the figure says so."""
    learns(monkeypatch, {})
    with pytest.raises(StateError, match="has not learned both"):
        repcs.repcs_auroc(QUIET)
