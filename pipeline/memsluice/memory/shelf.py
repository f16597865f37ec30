"""Documents in one session's memory: put and delete, read by path and key, list and search below a path."""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from memsluice.client import arguments
from memsluice.clock import wall_ms
from memsluice.errors import NotRemembered
from memsluice.events.limits import RETURNED_MAX
from memsluice.memory.documents import Document, Path, document_of, key_of
from memsluice.memory.memory import Entry, Memory, askable
from memsluice.memory.outcome import Outcome
from memsluice.recall.reader import VerifiedEntry
from memsluice.recall.recaller import Narrow, Recalled

Keeps = Callable[[Document], bool]
TTL_MAX_S = 10 * 365 * 86_400.0
_log = logging.getLogger(__name__)


class Shelf:
    """A :class:`~memsluice.memory.memory.Memory` as documents. ``now_ms`` (Unix ms) is the clock they expire by."""

    def __init__(self, memory: Memory, now_ms: Callable[[], int] = wall_ms) -> None:
        self.memory = memory
        self._now_ms = now_ms

    def put(self, documents: Sequence[Document]) -> list[Outcome]:
        """Write documents, those without a value as deletions, and return once each can be read so.

        Raises BatchNotRemembered, with each one's result; of a single one what :meth:`Memory.write` raises.
        """
        return self.memory.put([entry_of(one) for one in documents])

    def get(self, names: Sequence[tuple[Path, str]]) -> dict[tuple[Path, str], Document]:
        """Return the documents of these paths and keys that live."""
        found = self.memory.read([key_of(*name) for name in names])
        return {(one.path, one.key): one for one in self._living(found.values()).values()}

    def below(self, prefix: Path, keeps: Keeps = lambda _: True) -> list[Document]:
        """Return what lives below a path, the latest written first. Raises StoreError beyond 1,000 entries."""
        return self.chosen(lambda living: [one for one in living if _below(one, prefix) and keeps(one)])

    def chosen(self, choose: Callable[[Sequence[Document]], Iterable[Document]]) -> list[Document]:
        """Return those documents that are chosen of all that live, the latest written first: no others are shown.

        Raises StoreError beyond 1,000 entries.
        """
        found: list[Document] = []

        def narrow(entries: Sequence[VerifiedEntry]) -> list[VerifiedEntry]:
            living = self._living(entries)
            found.extend(choose(list(living.values())))
            kept = {id(one) for one in found}
            shown = {name for name, one in living.items() if id(one) in kept}
            return [entry for entry in entries if entry.admission.object_id in shown]

        self.memory.every(narrow=narrow)
        return sorted(found, key=lambda one: (-one.written_ms, one.path, one.key))

    def nearest(self, question: str, prefix: Path, k: int, keeps: Keeps = lambda _: True) -> list[Document]:
        """Return the k nearest of what lives below a path, the nearest first, among the RETURNED_MAX nearest of all.

        Of a question that is too long for an event its beginning is asked. One without a word finds nothing.
        """
        found: list[Document] = []

        def narrow(entries: Sequence[VerifiedEntry]) -> list[VerifiedEntry]:
            kept = self._living(entries, lambda one: one.searched and _below(one, prefix) and keeps(one))
            near = [entry for entry in entries if entry.admission.object_id in kept]
            near = sorted(near, key=lambda entry: -entry.similarity)[:k]
            found.extend(replace(kept[one.admission.object_id], similarity=one.similarity) for one in near)
            return near

        self._asked(question, narrow)
        return found

    def answer(self, question: str, k: int) -> Recalled | None:
        """Return the k nearest documents that live and that questions find, as a recall does, better tiers first.

        None where the question has no word.
        """

        def narrow(entries: Sequence[VerifiedEntry]) -> list[VerifiedEntry]:
            living = self._living(entries, lambda one: one.searched)
            kept = [entry for entry in entries if entry.admission.object_id in living]
            last = sorted((entry.similarity for entry in kept), reverse=True)[:k][-1:]
            return [entry for entry in kept if entry.similarity >= last[0]][:k]

        return self._asked(question, narrow)

    def renew(self, documents: Iterable[Document]) -> None:
        """Write those anew, for as long as they had, that have less than half of their time left; wait for each.

        They are read once more before, so that what was put since is not undone; what is put in the milliseconds
        between is. One that is held, or lies outside because the session saw something since, keeps its end: what is
        read is no reason to raise.
        """
        now_ms = self._now_ms()
        late = [one for one in documents if one.expires_ms and one.ttl_s and one.expires_ms - now_ms < one.ttl_s * 500]
        if not late:
            return
        try:
            there = self.get([(one.path, one.key) for one in late])
            same = [one for one in late if getattr(there.get((one.path, one.key)), "event_id", "") == one.event_id]
            again = [replace(one, expires_ms=now_ms + round((one.ttl_s or 0) * 1_000)) for one in same]
            self.memory.write_all([entry_of(one, parents=[one.event_id]) for one in again])
        except NotRemembered as error:
            _log.info("a document that was read was not renewed: %s", error)

    def _asked(self, question: str, narrow: Narrow) -> Recalled | None:
        text = askable(question)
        return self.memory.search(text, k=RETURNED_MAX, narrow=narrow) if text else None

    def _living(self, entries: Iterable[VerifiedEntry], keeps: Keeps = lambda _: True) -> dict[str, Document]:
        """Return the documents among entries that live and are kept, by object id."""
        now_ms = self._now_ms()
        documents = ((entry.admission.object_id, document_of(entry)) for entry in entries)
        return {name: one for name, one in documents if one is not None and one.lives(now_ms) and keeps(one)}


def _below(document: Document, prefix: Path) -> bool:
    return document.path[: len(prefix)] == prefix


def entry_of(one: Document, parents: Sequence[str] = ()) -> Entry:
    """Return the keyed write of a document; ``parents`` are the event ids of what it was made from."""
    return Entry(one.content(), {"key": key_of(one.path, one.key), "parents": parents})


def document(
    path: Path, key: str, value: Mapping[str, Any] | None, ttl_s: float | None, now_ms: int, *, searched: bool = True
) -> Document:
    """Return a document to be written; ``ttl_s`` seconds from now (Unix ms) it expires. Raises InvalidArgument."""
    if ttl_s is not None:
        arguments.number("argument ttl", ttl_s, 0.001, TTL_MAX_S)
    return Document(path, key, value, ttl_s, None if ttl_s is None else now_ms + round(ttl_s * 1_000), searched)
