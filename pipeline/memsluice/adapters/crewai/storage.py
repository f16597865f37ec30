"""CrewAI's storage of memories, gated: what a crew remembers is signed, screened and verified, and a held write raises.

CrewAI's own vectors are not used: the gate embeds what it lands, and a question with the same model.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any, Self

from crewai.memory.types import MemoryRecord, ScopeInfo

from memsluice.adapters.crewai import merging
from memsluice.adapters.crewai.questions import question_of
from memsluice.adapters.crewai.records import PLACE, Keeps, document_of_record, kept, naive, parts, record_of, wanted
from memsluice.adapters.crewai.tools import Watched
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.errors import StateError
from memsluice.events.models import Origin
from memsluice.memory.documents import Document
from memsluice.memory.gate import Gate
from memsluice.memory.memory import TIMEOUT_S, Memory
from memsluice.memory.shelf import Shelf

NAMESPACE = "crewai"
"""The part of the tenant's memory that CrewAI's memories lie in."""


class GatedStorage(Watched):
    """A CrewAI ``StorageBackend`` of one session on a gate. Safe for several threads.

    The session says whose the memories are, and never what is written; a person is given what it wrote, whatever the
    scope. A write returns, also in CrewAI's background, once it can be read back, and raises NotRemembered where it
    cannot: CrewAI tells that as ``MemorySaveFailedEvent``.

    What any tool returned to an agent of a crew that remembers here is outside content, and taints the session, unless
    the tool is in ``trusted_tools``: those whose results nobody outside can write. ``origins`` says of a tool by name
    what it reads (``Origin.WEB`` of a browser); of others it is ``Origin.TOOL``. CrewAI's own tools that read and write
    a gated memory are trusted.
    """

    def __init__(
        self,
        gate: Gate,
        session: Session,
        *,
        trusted_tools: Collection[str] = (),
        origins: Mapping[str, Origin] | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        super().__init__(Memory(gate, session, namespace=NAMESPACE, timeout_s=timeout_s), trusted_tools, origins)
        self._shelf = Shelf(self.memory)

    @classmethod
    def factory(cls, gate: Gate, session: Session | Callable[[], Session], **options: Any) -> Callable[[str], Self]:
        """Return what ``set_memory_storage_factory`` takes; ``session`` may be a function, which each new memory asks.

        ``options`` are those of a storage. The memories need the gated :func:`embedder` besides.
        """
        return lambda _spec: cls(gate, session if isinstance(session, Session) else session(), **options)

    def __deepcopy__(self, _memo: dict[int, Any]) -> Self:
        """Return itself: a copied crew goes on in the session of the first."""
        return self

    def save(self, records: list[MemoryRecord]) -> None:
        """Write records; of several raises BatchNotRemembered, which has every one's result, of one what became of it.

        Raises StateError, and writes nothing, where the hook was taken away that says what the session saw.
        """
        self._known()
        now_ms = wall_ms()
        if records:
            with merging.undone_where_it_fails(self._shelf):
                self._shelf.put([document_of_record(one, now_ms) for one in records])

    def update(self, record: MemoryRecord) -> None:
        """Replace a record. Raises as :meth:`save`."""
        self.save([record])

    def search(
        self,
        query_embedding: list[float],
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        metadata_filter: dict[str, Any] | None = None,
        limit: int = 10,
        min_score: float = 0.0,
    ) -> list[tuple[MemoryRecord, float]]:
        """Return the nearest verified records with their cosines, the nearest first.

        Raises InvalidArgument for a vector that is not of the gated :func:`embedder`, ProducerError and StoreError.
        """
        keeps = kept(wanted(scope_prefix, categories, metadata_filter))
        found = self._shelf.nearest(question_of(query_embedding), PLACE, limit, keeps)
        near = ((record_of(one), max(one.similarity, 0.0)) for one in found)
        return [(record, score) for record, score in near if record is not None and score >= min_score]

    def get_record(self, record_id: str) -> MemoryRecord | None:
        """Return a record by its id; None where there is none."""
        found = self._own([record_id])
        return record_of(found[0]) if found else None

    def list_records(self, scope_prefix: str | None = None, limit: int = 200, offset: int = 0) -> list[MemoryRecord]:
        """Return records of a scope, the latest first. Raises StoreError where a person has more than 1,000."""
        found = self._records(wanted(scope_prefix))
        return found[offset : offset + limit]

    def delete(
        self,
        scope_prefix: str | None = None,
        categories: list[str] | None = None,
        record_ids: list[str] | None = None,
        older_than: datetime | None = None,
        metadata_filter: dict[str, Any] | None = None,
    ) -> int:
        """Replace the records that are all of this by marks without content, and return how many. Raises as save.

        Those that CrewAI deletes in favour of a text that it saves next are there again where that is not kept.
        """
        self._known()
        keeps = wanted(scope_prefix, categories, metadata_filter, record_ids, older_than)
        names = record_ids if record_ids is not None else [one.id for one in self._records(keeps)]
        gone = [one for one in self._own(names) if kept(keeps)(one)]
        if gone:
            merging.note(self._shelf, gone)
            with merging.undone_where_it_fails(self._shelf):
                self._shelf.put([Document(PLACE, one.key, None) for one in gone])
        return len(gone)

    def reset(self, scope_prefix: str | None = None) -> None:
        """Delete what the person has in a scope; of others nothing."""
        self.delete(scope_prefix)

    def get_scope_info(self, scope: str) -> ScopeInfo:
        """Return how much is in a scope and below, of which categories, from when till when, and its children."""
        found = self._records(wanted(scope))
        times = [one.created_at for one in found]
        return ScopeInfo(
            path="/" + "/".join(parts(scope)),
            record_count=len(found),
            categories=sorted({name for one in found for name in one.categories}),
            oldest_record=min(times, default=None),
            newest_record=max(times, default=None),
            child_scopes=_children(scope, found),
        )

    def list_scopes(self, parent: str = "/") -> list[str]:
        """Return the paths of a scope's children."""
        return _children(parent, self._records(wanted(parent)))

    def list_categories(self, scope_prefix: str | None = None) -> dict[str, int]:
        """Return how many records of a scope have each category."""
        return dict(Counter(name for one in self._records(wanted(scope_prefix)) for name in one.categories))

    def count(self, scope_prefix: str | None = None) -> int:
        """Return how many records are in a scope and below."""
        return len(self._records(wanted(scope_prefix)))

    async def asave(self, records: list[MemoryRecord]) -> None:
        """As :meth:`save`, in a worker thread."""
        await asyncio.to_thread(self.save, records)

    async def asearch(
        self, query_embedding: list[float], *args: Any, **kwargs: Any
    ) -> list[tuple[MemoryRecord, float]]:
        """As :meth:`search`, in a worker thread."""
        return await asyncio.to_thread(self.search, query_embedding, *args, **kwargs)

    async def adelete(self, *args: Any, **kwargs: Any) -> int:
        """As :meth:`delete`, in a worker thread."""
        return await asyncio.to_thread(self.delete, *args, **kwargs)

    def _known(self) -> None:
        """Raise StateError where it is not known any more what the session saw."""
        if not self.watched():
            raise StateError(
                "CrewAI's tool hooks were cleared, and what its agents saw since is not known: nothing is written; "
                "make the memory, or attach it, after they are cleared, in a session of its own"
            )

    def _records(self, keeps: Keeps) -> list[MemoryRecord]:
        found = [record_of(one) for one in self._shelf.below(PLACE, kept(keeps))]
        return sorted((one for one in found if one is not None), key=lambda one: naive(one.created_at), reverse=True)

    def _own(self, names: Collection[str]) -> list[Document]:
        """Return the person's own documents of these ids: what an operator gave to all is not theirs to delete."""
        return list(self._shelf.get([(PLACE, name) for name in names]).values())


def _children(parent: str, records: list[MemoryRecord]) -> list[str]:
    depth = len(parts(parent)) + 1
    return sorted({"/" + "/".join(path[:depth]) for one in records if len(path := parts(one.scope)) >= depth})
