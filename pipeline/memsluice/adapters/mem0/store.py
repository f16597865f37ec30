"""mem0's vector store, gated: what mem0 keeps of a person is signed, screened and verified, and a held write raises.

mem0's own vectors are not used: the gate embeds what it lands, and a question with the same model.
"""

import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from hashlib import sha256
from typing import Any
from uuid import uuid4

from mem0.vector_stores.base import VectorStoreBase
from pydantic import BaseModel

from memsluice.adapters.mem0.filters import matches
from memsluice.client import arguments
from memsluice.client.requests import Session
from memsluice.errors import BatchNotRemembered, InvalidArgument, MemsluiceError
from memsluice.memory.documents import Document
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S, Entry
from memsluice.memory.outcome import Outcome
from memsluice.memory.shelf import entry_of
from memsluice.memory.shelves import Shelves

NAMESPACE = "mem0"
"""The part of the tenant's memory that mem0's memories lie in."""
DERIVED = ("text_lemmatized",)
"""What mem0 makes of a text for its own search of words: nothing of ours needs it, and it would be screened twice."""
KNOWN_MAX = 10_000
"""Ids of which it is remembered whose they are."""
held: "ContextVar[dict[tuple[str, str], MemsluiceError] | None]" = ContextVar("held", default=None)
"""What is not remembered, by collection and id, in a call of mem0's that goes on without it."""


_acting: "ContextVar[Session | None]" = ContextVar("acting", default=None)


class Found(BaseModel):
    """One memory, as mem0 reads it."""

    id: str
    score: float | None = None
    payload: dict[str, Any]


Some = list[Found]
Pages = list[Some]
Names = list[str]


class GatedVectorStore(VectorStoreBase):  # type: ignore[misc]  # mem0 says nothing of its types
    """Memories of one collection. Safe for several threads.

    Whose a memory is, mem0 says: ``user_id`` is the principal, ``run_id`` the session, ``agent_id`` the agent, without
    one ``agent``. Without a run the session is "run/person": ``run``, a name of its own where none is given. A memory
    that is asked for by its id alone has to have been seen here before; it is asked for, changed and deleted in the
    session that :meth:`acting` names, else in the one in which it was written or last seen with a run of its own: an id
    alone does not say who asks.
    """

    def __init__(
        self,
        gate: Gate,
        *,
        agent: str = "mem0",
        collection: str = "mem0",
        run: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.gate = gate
        self.collection = collection
        self._agent = agent
        self._run = run or uuid4().hex
        self._lock = threading.Lock()
        self._shelves = Shelves(gate, NAMESPACE, timeout_s=timeout_s)
        self._whose: OrderedDict[str, Session] = OrderedDict()

    @contextmanager
    def acting(self, session: Session) -> Iterator[None]:
        """Say who asks, within: of calls that have nothing but an id. A session that saw something then deletes nothing
        of guidance."""
        token = _acting.set(session)
        try:
            yield
        finally:
            _acting.reset(token)

    def insert(
        self, vectors: Sequence[Any], payloads: Sequence[dict[str, Any]] | None = None, ids: Sequence[str] | None = None
    ) -> None:
        """Write memories; said again under the same ids they are written once.

        Raises WriteHeld, WriteRefused, LandedElsewhere, LandingUnknown or, of several, BatchNotRemembered; mem0 then
        says each again by itself and drops those that fail: :func:`~memsluice.adapters.mem0.attaching.attach` has them
        raised after all.
        """
        names = [str(one) for one in ids or (uuid4() for _ in vectors)]
        said = payloads or [{} for _ in names]
        if len(said) != len(names):
            raise InvalidArgument(f"argument payloads has {len(said)} items, and there are {len(names)} ids")
        by_session: dict[Session, list[tuple[str, dict[str, Any]]]] = {}
        for name, payload in zip(names, said, strict=True):
            by_session.setdefault(self._session(payload, name), []).append((name, payload))
        results: list[object] = []
        for session, mine in by_session.items():
            try:
                results += self._written(session, mine)
            except BatchNotRemembered as error:
                results += error.results
            except MemsluiceError as error:
                results += [error] * len(mine)
        failed = [one for one in results if isinstance(one, MemsluiceError)]
        if failed:
            raise failed[0] if len(results) == 1 else BatchNotRemembered(results)

    def search(self, query: str, vectors: Any, top_k: int = 5, filters: Mapping[str, Any] | None = None) -> list[Found]:
        """Return the nearest memories of a person to a question, the nearest first; ``vectors`` is not used."""
        session, rest = self._asked(filters)
        kept = self._shelves.of(session).nearest(
            query, (self.collection,), top_k, lambda one: matches(one.value or {}, rest)
        )
        return [self._found(one, session, one.similarity) for one in kept]

    def list(self, filters: Mapping[str, Any] | None = None, top_k: int | None = 100) -> Pages:
        """Return a person's memories, the latest first, in a list of one list, as mem0 unpacks it."""
        session, rest = self._asked(filters)
        kept = self._shelves.of(session).below((self.collection,), lambda one: matches(one.value or {}, rest))
        return [[self._found(one, session, None) for one in kept[:top_k]]]

    def get(self, vector_id: str) -> Found | None:
        """Return a memory by its id; None where this process does not know whose it is, or it is no more."""
        session = self._by_id(str(vector_id))
        if session is None:
            return None
        name = ((self.collection,), str(vector_id))
        found = self._shelves.of(session).get([name]).get(name)
        return None if found is None else self._found(found, session, None)

    def update(self, vector_id: str, vector: Any = None, payload: dict[str, Any] | None = None) -> None:
        """Replace a memory. Raises as :meth:`insert`."""
        if payload is not None:
            session = _acting.get() or self._session(payload, str(vector_id))
            self._written(session, [(str(vector_id), payload)], again=False)

    def delete(self, vector_id: str) -> None:
        """Replace a memory by a mark without content. Raises InvalidArgument where nobody knows whose it is."""
        session = self._by_id(str(vector_id))
        if session is None:
            raise InvalidArgument("argument vector_id is of no memory that was read or written here: list them first")
        self._shelves.of(session).put([Document((self.collection,), str(vector_id), None)])

    def create_col(self, name: str, vector_size: int, distance: str) -> None:
        """Do nothing: a collection is a name."""

    def list_cols(self) -> Names:
        """Return this collection's name."""
        return [self.collection]

    def col_info(self) -> dict[str, Any]:
        """Return this collection's name. How much is in it is told to nobody who asks for no person."""
        return {"name": self.collection}

    def delete_col(self) -> None:
        """Raise InvalidArgument: a memory of many people is not deleted by one call of one of them."""
        raise InvalidArgument("a gated collection is not deleted as a whole: delete memories, or erase the tenant")

    def reset(self) -> None:
        """Raise InvalidArgument, as :meth:`delete_col`."""
        self.delete_col()

    def _by_id(self, name: str) -> Session | None:
        return _acting.get() or self._whose.get(name)

    def _written(
        self, session: Session, some: Sequence[tuple[str, dict[str, Any]]], *, again: bool = True
    ) -> Sequence[Outcome]:
        """Write, and note for :func:`attach` which of it is not remembered so far; ``again``: mem0 may say it again."""
        told: Sequence[object] = [None] * len(some)
        try:
            return self._shelves.of(session).memory.write_all([self._entry(*one, again=again) for one in some])
        except BatchNotRemembered as error:
            told = error.results
            raise (told[0] if len(told) == 1 and isinstance(told[0], MemsluiceError) else error) from None
        except MemsluiceError as error:  # nothing of it was published
            told = [error] * len(some)
            raise
        finally:
            if (noted := held.get()) is not None:
                for (name, _payload), one in zip(some, told, strict=True):
                    noted.pop((self.collection, name), None)
                    if isinstance(one, MemsluiceError):
                        noted[self.collection, name] = one

    def _entry(self, name: str, payload: Mapping[str, Any], *, again: bool) -> Entry:
        value = {field: one for field, one in payload.items() if field not in DERIVED}
        entry = entry_of(Document((self.collection,), name, value))
        if not again:
            return entry
        digest = sha256(entry.content.encode("utf-8", "surrogatepass")).hexdigest()
        return replace(entry, event_id=f"mem0-{name}-{digest[:16]}")

    def _session(self, said: Mapping[str, Any], name: str | None = None) -> Session:
        user = said.get("user_id")
        if not isinstance(user, str) or not user:
            raise InvalidArgument("argument user_id is missing: it says whose memory this is")
        for field in ("agent_id", "run_id"):
            arguments.instance(field, said.get(field), (str, type(None)), "one name: it says who asks")
        session = Session(
            self.gate.tenant, said.get("agent_id") or self._agent, user, said.get("run_id") or f"{self._run}/{user}"
        )
        if name is not None:
            self._remember(name, session)
        return session

    def _asked(self, filters: Mapping[str, Any] | None) -> tuple[Session, dict[str, Any]]:
        said = dict(filters or {})
        return self._session(said), {name: one for name, one in said.items() if name != "user_id"}

    def _remember(self, name: str, session: Session) -> None:
        with self._lock:
            known = self._whose.get(name)
            if (
                known is not None
                and known.principal == session.principal
                and session.session.startswith(f"{self._run}/")
            ):
                session = known  # a listing without a run says nothing of who will ask for what it lists
            self._whose[name] = session
            self._whose.move_to_end(name)
            if len(self._whose) > KNOWN_MAX:
                self._whose.popitem(last=False)

    def _found(self, one: Document, session: Session, score: float | None) -> Found:
        self._remember(one.key, session)
        return Found(id=one.key, score=score, payload=dict(one.value or {}))
