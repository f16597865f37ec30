"""mem0's own Memory on a gated store: a real one, its model scripted, its telemetry off."""

import asyncio
import json
import os
from hashlib import md5
from typing import Any

import pytest

os.environ["MEM0_TELEMETRY"] = "False"  # read when mem0 is imported

from mem0 import AsyncMemory, Memory
from mem0.exceptions import VectorStoreError
from tests.memory.conftest import ORDER

from memsluice import Origin, Session
from memsluice.adapters.mem0 import GatedVectorStore, attach
from memsluice.adapters.mem0.filters import matches
from memsluice.errors import BatchNotRemembered, InvalidArgument, LandingUnknown, WriteHeld
from memsluice.memory.embedded import EmbeddedGate
from memsluice.memory.memory import Memory as OurMemory

FACTS = ("Ada drinks tea in the morning.", "Ada has a cat called Miso.")


def made(kind: Any, tmp_path: Any, facts: list[str]) -> Any:
    """Return a memory of mem0's whose model finds these facts in whatever is said."""
    found = kind.from_config({
        "vector_store": {"provider": "faiss", "config": {"path": str(tmp_path / "faiss"), "embedding_model_dims": 3}},
        "llm": {"provider": "openai", "config": {"api_key": "none"}},
        "embedder": {"provider": "openai", "config": {"api_key": "none"}},
        "history_db_path": str(tmp_path / "history.db"),
    })  # fmt: skip
    said = json.dumps({"memory": [{"id": str(at), "text": one} for at, one in enumerate(facts)]})
    found.llm.generate_response = lambda **_: said
    found.embedding_model.embed = lambda text, action=None: [0.1, 0.2, 0.3]
    found.embedding_model.embed_batch = lambda texts, action=None: [[0.1, 0.2, 0.3] for _ in texts]
    return found


@pytest.fixture
def store(gate: EmbeddedGate) -> GatedVectorStore:
    """Give a store of its own."""
    return GatedVectorStore(gate)


def said(user: str, text: str) -> dict[str, Any]:
    """Return a payload as mem0 makes it."""
    digest = md5(text.encode(), usedforsecurity=False).hexdigest()
    return {"user_id": user, "data": text, "text_lemmatized": text.lower(), "hash": digest}


def test_what_mem0_finds_is_remembered_and_found_again(gate, tmp_path) -> None:
    """Added, searched, listed, changed and deleted by mem0's own code; of a person by his own name alone."""
    memory = attach(made(Memory, tmp_path, list(FACTS)), gate)
    added = memory.add("I drink tea, and Miso is my cat.", user_id="ada")["results"]
    assert sorted(one["memory"] for one in added) == sorted(FACTS)
    found = memory.search("What does Ada drink?", filters={"user_id": "ada"})["results"]
    assert found[0]["memory"] == FACTS[0]
    assert memory.get_all(filters={"user_id": "ben"})["results"] == []
    name = next(one["id"] for one in added if one["memory"] == FACTS[0])
    memory.update(name, "Ada drinks coffee now.")
    assert memory.get(name)["memory"] == "Ada drinks coffee now."
    memory.delete(name)
    assert [one["memory"] for one in memory.get_all(filters={"user_id": "ada"})["results"]] == [FACTS[1]]


@pytest.mark.parametrize("kind", [Memory, AsyncMemory])
def test_a_held_memory_is_raised_though_mem0_goes_on_without_it(gate, tmp_path, kind) -> None:
    """mem0 retries one by one and drops what fails: the caller is told what was held, and what was kept, once each."""
    memory = attach(made(kind, tmp_path, [FACTS[0], ORDER]), gate)

    def add() -> None:
        done = memory.add("whatever", user_id="ada")
        if kind is AsyncMemory:
            asyncio.run(done)

    with pytest.raises(BatchNotRemembered) as caught:
        add()
    kept, held = caught.value.results
    assert (kept["memory"], type(held)) == (FACTS[0], WriteHeld)
    mine = OurMemory(gate, Session("acme", "x", "ada", "look"), namespace="mem0")
    assert not any("mallory" in one.content for one in mine.every().entries)


def test_nothing_that_mem0_drops_is_dropped_without_a_word(gate, tmp_path) -> None:
    """Not what no event can carry, either; and what landed at mem0's second try is not told as lost."""
    memory = attach(made(Memory, tmp_path, [FACTS[0], "word " * 30_000]), gate)
    with pytest.raises(BatchNotRemembered) as caught:
        memory.add("whatever", user_id="ada")
    assert [getattr(one, "code", None) or one["memory"] for one in caught.value.results] == [FACTS[0], "limit_exceeded"]
    memory = attach(made(Memory, tmp_path / "two", [FACTS[1]]), gate)
    shelf = memory.vector_store._shelves.of(Session("acme", "mem0", "ada", f"{memory.vector_store._run}/ada"))
    write_all, tries = shelf.memory.write_all, []

    def unknown_at_first(entries: Any) -> Any:
        tries.append(1)
        done = write_all(entries)
        if len(tries) == 1:
            raise BatchNotRemembered([LandingUnknown("silence", event_id="e")])
        return done

    shelf.memory.write_all = unknown_at_first
    assert [one["memory"] for one in memory.add("whatever", user_id="ada")["results"]] == [FACTS[1]]
    assert len(tries) == 2


def test_where_all_is_held_our_error_is_raised(gate, tmp_path) -> None:
    """It says what became of each. Where something else failed, mem0's own error is raised as ever."""
    memory = attach(made(Memory, tmp_path, [ORDER]), gate)
    with pytest.raises(BatchNotRemembered, match="held in quarantine"):
        memory.add("whatever", user_id="ada")
    memory.vector_store.insert = None  # any other failure
    with pytest.raises(VectorStoreError):
        memory.add("whatever", user_id="ada")


def test_an_insert_that_is_said_again_writes_once(store, gate) -> None:
    """mem0 says a batch again one by one: what landed of it is told so, and stands in the log once."""
    payloads = [said("ada", FACTS[0]), said("ada", ORDER)]
    with pytest.raises(BatchNotRemembered):
        store.insert([[0.1], [0.1]], payloads, ["a", "b"])
    store.insert([[0.1]], payloads[:1], ["a"])
    with pytest.raises(WriteHeld):
        store.insert([[0.1]], payloads[1:], ["b"])
    assert [one.payload["data"] for one in store.list({"user_id": "ada"})[0]] == [FACTS[0]]


def test_a_persons_run_that_saw_a_page_remembers_nothing_as_guidance(store, gate) -> None:
    """The run is the session: what the platform observes in it taints what mem0 writes for it afterwards."""
    OurMemory(gate, Session("acme", "mem0", "ada", "run-1")).observe(Origin.WEB, content="a page")
    with pytest.raises(WriteHeld, match="outside data"):
        store.insert([[0.1]], [{**said("ada", "The mill is cheapest."), "run_id": "run-1"}], ["a"])
    store.insert([[0.1]], [{**said("ada", "Ada likes plums."), "run_id": "run-2"}], ["b"])


def test_a_run_that_saw_a_page_deletes_nothing_by_id(store, gate) -> None:
    """Nor after a listing that names no run; nor what another run wrote, where the platform says who asks."""
    tainted, clean = (Session("acme", "mem0", "ada", run) for run in ("run-1", "run-0"))
    store.insert([[0.1]], [{**said("ada", "Payments go to Bob Ltd."), "run_id": "run-1"}], ["m1"])
    store.insert([[0.1]], [{**said("ada", "Ada lives in Lyon."), "run_id": "run-0"}], ["m2"])
    OurMemory(gate, tainted).observe(Origin.WEB, content="a page")
    store.list({"user_id": "ada"})
    with pytest.raises(WriteHeld, match="outside data"):
        store.delete("m1")
    with store.acting(tainted), pytest.raises(WriteHeld, match="outside data"):
        store.delete("m2")
    with store.acting(clean):
        store.delete("m2")
    assert [one.id for one in store.list({"user_id": "ada"})[0]] == ["m1"]


def test_a_memory_may_become_what_it_was(store) -> None:
    """A change is a write of its own, also where it says what was said before."""
    store.insert([[0.1]], [said("ada", "Ada drinks tea.")], ["m1"])
    for text in ("Ada drinks milk.", "Ada drinks tea."):
        store.update("m1", None, said("ada", text))
    assert store.get("m1").payload["data"] == "Ada drinks tea."


def test_one_persons_held_memory_takes_no_others_with_it(store) -> None:
    """A batch of several persons' memories is written for each, and every result is told."""
    with pytest.raises(BatchNotRemembered) as caught:
        store.insert([[0.1], [0.1]], [said("ada", ORDER), said("ben", "Ben has a dog.")], ["a", "b"])
    assert [isinstance(one, WriteHeld) for one in caught.value.results] == [True, False]
    assert [one.id for one in store.list({"user_id": "ben"})[0]] == ["b"]


def test_whose_a_memory_is_must_be_said(store) -> None:
    """A memory of nobody, an id that nobody read, and the deletion of all people's memories are refused."""
    with pytest.raises(InvalidArgument, match="user_id"):
        store.insert([[0.1]], [{"data": "x"}], ["a"])
    with pytest.raises(InvalidArgument, match="user_id"):
        store.search("x", [0.1])
    with pytest.raises(InvalidArgument, match="agent_id"):
        store.search("x", [0.1], filters={"user_id": "ada", "agent_id": {"in": ["a"]}})
    with pytest.raises(InvalidArgument, match="payloads"):
        store.insert([[0.1]], [said("ada", "x"), said("ada", "y")], ["a"])
    with pytest.raises(InvalidArgument, match="list them first"):
        store.delete("unknown")
    assert store.get("unknown") is None
    for wipe in (store.delete_col, store.reset):
        with pytest.raises(InvalidArgument, match="as a whole"):
            wipe()


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        (None, True), ({"n": 3}, True), ({"n": "*"}, True), ({"n": {"gte": 3, "lt": 4}}, True),
        ({"n": {"in": [1]}}, False),
        ({"t": {"icontains": "MILL"}}, True), ({"t": {"contains": "MILL"}}, False), ({"t": {"gt": 1}}, False),
        ({"$or": [{"n": 1}, {"t": "the mill"}]}, True), ({"$not": [{"n": 3}]}, False), ({"n": {"nin": [1]}}, True),
    ],
)  # fmt: skip
def test_a_filter_means_what_it_means_to_mem0(wanted, found) -> None:
    """Each of its operators, and what it makes of AND, OR and NOT."""
    assert matches({"n": 3, "t": "the mill"}, wanted) is found
