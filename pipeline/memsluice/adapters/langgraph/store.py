"""LangGraph's store, gated: what a graph remembers is signed, screened and verified, and a held write raises.

Not built on LangGraph's AsyncBatchedBaseStore, which collapses puts of one key, so that the log would lack some, and
lets one failure fail its whole batch.
"""

import asyncio
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import groupby
from pathlib import Path as FilePath
from types import TracebackType
from typing import Any, Self

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
)

from memsluice.adapters.langgraph.filters import listed, matches
from memsluice.adapters.langgraph.sessions import SessionOf, session_of_config
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.memory.documents import Document, Path
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S, Wait
from memsluice.memory.opening import Mode, open_gate
from memsluice.memory.shelf import Shelf, document
from memsluice.memory.shelves import Shelves

NAMESPACE = "langgraph"
"""The part of the tenant's memory that LangGraph's documents lie in."""


class GatedStore(BaseStore):
    """A LangGraph ``BaseStore`` on a gate. Safe for several threads, and for asyncio.

    ``session`` says whose memory a call is about: a Session, or a function that tells at each call
    (:func:`~memsluice.adapters.langgraph.sessions.session_of_config`). A principal is given what it wrote, whatever
    the namespace. A put that is held, contained or refused raises NotRemembered; ``wait`` and ``timeout_s`` as in
    :class:`~memsluice.memory.memory.Memory`. ``ttl`` as LangGraph's stores have it; what is read is written anew where
    less than half of its time is left. ``index`` False hides a document from questions; its fields are not told apart.
    """

    supports_ttl = True

    def __init__(
        self,
        gate: Gate,
        session: Session | SessionOf,
        *,
        wait: Wait = "landed",
        timeout_s: float = TIMEOUT_S,
        ttl: TTLConfig | None = None,
    ) -> None:
        super().__init__()
        self.gate = gate
        self.ttl_config = ttl
        self._session_of: SessionOf = (lambda: session) if isinstance(session, Session) else session
        self._shelves = Shelves(gate, NAMESPACE, wait=wait, timeout_s=timeout_s)

    @classmethod
    def open(
        cls,
        *,
        tenant: str,
        agent: str,
        session: Session | SessionOf | None = None,
        home: FilePath | None = None,
        mode: Mode = "auto",
        wait: Wait = "landed",
        timeout_s: float = TIMEOUT_S,
        ttl: TTLConfig | None = None,
    ) -> Self:
        """Open a store with a gate of its own (:func:`~memsluice.memory.opening.open_gate`), closed with it.

        Without ``session`` the graph's configuration tells it: ``user_id`` and ``thread_id``.
        """
        gate = open_gate(tenant=tenant, home=home, mode=mode)
        return cls(gate, session or session_of_config(tenant, agent), wait=wait, timeout_s=timeout_s, ttl=ttl)

    def close(self) -> None:
        """Close the gate."""
        self.gate.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations in their order; puts that follow each other are published together, then waited for.

        Raises NotRemembered for a put that has no entry, BatchNotRemembered for some of several.
        """
        shelf, results = self.shelf(), list[Result]()
        for kind, some in groupby(ops, key=type):
            if issubclass(kind, PutOp):
                results += self._put(shelf, [one for one in some if isinstance(one, PutOp)])
            else:
                results += [self._read(shelf, one) for one in some]
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """As :meth:`batch`, in a worker thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def shelf(self) -> Shelf:
        """Return the documents of the session for which this is called."""
        return self._shelves.of(self._session_of())

    def _put(self, shelf: Shelf, ops: Sequence[PutOp]) -> list[Result]:
        now_ms = wall_ms()
        shelf.put([_document(one, now_ms) for one in ops])
        return [None] * len(ops)

    def _read(self, shelf: Shelf, op: Op) -> Result:
        if isinstance(op, GetOp):
            name = (tuple(op.namespace), str(op.key))
            found = shelf.get([name]).get(name)
            if found is not None and op.refresh_ttl:
                shelf.renew([found])
            return None if found is None else Item(**_fields(found))
        if isinstance(op, SearchOp):
            return _searched(shelf, op)
        if isinstance(op, ListNamespacesOp):
            paths = listed((one.path for one in shelf.below(())), op.match_conditions or (), op.max_depth)
            return paths[op.offset : op.offset + op.limit]
        raise TypeError(f"a store knows no operation {type(op).__name__}")


def _document(op: PutOp, now_ms: int) -> Document:
    ttl_s = op.ttl * 60 if isinstance(op.ttl, int | float) else op.ttl
    return document(tuple(op.namespace), op.key, op.value, ttl_s, now_ms, searched=op.index is not False)


def _searched(shelf: Shelf, op: SearchOp) -> list[SearchItem]:
    prefix: Path = tuple(op.namespace_prefix)

    def keeps(one: Document) -> bool:
        return matches(one.value or {}, op.filter)

    most = op.offset + op.limit
    found = shelf.nearest(op.query, prefix, most, keeps) if op.query else shelf.below(prefix, keeps)
    some = found[op.offset : most]
    if op.refresh_ttl:
        shelf.renew(some)
    return [SearchItem(**_fields(one), score=one.similarity if op.query else None) for one in some]


def _fields(found: Document) -> dict[str, Any]:
    written = datetime.fromtimestamp(found.written_ms / 1_000, UTC)
    return {
        "namespace": found.path,
        "key": found.key,
        "value": dict(found.value or {}),
        "created_at": written,
        "updated_at": written,
    }
