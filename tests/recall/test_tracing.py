"""A read in the trace: from the reader's question to the store and to the event that tells of it, without content."""

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode
from tests.hostile_text.texts import NAMES, hidden_in
from tests.recall.test_recaller import NOTES, WHO, Told, recaller
from tests.stores.build import entry

from memsluice.client.tracing import Sending
from memsluice.envelope.codec import vector_from_bytes, vector_to_bytes
from memsluice.errors import NotDelivered
from memsluice.events.models import Recall, Zone
from memsluice.events.names import EventType
from memsluice.stores.faiss.store import FaissStore

QUESTION = "What does Ana drink?"


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """Where an application that has set up the SDK finds the spans."""
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    return exporter


@pytest.fixture
def store(encoder) -> FaissStore:
    """A store with one entry that holds and one that was forged."""
    store = FaissStore(":memory:")
    vector = vector_from_bytes(vector_to_bytes(encoder.encode([NOTES["tea"]])[0]))
    store.upsert([entry("acme", NOTES["tea"], vector, event_id="good")])
    return store


def test_a_question_is_one_span_and_the_searches_and_its_event_lie_in_it(kept, store, encoder) -> None:
    """Who asked, where, how many entries came of it and which event tells of it; the store's part is a span below."""

    def publish(event: Recall) -> None:
        sending = Sending("memory.events.v1", event.id, EventType.RECALL, bytes)
        sending.acknowledged(1, 2)

    answer = recaller(store, encoder, publish).recall("acme", QUESTION, **WHO)
    searched, sent, asked = kept.get_finished_spans()
    assert (searched.name, sent.name, asked.name) == ("search guidance", "send memory.events.v1", "search_memory")
    assert {span.parent.span_id for span in (searched, sent)} == {asked.context.span_id}
    assert {span.context.trace_id for span in (searched, sent)} == {asked.context.trace_id}
    said = asked.attributes
    assert said["gen_ai.operation.name"] == "search_memory"
    assert said["gen_ai.memory.store.id"] == "acme/guidance"
    assert (said["gen_ai.memory.search.result.count"], said["memsluice.recall.withheld"]) == (len(answer.entries), 0)
    assert (said["gen_ai.agent.id"], said["gen_ai.conversation.id"]) == (WHO["agent"], WHO["session"])
    assert said["memsluice.event.id"] == answer.event_id
    assert searched.attributes["db.response.returned_rows"] == 1
    told = "".join(span.to_json() for span in kept.get_finished_spans())
    assert QUESTION not in told
    assert NOTES["tea"] not in told


def test_a_question_that_fails_says_of_what_kind_and_not_in_which_words(kept, store, encoder) -> None:
    """An on-call engineer sees that reads fail, and why; an error's text stays with the caller."""
    with pytest.raises(NotDelivered):
        recaller(store, encoder, Told(fails=True)).recall("acme", QUESTION, **WHO)
    asked = kept.get_finished_spans()[-1]
    assert (asked.name, asked.status.status_code) == ("search_memory", StatusCode.ERROR)
    assert asked.attributes["error.type"] == "NotDelivered"
    assert asked.events == ()
    assert "acknowledgement" not in asked.to_json()


@pytest.mark.parametrize("name", NAMES.values(), ids=NAMES)
def test_who_asks_is_spelled_out(kept, store, encoder, name) -> None:
    """Agent, person and session are chosen by others; in a trace they act on nothing."""
    recaller(store, encoder, Told()).recall("acme", QUESTION, agent=name, principal=name, session=name)
    (asked,) = [span for span in kept.get_finished_spans() if span.name == "search_memory"]
    assert [found for value in asked.attributes.values() for found in hidden_in(str(value))] == []


def test_without_an_sdk_nothing_is_different(store, encoder) -> None:
    """An application that traces nothing gets its answer all the same."""
    told = Told()
    answer = recaller(store, encoder, told).recall("acme", QUESTION, zone=Zone.GUIDANCE, **WHO)
    assert [found.content for found in answer.entries] == [NOTES["tea"]]
