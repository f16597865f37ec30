"""Known-good questions: what a file may say, and when a question is answered as it should be."""

import pytest
from tests.recall.test_recaller import NOTES, Told, recaller
from tests.stores.build import entry

from memsluice.envelope.codec import vector_from_bytes, vector_to_bytes
from memsluice.errors import ConfigError
from memsluice.recall.recaller import Named
from memsluice.recall.signals.holdout import QUESTIONS_MAX, parse
from memsluice.stores.faiss.store import FaissStore

FILE = """
questions:
  - tenant: acme
    question: Where is the weekly report sent?
    principal: ana
    k: 1
    entries: [event-reports]
"""


def test_an_entry_is_named_by_its_event_or_its_object() -> None:
    """A replaced entry has another event and the same object: operators choose what they mean."""
    (question,) = parse(FILE, "f").questions
    assert question.missed([Named("object-1", "event-reports")]) == ()
    assert question.missed([Named("event-reports", "event-9")]) == ()
    assert question.missed([Named("object-1", "event-9")]) == ("event-reports",)
    assert question.missed([]) == ("event-reports",)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("questions: []", "questions"),
        ("questions: [{tenant: acme, question: x, entries: []}]", "questions.0.entries"),
        ("questions: [{tenant: acme, question: x, entries: [e], answer: y}]", "questions.0.answer"),
        ("questions: [{tenant: acme, question: x, entries: [e], k: 0}]", "questions.0.k"),
        ("questions: [{tenant: acme, tenant: globex}]", "line 1"),
        ("questions: [" + "{tenant: acme, question: x, entries: [e]}," * (QUESTIONS_MAX + 1) + "]", "questions"),
        ("- a", "the file"),
        ("[", "line"),
    ],
)
def test_a_file_that_is_wrong_says_where(text, why) -> None:
    """A service does not start with known-good questions that it would not ask as they were meant."""
    with pytest.raises(ConfigError, match=why):
        parse(text, "known.yaml")


def test_who_answers_is_told_by_name_and_nothing_is_published(encoder) -> None:
    """The question is asked through the same search and checks as a recall, and no content and no event comes of it."""
    store, told = FaissStore(":memory:"), Told()
    for name, text in NOTES.items():
        vector = vector_from_bytes(vector_to_bytes(encoder.encode([text])[0]))
        store.upsert([entry("acme", text, vector, event_id=f"event-{name}")])
    (question,) = parse(FILE, "f").questions
    asks = recaller(store, encoder, told)
    found, withheld = asks.would_answer(question.asked())
    assert withheld == {}
    assert [one.event_id for one in found] == ["event-reports"]
    assert question.missed(found) == ()
    assert told.events == []
