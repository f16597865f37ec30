"""How far a recall searches: past what does not verify, within a bound, and what of the log the store does not give."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from memsluice.envelope.keys import Keyring
from memsluice.errors import AnswerTooLarge
from memsluice.events.ids import scope_tag
from memsluice.events.models import Visibility, Zone
from memsluice.recall import tracing
from memsluice.recall.landed import Lying
from memsluice.recall.reader import Current, RecallQuery, Selection, VerifiedEntry, judge
from memsluice.recall.wanted import Wanted
from memsluice.recall.withheld import Withheld
from memsluice.stores.base import SEARCH_MAX, SEARCHED_MAX, UPSERT_MAX, Hit, Starting, StoredObject, VectorStore

SPARE, FETCH_MIN, FETCH_MAX = 3, 20, SEARCH_MAX
"""Objects that one search of a recall asks the store for: first SPARE more than are wanted, or FETCH_MIN where that is
all that lies there; then more if too many are withheld; at the last the ids of the SEARCHED_MAX nearest, and one part
after the other of what they name."""
FETCH_GROWTH = 4

_HIDDEN = frozenset({Withheld.FORGED, Withheld.MOVED, Withheld.PROPERTY, Withheld.CONTENT, Withheld.VECTOR})
"""How an entry that no search finds, and that lies there, was changed so that none does."""


class Freshness(Protocol):
    """What the log of landed objects says, as of the moment it is asked."""

    def current(self, tenant: str, object_ids: Sequence[str]) -> Mapping[str, Current]:
        """Return the current version, or withdrawal, of those objects that the log knows."""


@runtime_checkable
class KnowsWhatLies(Freshness, Protocol):
    """A freshness index that can also tell what a search should have had to choose from."""

    def known(self, tenant: str, object_ids: Sequence[str]) -> Mapping[str, Current]:
        """Return as :meth:`Freshness.current` what was known of the objects at the last question about the tenant."""

    def lying(self, tenant: str, zone: Zone, scopes: Iterable[str]) -> Lying:
        """Return what lies in scopes, by their tags, as of the last question about the tenant."""


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

    def verified(self, asked: RecallQuery, wanted: Wanted) -> Selection:
        """Search, and search wider and further while withheld entries take the place of ones that hold.

        The first search leaves expired entries in, so that they are counted; the others leave them to the store.
        """
        judged: dict[str, VerifiedEntry | Withheld] = {}
        size, now_ms, counting, read = self._first_size(asked, wanted), 0, None, True
        while True:
            try:
                if read:
                    hits, counting = self._first(asked, size)
                else:
                    hits = self._search(asked, size, now_ms)
            except AnswerTooLarge:  # planted objects, larger than any entry: their ids fit, and a part at a time
                selection, exhausted = self._further(asked, wanted, judged)
                break
            self._judge([hit.object for hit in hits], asked, judged, read=read)
            selection, exhausted = wanted.of(judged.items()), len(hits) < size
            if wanted.enough(selection) or exhausted:
                break
            if size == FETCH_MAX and now_ms > 0:
                selection, exhausted = self._further(asked, wanted, judged)
                break
            size = min(FETCH_GROWTH * max(size, FETCH_MIN), FETCH_MAX)
            now_ms, read = asked.now_ms, False
        missing = self._missing(asked, judged, exhausted=exhausted, counting=counting)
        incomplete = not wanted.enough(selection) and not exhausted
        return replace(selection, missing=missing, incomplete=incomplete)

    def _first_size(self, asked: RecallQuery, wanted: Wanted) -> int:
        """Return how much the first search asks for. It is to show all that lies there where that is little: then
        nothing can be hidden behind objects that were planted."""
        size = min(wanted.size + SPARE, FETCH_MAX)
        little = isinstance(self._freshness, KnowsWhatLies) and self._lying(self._freshness, asked).number < FETCH_MIN
        return max(size, FETCH_MIN) if little else size

    def _first(self, asked: RecallQuery, size: int) -> tuple[Sequence[Hit], Callable[[], int] | None]:
        """Search, and meanwhile read the log to its end and have the store count what a search chooses from.

        Return what was found, and what waits for that number: None where nothing was begun.
        """
        if not (isinstance(self._store, Starting) and isinstance(self._freshness, KnowsWhatLies)):
            return self._search(asked, size, 0), None
        place = (asked.tenant, asked.zone)
        with tracing.search(asked.zone, size) as span:
            found = self._store.searching(*place, asked.question, size, asked.scope, asked.namespace, 0)
            counting = self._store.counting(*place, asked.scope, asked.namespace, asked.now_ms)
            self._freshness.current(asked.tenant, ())
            hits = found()
            span.set_attribute("db.response.returned_rows", len(hits))
        return hits, counting

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

    def _search(self, asked: RecallQuery, size: int, now_ms: int) -> Sequence[Hit]:
        with tracing.search(asked.zone, size) as span:
            where = (asked.tenant, asked.zone, asked.question, size, asked.scope, asked.namespace, now_ms)
            hits = self._store.search(*where)
            span.set_attribute("db.response.returned_rows", len(hits))
        return hits

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
        if read and isinstance(self._freshness, KnowsWhatLies) and isinstance(self._store, Starting):
            known = self._freshness.known(tenant, ids)
            if all(one.object_id in known and known[one.object_id].version >= one.version for one in items):
                return known
        return self._freshness.current(tenant, ids)

    def _lying(self, freshness: KnowsWhatLies, asked: RecallQuery) -> Lying:
        return freshness.lying(asked.tenant, asked.zone, _tags(asked))

    def _missing(
        self,
        asked: RecallQuery,
        judged: Mapping[str, object],
        *,
        exhausted: bool,
        counting: Callable[[], int] | None,
    ) -> int:
        """Return how many entries the log says lie in the scope and the store does not give.

        A search that ended by itself must have found every one of them. Otherwise the store is asked how many it has
        to choose from, which planted objects can hide: *land*'s sweep finds what this can not.
        """
        if self._freshness is None or not isinstance(self._freshness, KnowsWhatLies):
            return 0
        lying = self._lying(self._freshness, asked)
        if exhausted and lying.ids is not None:
            return len(self._still_missing(asked, [one for one in lying.ids if one not in judged]))
        where = (asked.tenant, asked.zone, asked.scope, asked.namespace, asked.now_ms)
        has = self._store.candidates(*where) if counting is None else counting()
        if lying.number <= has:
            return 0
        self._freshness.current(asked.tenant, ())  # what was withdrawn meanwhile counts no more
        lying = self._lying(self._freshness, asked)
        return max(0, lying.number - max(has, self._store.candidates(*where)))

    def _still_missing(self, asked: RecallQuery, ids: Sequence[str]) -> list[str]:
        """Return those that the store does not give by their id either, as they were admitted, and that still lie."""
        assert self._freshness is not None
        missing = []
        for start in range(0, len(ids), UPSERT_MAX):
            part, keyring = ids[start : start + UPSERT_MAX], self._keys()
            held = self._store.held(asked.tenant, asked.zone, part)
            current = self._freshness.current(asked.tenant, part)
            for object_id in part:
                if (said := current.get(object_id)) is None or said.withdrawn:
                    continue
                found = held.get(object_id)
                if found is None or judge(found, asked, keyring, current=current) in _HIDDEN:
                    missing.append(object_id)
        return missing


def _tags(asked: RecallQuery) -> list[str]:
    """Return the tags of the scopes that a question covers."""
    owners = [(Visibility.SHARED, "")]
    if asked.scope.principal:
        owners.append((Visibility.PRINCIPAL, asked.scope.principal))
    if asked.scope.session:
        owners.append((Visibility.SESSION, asked.scope.session))
    return [scope_tag(asked.tenant, visibility, owner, asked.namespace) for visibility, owner in owners]
