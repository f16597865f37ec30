"""ADK's memory service, gated: what a session leaves is signed, screened and verified, and a held write raises."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from datetime import UTC, datetime
from uuid import uuid4

from google.adk.events.event import Event
from google.adk.memory.base_memory_service import BaseMemoryService, SearchMemoryResponse
from google.adk.memory.memory_entry import MemoryEntry
from google.adk.sessions.session import Session as AdkSession
from google.genai.types import Content, Part

from memsluice.client.requests import Session
from memsluice.errors import InvalidArgument
from memsluice.memory.documents import Document, document_of
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S, Memory
from memsluice.memory.observing import name_of
from memsluice.memory.shelf import Shelf, entry_of
from memsluice.memory.shelves import Shelves
from memsluice.recall import prompt

NAMESPACE = "google_adk"
"""The part of the tenant's memory that these memories lie in, an app's below it (``google_adk/APP``)."""
SEARCH_K = 10
RUNNING: "ContextVar[Session | None]" = ContextVar("running", default=None)
"""Whose run it is, as the plugin says: ADK tells its memory service the person, and not the session."""


class GatedMemoryService(BaseMemoryService):
    """Give it to ``Runner(memory_service=...)``. Memories of one app and person; ``user_id`` is the principal,
    ``app_name`` the agent.

    A session is opened by the :class:`~memsluice.adapters.google_adk.plugin.GatedPlugin` alone, which observes what it
    sees: without it nothing that is added becomes guidance. What is added and has no entry then raises WriteHeld,
    WriteRefused, LandingUnknown, or BatchNotRemembered with each one's result; what was added before is written once.
    Texts alone are kept. A memory's ``custom_metadata`` is not.
    """

    def __init__(self, gate: Gate, *, timeout_s: float = TIMEOUT_S) -> None:
        self._tenant = gate.tenant
        self._unknown = uuid4().hex
        self._gate = gate
        self._timeout_s = timeout_s
        self._apps: dict[str, Shelves] = {}

    def register(self, scheme: str) -> None:
        """Have ADK's commands find this service under ``scheme://`` (``--memory_service_uri``)."""
        from google.adk.cli.service_registry import get_service_registry

        get_service_registry().register_memory_service(scheme, lambda uri, **_: self)

    @contextmanager
    def acting(self, session: Session) -> Iterator[None]:
        """Say who asks, within: of calls outside of a run, which name no session. Open it (``memory(session).open()``)
        where no model had a part in them: else nothing is added to guidance, or deleted from it."""
        token = RUNNING.set(session)
        try:
            yield
        finally:
            RUNNING.reset(token)

    def session(self, app_name: str, user_id: str, session_id: str | None) -> Session:
        """Return whose memory it is; without an id the session that is running, else one that nobody opened."""
        running = RUNNING.get()
        if session_id is None and running is not None and (running.agent, running.principal) == (app_name, user_id):
            return running
        return Session(self._tenant, app_name, user_id, session_id or f"{self._unknown}/{user_id}")

    def memory(self, session: Session) -> Memory:
        """Return a session's memory."""
        return self._shelf(session).memory

    def _shelf(self, session: Session) -> Shelf:
        app = session.agent
        if app not in self._apps:
            place = f"{NAMESPACE}/{app}"
            self._apps.setdefault(app, Shelves(self._gate, place, timeout_s=self._timeout_s, opens=False))
        return self._apps[app].of(session)

    async def add_session_to_memory(self, session: AdkSession) -> None:
        """Keep what was said in a session, each event once."""
        await self.add_events_to_memory(
            app_name=session.app_name, user_id=session.user_id, session_id=session.id, events=session.events
        )

    async def add_events_to_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        events: Sequence[Event],
        session_id: str | None = None,
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep what was said in some events, each once."""
        said = [(one.id, one.author, _text(one.content)) for one in events]
        session = self.session(app_name, user_id, session_id)
        named = [(*one, f"adk-{name_of(session, one[0], one[2])[:32]}") for one in said if one[2]]
        await self._kept(session, named)

    async def add_memory(
        self,
        *,
        app_name: str,
        user_id: str,
        memories: Sequence[MemoryEntry],
        custom_metadata: Mapping[str, object] | None = None,
    ) -> None:
        """Keep memories as they are; one with an id that there is takes its place, whatever that id said before."""
        said = [(one.id or uuid4().hex, one.author or "", _text(one.content)) for one in memories]
        if not all(text for _, _, text in said):
            raise InvalidArgument("argument memories has one without text, and texts alone are kept")
        await self._kept(self.session(app_name, user_id, None), [(*one, f"adk-{uuid4().hex}") for one in said])

    async def search_memory(self, *, app_name: str, user_id: str, query: str) -> SearchMemoryResponse:
        """Return the nearest verified memories, each as a line that says what it is
        (:mod:`memsluice.recall.prompt`)."""
        shelf = self._shelf(self.session(app_name, user_id, None))
        return SearchMemoryResponse(memories=await asyncio.to_thread(_found, shelf, query))

    async def delete_memory(self, *, app_name: str, user_id: str, memory_id: str | None = None) -> None:
        """Put a mark without content in a memory's place; raises as adding does."""
        if not memory_id:
            raise InvalidArgument("argument memory_id is missing: there is no deleting of all that a person has")
        shelf = self._shelf(self.session(app_name, user_id, None))
        await asyncio.to_thread(shelf.put, [Document((), memory_id, None)])

    async def _kept(self, session: Session, said: Sequence[tuple[str, str, str, str]]) -> None:
        """Write texts, each with its name, its author and the id of its event; wait for all."""
        entries = []
        for name, author, text, event_id in said:
            entry = entry_of(Document((), name, {"text": text, "author": author}))
            entries.append(replace(entry, event_id=event_id))
        if entries:
            await asyncio.to_thread(self.memory(session).put, entries)


def _found(shelf: Shelf, query: str) -> list[MemoryEntry]:
    answer = shelf.answer(query, SEARCH_K)
    memories = []
    for entry in answer.entries if answer is not None else ():
        one = document_of(entry)
        assert one is not None
        said = ": ".join(str(part) for part in map((one.value or {}).get, ("author", "text")) if part)
        memories.append(
            MemoryEntry(
                id=one.key,
                content=Content(role="user", parts=[Part(text=prompt.entry_line(entry, said))]),
                timestamp=datetime.fromtimestamp(one.written_ms / 1_000, UTC).isoformat(),
            )
        )
    return memories


def _text(content: Content | None) -> str:
    parts = (content.parts if content else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought)
