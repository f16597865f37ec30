"""What a model is told of its memory, and what is observed before it is shown something."""

import pytest
from tests.memory.conftest import ADA, ORDER

from memsluice import Origin, Session
from memsluice.errors import (
    BatchNotRemembered,
    LandingUnknown,
    NotDelivered,
    WriteHeld,
    WriteRefused,
)
from memsluice.events.models import Observation
from memsluice.memory import observing
from memsluice.memory.memory import Entry, Memory
from memsluice.memory.observing import Observing, Recent
from memsluice.memory.telling import NOTHING, REMEMBERED, not_remembered, recalled, remember


def test_a_model_is_told_that_something_was_not_remembered_and_not_why(memory) -> None:
    """Whoever talks to the model should not learn what to avoid; what can be no entry is said: it can be mended."""
    assert remember(memory, "Ada drinks tea.") == REMEMBERED
    told = remember(memory, ORDER)
    assert told.startswith("NOT remembered: it waits for a person's review")
    assert "wording" not in told
    assert "NOT remembered: it was refused" in remember(memory, "word " * 3_000)
    assert "limit_exceeded" in remember(memory, "word " * 30_000)


@pytest.mark.parametrize(("error", "told"), [
    (LandingUnknown("late", event_id="e"), "NOT known to be remembered"),
    (WriteRefused("no", event_id="e"), "NOT remembered: it was refused"),
    (BatchNotRemembered([WriteHeld("held", event_id="e")]), "NOT all of it was remembered"),
])  # fmt: skip
def test_each_way_of_not_being_remembered_is_told_apart(error, told) -> None:
    """A model that does not know should not say that it was saved, nor that it was lost."""
    assert not_remembered(error).startswith(told)


def test_a_log_that_takes_nothing_fails_the_call(memory, gate, monkeypatch) -> None:
    """That is no answer for a model: somebody has to look after it."""
    memory.open()

    def lost(session: Session, event: object) -> None:
        raise NotDelivered("no broker", event_id="e")

    monkeypatch.setattr(gate, "publish", lost)
    with pytest.raises(NotDelivered):
        remember(memory, "Ada drinks tea.")


def test_what_is_recalled_says_what_it_is(memory) -> None:
    """And where there is nothing, or no question, it is nothing."""
    assert recalled(memory, "What does Ada drink?") == ""
    memory.write("Ada drinks tea.")
    assert "[memory tier=3 source=agent" in recalled(memory, "What does Ada drink? " * 5_000)
    assert recalled(memory, "  ") == ""
    assert NOTHING


def test_results_are_outside_content_unless_nobody_outside_can_write_them(gate, monkeypatch) -> None:
    """By the tool's name; ``origins`` says what it reads."""
    seen, publish = list[Observation](), gate.publish
    monkeypatch.setattr(gate, "publish", lambda session, event: seen.append(event) or publish(session, event))
    memory = Memory(gate, ADA)
    watching = Observing(["calculator"], {"browse": Origin.WEB})
    for tool in ("calculator", "browse", "mail"):
        watching.saw(memory, tool, "a result")
    assert [one.origin for one in seen] == [Origin.OPEN, Origin.WEB, Origin.TOOL]


def test_what_was_put_in_last_is_known(monkeypatch) -> None:
    """The oldest is forgotten, and is then observed once more."""
    monkeypatch.setattr(observing, "RECENT_MAX", 2)
    recent = Recent()
    for name in ("a", "b", "a", "c"):
        recent.put(name, name)
    assert ["a" in recent, "b" in recent, "c" in recent] == [True, False, True]
    assert (recent.get("a"), recent.get("b")) == ("a", None)


def test_a_session_that_nobody_opens_has_no_guidance(gate) -> None:
    """Whoever can't vouch for what the model sees does not open it; somebody who can may, later on."""
    memory = Memory(gate, ADA, opens=False)
    with pytest.raises(WriteHeld):
        memory.write("Ada drinks tea.")
    memory.open()
    assert memory.write("Ada drinks tea.").remembered


def test_one_entry_raises_its_own_error_and_several_one_for_all(memory) -> None:
    """As :meth:`Memory.write` and :meth:`Memory.write_all` do."""
    with pytest.raises(WriteHeld):
        memory.put([Entry(ORDER)])
    with pytest.raises(BatchNotRemembered):
        memory.put([Entry(ORDER), Entry("Ada drinks tea.")])
    assert len(memory.put([Entry("Ada lives in Lyon."), Entry("Ada reads.")])) == 2
