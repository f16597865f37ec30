"""Influence evidence: which entries count as having moved an answer, and what of it the gate makes of a write."""

import pytest
from tests.gate.build import Core
from tests.lab.facts_model import Ruled

from memsluice.gate.policy.model import default
from memsluice.recall.contamination.evidence import idle, moved
from memsluice.recall.contamination.paths import influences
from memsluice.recall.contamination.threshold import Tau, settings
from memsluice_lab.facts.world import Asked, World, prompted

ALPHA = 0.05


def tau(model: Ruled) -> Tau:
    """Return a threshold of the influences of entries that had no hand in an answer."""
    found, world = Tau(settings(ALPHA, window=60)), World(1)
    for number in range(20):
        asked = world.ask(known=False)
        each = influences(model, prompted, asked.question, asked.entries, answer(model, asked))
        for at, nats in enumerate(each):
            found = found if at in asked.about else idle(found, f"{number}/{at}", nats)
    return found


def answer(model: Ruled, asked: Asked):
    """Return the answer's tokens."""
    return model.answer(prompted(asked.question, asked.entries), 2)


def found(model: Ruled, asked: Asked, calibrated: Tau, **options) -> tuple[int, ...]:
    """Return the places of the entries that count."""
    return moved(model, prompted, asked.question, asked.entries, answer(model, asked), calibrated, **options)


def test_the_entry_that_says_it_counts_and_no_other() -> None:
    """One entry tells what was asked for: it moved the answer, those about other names did not."""
    model, asked = Ruled({}), World(2).ask(known=False)
    assert found(model, asked, tau(model)) == asked.about


def test_what_the_model_knew_no_entry_moved() -> None:
    """A model that answers from memory: nothing that it was given had a hand in it."""
    asked = World(3).ask(known=True)
    assert found(Ruled({asked.name: asked.value}), asked, tau(Ruled({}))) == ()


def test_without_a_calibration_every_entry_counts() -> None:
    """As long as nobody knows what no influence looks like, or too few cases of it, none is told from it."""
    model, asked = Ruled({}), World(4).ask(known=False)
    few = Tau(settings(ALPHA))
    for number in range(round(1 / ALPHA)):
        assert found(model, asked, few) == tuple(range(len(asked.entries)))
        few = idle(few, str(number), 0.0)
    assert found(model, asked, few) == asked.about


def test_two_doubted_entries_that_say_the_same_are_left_out_together() -> None:
    """By themselves neither moves the answer; doubted, both count; where others are doubted, none does."""
    model, asked = Ruled({}), World(5).ask(known=False, times=2)
    calibrated = tau(model)
    others = [at for at in range(len(asked.entries)) if at not in asked.about]
    assert found(model, asked, calibrated) == ()
    assert found(model, asked, calibrated, doubted=asked.about) == asked.about
    assert found(model, asked, calibrated, doubted=others) == ()


@pytest.mark.parametrize("from_memory", [False, True])
def test_an_entry_that_did_not_move_the_answer_does_not_taint_the_write(from_memory: bool) -> None:
    """Under ``taint: parents`` the write that is made of an answer is tainted if, and only if, the tainted entry moved
    it; under the default it is in either case."""
    asked = World(6).ask(known=False)
    model = Ruled({asked.name: asked.value} if from_memory else {})
    places = found(model, asked, tau(Ruled({})), doubted=asked.about)
    for scope, tainted in (("parents", not from_memory), ("session", True)):
        made = Core(default().default.model_copy(update={"taint": scope}))
        made.observe("open")
        made.write("web", asked.entries[asked.about[0]])
        page = f"e{made.offset}"
        made.observe("web", content=asked.entries[asked.about[0]])
        parents = tuple(page for at in places if at in asked.about)
        assert made.write("agent", "Ana likes short meetings.", parents=parents).verdict.taint is tainted
