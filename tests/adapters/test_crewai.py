"""CrewAI's own memory and agents on a gated storage, with a scripted model in the place of theirs."""

import copy
import threading
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import Any

import pytest

# isort: split - what comes first says where CrewAI may write when it is imported
from crewai import Agent
from crewai.events.event_bus import crewai_event_bus
from crewai.events.types.memory_events import MemorySaveCompletedEvent
from crewai.hooks.dispatch import HookAborted
from crewai.memory.storage.backend import StorageBackend
from crewai.memory.storage.factory import set_memory_storage_factory
from crewai.memory.types import MemoryRecord
from crewai.memory.unified_memory import Memory
from crewai.tools import tool
from tests.adapters.crews import FACT, PAGE, SAID, browse, contents, crewai, failures, memory, play, settled, storage
from tests.memory.conftest import ADA, ORDER
from tests.patience import HANG_S

from memsluice import Origin, Session
from memsluice.adapters.crewai import GatedStorage, attach, embedder
from memsluice.adapters.crewai.questions import question_of
from memsluice.errors import InvalidArgument, NotDelivered, WriteHeld
from memsluice_lab.crews import Scripted, calling, crew

__all__ = ["crewai", "failures", "memory", "storage"]


def test_what_is_remembered_is_recalled_changed_and_forgotten(memory) -> None:
    """By CrewAI's own code, with every field of a record, and by another question than the words that were saved."""
    made = memory.remember("Ada drinks tea.", metadata={"from": "Ada", "cups": 3}, source="ada", private=True, **SAID)
    memory.remember("The office is in Lyon.", scope="/office", categories=[], importance=0.5)
    found = memory.recall("What does Ada drink?", depth="shallow", source="ada")[0].record
    assert (found.id, found.content, found.scope, found.categories) == (made.id, "Ada drinks tea.", "/team", ["habit"])
    assert (found.metadata, found.importance, found.source, found.private) == (
        {"from": "Ada", "cups": 3}, 0.6, "ada", True,
    )  # fmt: skip
    assert abs(found.created_at - datetime.utcnow()) < timedelta(minutes=5)
    assert contents(memory, "What does Ada drink?") == ["The office is in Lyon."]  # a private one is its source's
    memory.update(made.id, content="Ada drinks coffee.", scope="/new")
    assert (memory._storage.get_record(made.id).content, memory._storage.count()) == ("Ada drinks coffee.", 2)
    assert (memory.forget(scope="/new"), memory._storage.get_record(made.id), memory._storage.count()) == (1, None, 1)


def test_a_held_memory_is_raised_told_as_failed_and_not_recalled(memory, failures) -> None:
    """Of one that is waited for, and of several that CrewAI saves in its background; none is told as saved."""
    completed = []
    crewai_event_bus.on(MemorySaveCompletedEvent)(lambda _source, event: completed.append(event))
    with pytest.raises(WriteHeld):
        memory.remember(ORDER, **SAID)
    memory.remember_many(["Ada has a cat.", ORDER], **SAID)
    assert contents(memory, "What does Ada have?") == ["Ada has a cat."]  # a recall waits for what is being saved
    settled(memory)
    assert [one.error.partition(" was")[0].partition(" is")[0][:6] for one in failures].count("1 of 2") == 1
    assert all("held in quarantine" in one.error for one in failures)
    assert completed == []


@pytest.mark.parametrize("why", ["closed", "broker"])
def test_a_memory_that_could_not_be_written_is_told_as_failed(memory, gate, failures, monkeypatch, why) -> None:
    """CrewAI drops errors of a process that ends without a word: a gate that is closed, or a broker away, is none."""
    if why == "closed":
        gate.close()
    else:
        lost: Future[Any] = Future()
        lost.set_exception(NotDelivered("no broker", event_id="e"))
        monkeypatch.setattr(gate, "publish", lambda session, event: lost)
    memory.remember_many(["Ada has a cat."], **SAID)
    settled(memory)
    assert [one.value for one in failures] == ["background save"]


def test_scopes_and_categories_are_as_crewai_asks_for_them(storage, memory) -> None:
    """A scope is a path, and "/te" is no part of "/team"; a record is deleted where it is all that was named."""
    old = datetime(2020, 1, 2, 3, 4, 5)
    storage.save([
        MemoryRecord(content="Ada drinks tea.", scope="/team/ada", categories=["habit"]),
        MemoryRecord(content="Ben drinks milk.", scope="/team/ben", categories=["habit", "food"], created_at=old),
        MemoryRecord(content="The office is in Lyon.", metadata={"kind": "place"}),
    ])  # fmt: skip
    assert isinstance(storage, StorageBackend)
    assert (storage.list_scopes("/"), storage.list_scopes("/team/")) == (["/team"], ["/team/ada", "/team/ben"])
    assert (storage.count("/te"), storage.count("/team"), storage.count()) == (0, 2, 3)
    assert storage.list_categories("/team") == {"habit": 2, "food": 1}
    info = storage.get_scope_info("/team/")
    assert (info.path, info.record_count, info.categories, info.child_scopes, info.oldest_record) == (
        "/team", 2, ["food", "habit"], ["/team/ada", "/team/ben"], old,
    )  # fmt: skip
    assert [one.content for one in storage.list_records("/team")] == ["Ada drinks tea.", "Ben drinks milk."]
    assert [one.content for one in storage.list_records(limit=1, offset=2)] == ["Ben drinks milk."]
    assert contents(memory, "Who drinks?", scope="/team", categories=["food"]) == ["Ben drinks milk."]
    assert storage.delete(older_than=old) == storage.delete(scope_prefix="/office", metadata_filter={"kind": "x"}) == 0
    assert storage.delete(scope_prefix="/team", older_than=datetime(2021, 1, 1)) == 1
    storage.reset("/team")
    assert [one.content for one in storage.list_records()] == ["The office is in Lyon."]


def test_what_crewais_model_lists_of_a_text_is_not_written_besides(storage) -> None:
    """It would be screened a second time, as words without a sentence. What a caller says of a memory is kept."""
    derived: dict[str, Any] = {"entities": ["Ada"], "dates": [], "topics": ["tea"]}
    for said, left in (({**derived, "from": "Ada"}, {"from": "Ada"}), ({"topics": ["tea"]}, {"topics": ["tea"]})):
        record = MemoryRecord(content="Ada drinks tea.", metadata=said)
        storage.save([record])
        assert storage.get_record(record.id).metadata == left


def test_a_person_is_given_and_deletes_nothing_of_another(storage, gate, memory) -> None:
    """Whose a memory is the session says: neither a scope, nor an id, nor a record's source reaches another's."""
    made = memory.remember("Ada drinks tea.", source="ada", **SAID)
    ben = GatedStorage(gate, Session("acme", "assistant", "ben", "b1"))
    assert (ben.count(), ben.get_record(made.id), ben.delete(record_ids=[made.id])) == (0, None, 0)
    assert ben.search(embedder(["What does Ada drink?"])[0], scope_prefix="/team") == []
    ben.update(made.model_copy(update={"content": "Ada drinks gin."}))
    ben.reset()
    assert storage.get_record(made.id).content == "Ada drinks tea."


@pytest.mark.parametrize("text", ["What does Ada drink?", "Ünïcödé \ud800 ?", "x" * 5_000, "ё" * 5_000])
def test_a_question_is_read_from_its_vector(text) -> None:
    """Also after CrewAI made a list of floats of it; of a long one the beginning. No two texts are alike to CrewAI."""
    (vector,) = embedder([text])
    read = question_of([float(one) for one in vector])
    assert text.encode("utf-8", "replace").decode().startswith(read)
    assert len(read) >= min(len(text), 2_000)
    (other,) = embedder([text[:-1] + "!"])
    cosine = sum(a * b for a, b in zip(vector, other, strict=False)) / 256
    assert cosine < 0.5


@pytest.mark.parametrize("vector", [[0.1] * 1_536, [1.0] * 10, [1.0] * 256 + [0.5], []])
def test_a_vector_of_another_embedder_is_refused(storage, vector) -> None:
    """What it asks is not known: any answer would be one to another question."""
    with pytest.raises(InvalidArgument, match="embedder"):
        storage.search(vector)


@pytest.mark.parametrize("native", [True, False])
def test_what_a_page_says_does_not_become_guidance(gate, failures, native) -> None:
    """Neither what the model is told to save, nor what CrewAI extracts from the result; the next session is clean."""
    script = [
        calling("browse", url="u") if native else 'Thought: x\nAction: browse\nAction Input: {"url": "u"}',
        calling("save_to_memory", contents=[FACT]) if native
        else f'Thought: x\nAction: save_to_memory\nAction Input: {{"contents": ["{FACT}"]}}',
        "Thought: I now know the final answer\nFinal Answer: Done.",
    ]  # fmt: skip
    llm = Scripted(model="scripted", script=script, facts=["The mill takes Mallory's invoices."], native=native)
    made = play(gate, ADA, llm, [browse])
    assert PAGE in "".join(llm.seen)
    assert len(failures) >= 2
    assert all("outside data" in one.error for one in failures)
    assert made._memory._storage.count() == 0
    attach(made, gate, Session("acme", "assistant", "ada", "t2"))
    made._memory.remember("Ada pays on Fridays.", **SAID)
    assert contents(made._memory, "Whom is to be paid?") == ["Ada pays on Fridays."]


def test_a_crew_that_reads_and_writes_its_memory_alone_is_not_tainted(gate, failures) -> None:
    """CrewAI's own tools are known by their type; what they return was verified."""
    script = [
        calling("save_to_memory", contents=["Ada drinks tea."]),
        calling("search_memory", queries=["tea"]),
        "Tea.",
    ]
    llm = Scripted(model="scripted", script=script, facts=["Ada likes biscuits."])
    made = play(gate, ADA, llm, [])
    assert sorted(one.content for one in made._memory.list_records()) == ["Ada drinks tea.", "Ada likes biscuits."]
    assert any("Found memories" in one and "Ada drinks tea." in one for one in llm.seen)
    assert failures == []


@pytest.mark.parametrize(("name", "trusted", "kept"), [("Browse", ["browse"], True), ("Search memory", [], False)])
def test_a_tool_is_trusted_where_it_was_named_and_not_for_a_name_of_crewais(gate, name, trusted, kept) -> None:
    """CrewAI lets an agent's own tool go before its own of that name; it is not CrewAI's own."""

    @tool(name)
    def reads(url: str) -> str:
        """Read."""
        return PAGE

    script = [calling(name.lower().replace(" ", "_"), url="u"), "Done."]
    llm = Scripted(model="scripted", script=script, facts=["The mill is cheap."])
    memory = Memory(storage=GatedStorage(gate, ADA), llm=llm)
    agent = Agent(role="r", goal="g", backstory="b", llm=llm, tools=[reads], memory=memory)
    attach(agent, gate, ADA, trusted_tools=trusted).kickoff("Read it.")
    settled(memory)
    assert PAGE in "".join(llm.seen)
    assert [one.content for one in memory.list_records()] == (["The mill is cheap."] if kept else [])


@pytest.mark.parametrize("native", [True, False])
def test_the_model_is_shown_nothing_that_is_not_observed(gate, monkeypatch, native) -> None:
    """Where the log does not take the observation. On native tool calls the run ends; else the tool is told to fail."""
    publish, lost = gate.publish, Future()
    lost.set_exception(NotDelivered("no broker", event_id="e"))
    monkeypatch.setattr(
        gate,
        "publish",
        lambda session, event: lost if getattr(event, "origin", "") is Origin.WEB else publish(session, event),
    )
    step = calling("browse", url="u") if native else 'Thought: x\nAction: browse\nAction Input: {"url": "u"}'
    llm = Scripted(model="scripted", script=[step, step, "Final Answer: nothing."], native=native)
    if native:
        with pytest.raises(HookAborted, match="withheld"):
            play(gate, ADA, llm, [browse])
    else:
        play(gate, ADA, llm, [browse])
        assert "withheld" in "".join(llm.seen)
    assert "Rates for May" not in "".join(llm.seen)


def test_a_tool_that_fails_was_seen_too(gate) -> None:
    """Its error is shown to the model, and may say whatever the page says."""

    @tool("browse")
    def fails(url: str) -> str:
        """Read a page."""
        raise ValueError(f"404: {PAGE}")

    llm = Scripted(model="scripted", script=[calling("browse", url="u"), "Done."], facts=["The mill is cheap."])
    assert play(gate, ADA, llm, [fails])._memory._storage.count() == 0
    assert PAGE in llm.seen[1]


def test_a_save_that_waits_ends_in_the_session_that_it_was_said_in(gate) -> None:
    """The next session is clean: what the last one saw must not be written in it."""
    llm = Scripted(model="scripted")
    held, go = threading.Event(), threading.Event()
    memory = attach(Memory(storage=GatedStorage(gate, ADA), llm=llm), gate, ADA)
    memory._submit_save(lambda: (held.set(), go.wait(HANG_S)))
    assert held.wait(HANG_S)
    memory._storage.saw("browse", PAGE)
    memory.remember_many([FACT], **SAID)
    later = threading.Thread(target=attach, args=(memory, gate, Session("acme", "assistant", "ada", "t2")))
    later.start()
    go.set()
    later.join(HANG_S)
    assert memory.list_records() == []


def test_whoever_has_a_memory_is_attached(gate) -> None:
    """A crew without one is given one; its agents' own, views, and copies are gated; what has none is told so."""
    made = attach(crew(Scripted(model="scripted"), []), gate, ADA)
    assert made._memory.root_scope == "/crew/crew"
    own = Memory(storage=object(), llm=Scripted(model="scripted"))
    made.agents[0].memory = own.scope("/clerk")
    attach(made, gate, ADA)
    assert isinstance(own._storage, GatedStorage)
    assert made.copy()._memory._storage is made._memory._storage
    assert copy.deepcopy(own._storage) is own._storage
    with pytest.raises(InvalidArgument, match="Agent one first"):
        attach(Agent(role="r", goal="g", backstory="b", llm=Scripted(model="scripted")), gate, ADA)


def test_memories_that_are_made_later_are_gated_by_crewais_factory(gate) -> None:
    """Each in the session that is told when it is made; CrewAI's default store is not opened."""
    sessions = iter([ADA, Session("acme", "assistant", "ben", "b1")])
    set_memory_storage_factory(GatedStorage.factory(gate, lambda: next(sessions)))
    ada, ben = (Memory(llm=Scripted(model="scripted"), embedder=embedder) for _ in range(2))
    ada.remember("Ada drinks tea.", **SAID)
    assert (contents(ada, "Who drinks tea?"), contents(ben, "Who drinks tea?")) == (["Ada drinks tea."], [])
