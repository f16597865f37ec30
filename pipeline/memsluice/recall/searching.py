"""How far a recall searches: past what does not verify, within a bound."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from memsluice.envelope.keys import Keyring
from memsluice.errors import AnswerTooLarge, ScopeTooLarge, StoreError, StoreUnavailable
from memsluice.recall import tracing
from memsluice.recall.landed import LISTED_MAX, Lying
from memsluice.recall.missing import Freshness, KnowsWhatLies, Missing, among, lying_of
from memsluice.recall.reader import Current, RecallQuery, Selection, VerifiedEntry, judge
from memsluice.recall.wanted import Wanted
from memsluice.recall.withheld import Withheld
from memsluice.stores.base import SEARCH_MAX, SEARCHED_MAX, UPSERT_MAX, Hit, Served, StoredObject, VectorStore

FETCH_MIN, FETCH_MAX = 20, SEARCH_MAX
"""Objects that one search of a recall asks the store for: first what is wanted, or FETCH_MIN where that is all that
lies there; then more if any are withheld; at the last the ids of the SEARCHED_MAX nearest, and one part after the other
of what they name."""
FETCH_GROWTH = 4
READS_MAX = 64
"""Reads of the log that run beside searches; questions about one partition share one."""
OTHERS_MAX = 20
"""Where no more of a zone lies out of the scope, the first search leaves the scope to the reader: a filter over all
makes the store twice as slow. It then asks for so many more, whatever the question: if what others wrote could take the
place of what was wanted, a second search would tell the asker, by its time, that somebody wrote nearer to it."""


class Searcher:
    """Searches a store for entries that hold; ``keys`` and ``freshness`` as in
    :class:`~memsluice.recall.recaller.Recaller`."""

    def __init__(
        self,
        store: VectorStore,
        keys: Callable[[], Keyring],
        freshness: Freshness | None,
    ) -> None:
        self._store = store
        self._keys = keys
        self._freshness = freshness
        self._knows = freshness if isinstance(freshness, KnowsWhatLies) else None
        self._missing = None if self._knows is None else Missing(store, keys, self._knows)
        self._beside = ThreadPoolExecutor(READS_MAX, "memsluice-log")

    def close(self) -> None:
        """End what runs beside the answers."""
        self._beside.shutdown(wait=False, cancel_futures=True)
        if self._missing is not None:
            self._missing.close()

    def verified(self, asked: RecallQuery, wanted: Wanted) -> Selection:
        """Search, and search wider and further while withheld entries take the place of ones that hold.

        The first search leaves expired entries in, so that they are counted; the others leave them to the store.
        """
        judged: dict[str, VerifiedEntry | Withheld] = {}
        lying = Lying(0, None) if self._knows is None else lying_of(self._knows, asked)
        size, now_ms, first = self._first_size(lying, wanted), 0, True
        while True:
            try:
                hits, exhausted = self._first(asked, size, lying) if first else self._search(asked, size, now_ms)
            except AnswerTooLarge:  # planted objects, larger than any entry: their ids fit, and a part at a time
                selection, exhausted = self._further(asked, wanted, judged)
                break
            found = [hit.object for hit in hits]
            # To verify an entry takes long: those beyond what is wanted only if needed, or where it is all there is.
            for some in (found,) if exhausted else (found[: wanted.size], found[wanted.size :]):
                self._judge(some, asked, judged, read=first)
                selection = wanted.of(judged.items())
                if wanted.enough(selection):
                    break
            if wanted.enough(selection) or exhausted:
                break
            if size == FETCH_MAX and now_ms > 0:
                selection, exhausted = self._further(asked, wanted, judged)
                break
            size = min(FETCH_GROWTH * max(size, FETCH_MIN), FETCH_MAX)
            now_ms, first = asked.now_ms, False
        missing = 0 if self._missing is None else self._missing.of(asked, judged, exhausted=exhausted)
        incomplete = not wanted.enough(selection) and not exhausted
        return replace(selection, missing=missing, incomplete=incomplete)

    def named(self, asked: RecallQuery, ids: Sequence[str] | None, wanted: Wanted) -> Selection:
        """Verify objects that are asked for by their ids, or with None all that lie in the scope.

        An object's id follows from its owner and key, so anybody can name another's. The log says which of the ids lie
        in the scope, and the store is asked for no others: what is not the asker's is, in reasons and in time, as what
        nobody ever wrote. Raises StoreError where no index of the log was given, ScopeTooLarge where more lie there
        than it names.
        """
        judged: dict[str, VerifiedEntry | Withheld] = {}
        if self._knows is None:
            raise StoreError("entries are asked for by name only where the log tells which there are")
        self._knows.current(asked.tenant, ())
        ids = _all_of(lying_of(self._knows, asked)) if ids is None else among(self._knows, asked, ids)
        for start in range(0, len(ids), UPSERT_MAX):
            held = self._store.held(asked.tenant, asked.zone, ids[start : start + UPSERT_MAX])
            self._judge(held.values(), asked, judged)
        missing = [one for one in ids if one not in judged]
        if missing:  # what was withdrawn, or given to somebody else, meanwhile is none of them
            self._knows.current(asked.tenant, ())
            missing = among(self._knows, asked, missing)
        mine = {one: found for one, found in judged.items() if found is not Withheld.SCOPE}
        return replace(wanted.of(mine.items()), missing=len(missing))

    def _first_size(self, lying: Lying, wanted: Wanted) -> int:
        """Return how much the first search asks for. It is to show all that lies there where that is little: then
        nothing can be hidden behind objects that were planted."""
        size = min(wanted.size, FETCH_MAX)
        little = self._knows is not None and lying.number < FETCH_MIN
        return max(size, FETCH_MIN) if little else size

    def _first(self, asked: RecallQuery, size: int, lying: Lying) -> tuple[Sequence[Hit], bool]:
        """Search, and read the log to its end meanwhile."""
        if not (isinstance(self._store, Served) and self._knows is not None):
            return self._search(asked, size, 0)
        try:
            read = self._beside.submit(self._knows.current, asked.tenant, ())
        except RuntimeError:  # it was closed
            raise StoreUnavailable("this recaller was closed") from None
        others = lying.all - lying.number
        if lying.number >= FETCH_MIN and others <= OTHERS_MAX:
            hits, exhausted = self._search_whole(self._store, asked, min(size + others, FETCH_MAX))
        else:
            hits, exhausted = self._search(asked, size, 0)
        read.result()
        return hits, exhausted

    def _search_whole(self, store: Served, asked: RecallQuery, size: int) -> tuple[Sequence[Hit], bool]:
        with tracing.search(asked.zone, size) as span:
            hits = store.search_whole(asked.tenant, asked.zone, asked.question, size)
            span.set_attribute("db.response.returned_rows", len(hits))
        return [hit for hit in hits if _in_scope(hit.object, asked)], len(hits) < size

    def _search(self, asked: RecallQuery, size: int, now_ms: int) -> tuple[Sequence[Hit], bool]:
        """Return what is nearest, and whether it is all there is."""
        with tracing.search(asked.zone, size) as span:
            where = (asked.tenant, asked.zone, asked.question, size, asked.scope, asked.namespace, now_ms)
            hits = self._store.search(*where)
            span.set_attribute("db.response.returned_rows", len(hits))
        return hits, len(hits) < size

    def _further(
        self, asked: RecallQuery, wanted: Wanted, judged: dict[str, VerifiedEntry | Withheld]
    ) -> tuple[Selection, bool]:
        """Look at all that is as near as the bound allows, until enough holds; return whether there is nothing else."""
        with tracing.search(asked.zone, SEARCHED_MAX) as span:
            where = (asked.tenant, asked.zone, asked.question, asked.scope, asked.namespace, asked.now_ms)
            ids = self._store.nearest_ids(*where)
            span.set_attribute("db.response.returned_rows", len(ids))
        left, selection = [one for one in ids if one not in judged], wanted.of(judged.items())
        for start in range(0, len(left), FETCH_MAX):
            part = left[start : start + FETCH_MAX]
            held = self._store.held(asked.tenant, asked.zone, part)
            self._judge([held[one] for one in part if one in held], asked, judged)
            selection = wanted.of(judged.items())
            if wanted.enough(selection):
                return selection, False
        return selection, len(ids) < SEARCHED_MAX

    def _judge(
        self,
        found: Iterable[StoredObject],
        asked: RecallQuery,
        judged: dict[str, VerifiedEntry | Withheld],
        *,
        read: bool = False,
    ) -> None:
        """Judge what was not judged yet; ``read`` says that the log was read to its end since the question came."""
        items, keyring = [one for one in found if one.object_id not in judged], self._keys()
        current = self._current(asked.tenant, items, read=read)
        for one in items:
            judged[one.object_id] = judge(one, asked, keyring, current=current)

    def _current(self, tenant: str, items: Sequence[StoredObject], *, read: bool) -> Mapping[str, Current] | None:
        """Return what the log says of objects that were found.

        A log that was read during the search can be older than what the search found. It is then read once more.
        """
        if self._freshness is None:
            return None
        ids = [one.object_id for one in items]
        if read and self._knows is not None and isinstance(self._store, Served):
            known = self._knows.known(tenant, ids)
            if all(one.object_id in known and known[one.object_id].version >= one.version for one in items):
                return known
        return self._freshness.current(tenant, ids)


def _all_of(lying: Lying) -> list[str]:
    if lying.ids is None:
        raise ScopeTooLarge(f"more than {LISTED_MAX} entries lie in the scope: search it, or ask for some by their ids")
    return sorted(lying.ids)


def _in_scope(item: StoredObject, asked: RecallQuery) -> bool:
    """Whether a search in the question's scope and namespace would have returned it."""
    return item.namespace == asked.namespace and asked.scope.admits(item.visibility, item.owner)
