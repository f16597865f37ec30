"""Every framework's adapter as figures call it: put, read and search of a person, whatever the framework names them."""

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol
from uuid import uuid4

from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.errors import NotRemembered
from memsluice.keystore.store import issue_credential
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S, Wait
from memsluice.memory.opening import open_gate
from memsluice_lab.figures.bed import Bed

os.environ.setdefault("MEM0_TELEMETRY", "False")  # read when mem0 is imported
TENANT, AGENT = "adapters", "assistant"
LISTED_MAX = 1_000
Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]


class Kept(Protocol):
    """Texts of persons in a memory: a gated one, or a plain one beside it. Safe for several threads where gated."""

    def put(self, person: str, key: str, text: str) -> str:
        """Keep a text, and return the name that :meth:`read` asks by. Raises where it is not remembered."""

    def read(self, person: str, name: str) -> str | None:
        """Return one text by the name that a put returned; None where it is not there."""

    def search(self, person: str, question: str, k: int) -> list[str]:
        """Return the nearest texts."""

    def every(self, person: str) -> list[str]:
        """Return all texts of a person, at most LISTED_MAX."""


Opened = Callable[[Gate, Path], Kept]
"""Opens an adapter on a gate; the folder is for what the framework keeps itself."""


@contextmanager
def gate_on(running: Bed) -> Iterator[Gate]:
    """Give the tenant's gate on a stack, with credentials, and close it."""
    for role in (Role.PRODUCER, Role.RUNTIME, Role.READER):
        issue_credential(running.store, role, "agent", [TENANT], now_ms=wall_ms())
    gate = open_gate(tenant=TENANT, home=running.home, mode="stack")
    try:
        yield gate
    finally:
        gate.close()


class LangGraph:
    """A LangGraph store, one for each person: a gated store is of one session. ``store`` makes a person's."""

    def __init__(self, store: Callable[[str], Any]) -> None:
        self._store = cache(store)

    @classmethod
    def gated(cls, gate: Gate, _place: Path, *, wait: Wait = "landed", timeout_s: float = TIMEOUT_S) -> "LangGraph":
        """Return our adapter on a gate; each person has a session."""
        from memsluice.adapters.langgraph import GatedStore

        run = uuid4().hex[:8]

        def store(person: str) -> GatedStore:
            return GatedStore(gate, Session(TENANT, AGENT, person, f"{run}/{person}"), wait=wait, timeout_s=timeout_s)

        return cls(store)

    def put(self, person: str, key: str, text: str) -> str:
        """See :class:`Kept`."""
        self._store(person).put((person, "memories"), key, {"text": text})
        return key

    def read(self, person: str, name: str) -> str | None:
        """See :class:`Kept`."""
        found = self._store(person).get((person, "memories"), name)
        return None if found is None else str(found.value["text"])

    def search(self, person: str, question: str, k: int) -> list[str]:
        """See :class:`Kept`."""
        return [str(one.value["text"]) for one in self._store(person).search((person,), query=question, limit=k)]

    def every(self, person: str) -> list[str]:
        """See :class:`Kept`."""
        return [str(one.value["text"]) for one in self._store(person).search((person,), limit=LISTED_MAX)]


class Mem0:
    """A ``Memory`` of mem0's, told what to remember instead of asking a model for it."""

    def __init__(self, memory: Any) -> None:
        self._memory = memory

    @classmethod
    def gated(cls, gate: Gate, place: Path) -> "Mem0":
        """Return mem0's memory with our stores attached; it is given vectors, which are not used."""
        from memsluice.adapters.mem0 import attach

        return cls(attach(own_mem0(place, digests, dimensions=8, provider="faiss"), gate, agent=AGENT))

    def put(self, person: str, key: str, text: str) -> str:
        """See :class:`Kept`; mem0 makes the name."""
        (done,) = self._memory.add(text, user_id=person, infer=False)["results"]
        return str(done["id"])

    def read(self, person: str, name: str) -> str | None:
        """See :class:`Kept`."""
        found = self._memory.get(name)
        return None if found is None else str(found["memory"])

    def search(self, person: str, question: str, k: int) -> list[str]:
        """See :class:`Kept`."""
        found = self._memory.search(question, filters={"user_id": person}, top_k=k, threshold=0.0)
        return [str(one["memory"]) for one in found["results"]]

    def every(self, person: str) -> list[str]:
        """See :class:`Kept`."""
        found = self._memory.get_all(filters={"user_id": person}, top_k=LISTED_MAX)
        return [str(one["memory"]) for one in found["results"]]


class CrewAI:
    """A CrewAI storage, one for each person, as its ``Memory`` calls it once its model has said what to keep."""

    def __init__(self, storage: Callable[[str], Any]) -> None:
        self._storage = cache(storage)

    @classmethod
    def gated(cls, gate: Gate, _place: Path) -> "CrewAI":
        """Return our storages on a gate; each person has a session."""
        import memsluice_lab.crews  # noqa: F401 - before CrewAI: where it may write
        from memsluice.adapters.crewai import GatedStorage

        run = uuid4().hex[:8]
        return cls(lambda person: GatedStorage(gate, Session(TENANT, AGENT, person, f"{run}/{person}")))

    def put(self, person: str, key: str, text: str) -> str:
        """See :class:`Kept`; CrewAI makes the name."""
        from crewai.memory.types import MemoryRecord

        record = MemoryRecord(content=text, scope="/notes")
        self._storage(person).save([record])
        return str(record.id)

    def read(self, person: str, name: str) -> str | None:
        """See :class:`Kept`."""
        found = self._storage(person).get_record(name)
        return None if found is None else str(found.content)

    def search(self, person: str, question: str, k: int) -> list[str]:
        """See :class:`Kept`."""
        from memsluice.adapters.crewai import embedder

        found = self._storage(person).search(embedder([question])[0], limit=k)
        return [str(record.content) for record, _score in found]

    def every(self, person: str) -> list[str]:
        """See :class:`Kept`."""
        return [str(one.content) for one in self._storage(person).list_records(limit=LISTED_MAX)]


class Mcp:
    """A client of our memory server, in this process; the server's sessions are opened by nobody, so it keeps data."""

    def __init__(self, server: Callable[[str], Any]) -> None:
        self._server = cache(server)

    @classmethod
    def gated(cls, gate: Gate, _place: Path) -> "Mcp":
        """Return our servers on a gate, one for each person."""
        from memsluice.adapters.mcp import Person, memory_server

        return cls(lambda person: memory_server(gate, Person(AGENT, person)))

    def put(self, person: str, key: str, text: str) -> str:
        """See :class:`Kept`. Raises NotRemembered where the tool's answer is an error."""
        note = {"name": key, "entityType": "note", "observations": [text]}
        self._called(person, "create_entities", entities=[note])
        return key

    def read(self, person: str, name: str) -> str | None:
        """See :class:`Kept`."""
        return next(iter(self._texts(person, "open_nodes", names=[name])), None)

    def search(self, person: str, question: str, k: int) -> list[str]:
        """See :class:`Kept`; the protocol's search is for a text that is contained, so a word of the question is."""
        return self._texts(person, "search_nodes", query=question.split()[-1].strip("?"))[:k]

    def every(self, person: str) -> list[str]:
        """See :class:`Kept`."""
        return self._texts(person, "read_graph")

    def _texts(self, person: str, tool: str, **given: Any) -> list[str]:
        found = self._called(person, tool, **given).structured_content["entities"]
        return [str(text) for one in found for text in one["observations"]]

    def _called(self, person: str, tool: str, **given: Any) -> Any:
        from mcp.client import Client

        async def answer() -> Any:
            async with Client(self._server(person)) as client:
                return await client.call_tool(tool, given)

        told = asyncio.run(answer())
        if told.is_error:
            raise NotRemembered(told.content[0].text, event_id="")
        return told


def own_mem0(place: Path, embed: Embed, *, dimensions: int, provider: str) -> Any:
    """Return mem0's ``Memory`` on its own store (``faiss``, or ``qdrant``, its default) below a folder.

    Its texts are embedded by ``embed``, and its model answers nothing yet.
    """
    from mem0 import Memory

    model: dict[str, Any] = {"provider": "openai", "config": {"api_key": "none"}}
    store: dict[str, Any] = {"path": str(place / provider), "embedding_model_dims": dimensions}
    if provider == "qdrant":
        store["on_disk"] = True
    memory: Any = Memory.from_config({
        "vector_store": {"provider": provider, "config": store}, "llm": model, "embedder": model,
        "history_db_path": str(place / f"{provider}.db"),
    })  # fmt: skip
    memory.embedding_model.embed = lambda text, action=None: list(embed([text])[0])
    memory.embedding_model.embed_batch = lambda texts, action=None: [list(one) for one in embed(texts)]
    return memory


def digests(texts: Sequence[str]) -> list[list[float]]:
    """Return vectors that say nothing: for a framework whose own are not used."""
    return [[1 + one / 255 for one in sha256(text.encode()).digest()[:8]] for text in texts]


ADAPTERS: dict[str, Opened] = {
    "LangGraph": LangGraph.gated, "mem0": Mem0.gated, "CrewAI": CrewAI.gated, "MCP": Mcp.gated,
}  # fmt: skip
"""One line for each framework."""

_NAMES = ("Ada", "Ben", "Cem", "Dora", "Eli", "Fay", "Gil", "Hana", "Ivo", "Jan", "Kim", "Lea", "Mia", "Nils")
_DOES = (
    "drinks {} cups of tea in a week", "has read {} pages of the harbour novel", "keeps {} bees behind the house",
    "planted {} tulips along the fence", "sings in a choir of {} people", "swims {} lengths on Tuesdays",
    "lives {} steps from the market", "baked {} rolls for the summer party", "collects stamps and has {} of them",
)  # fmt: skip


def text_of(number: int) -> str:
    """Return a plain sentence; another one for each number."""
    return f"{_NAMES[number % len(_NAMES)]} {_DOES[number % len(_DOES)].format(number + 2)}."
