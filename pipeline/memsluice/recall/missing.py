"""What the log says lies in a scope and the store does not give: deleted, or hidden so that no search finds it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from memsluice.envelope.keys import Keyring
from memsluice.events.ids import scope_tag
from memsluice.events.models import Visibility, Zone
from memsluice.recall.counted import Counted
from memsluice.recall.landed import Lying
from memsluice.recall.reader import Current, RecallQuery, judge
from memsluice.recall.withheld import Withheld
from memsluice.stores.base import UPSERT_MAX, Scope, Served, VectorStore

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

    def among(self, tenant: str, zone: Zone, scopes: Iterable[str], object_ids: Iterable[str]) -> list[str]:
        """Return those of the objects that lie in scopes, as of the last question about the tenant."""


class Missing:
    """Compares a store with the log. A server counts seldom (:mod:`memsluice.recall.counted`), a file each time."""

    def __init__(self, store: VectorStore, keys: Callable[[], Keyring], freshness: KnowsWhatLies) -> None:
        self._store = store
        self._keys = keys
        self._freshness = freshness
        self._counted = Counted() if isinstance(store, Served) else None

    def of(self, asked: RecallQuery, judged: Mapping[str, object], *, exhausted: bool) -> int:
        """Return how many entries the log says lie in the scope and the store does not give.

        A search that ended by itself must have found every one of them. Otherwise the store is asked how many it has
        to choose from, which planted objects can hide: *land*'s sweep finds what this can not.
        """
        lying = lying_of(self._freshness, asked)
        if exhausted and lying.ids is not None:
            return len(self._still_missing(asked, [one for one in lying.ids if one not in judged]))
        everybody, own = Scope(), replace(asked.scope, shared=False)
        return sum(self._counted_in(replace(asked, scope=scope)) for scope in (everybody, own))

    def close(self) -> None:
        """End what counts beside the answers."""
        if self._counted is not None:
            self._counted.close()

    def _counted_in(self, asked: RecallQuery) -> int:
        if not (number := lying_of(self._freshness, asked).number):
            return 0
        if self._counted is None:
            return self._fewer(asked)
        place = (asked.tenant, asked.zone.value, asked.namespace, asked.scope.principal, asked.scope.session)
        return self._counted.missing(place, number, lambda: self._fewer(asked))

    def _fewer(self, asked: RecallQuery) -> int:
        """Return by how many the store has fewer than the log; what came or went during a count is none of them."""
        where = (asked.tenant, asked.zone, asked.scope, asked.namespace, asked.now_ms)
        has = self._store.candidates(*where)
        if lying_of(self._freshness, asked).number <= has:
            return 0
        before = self._said_now(asked)
        has = max(has, self._store.candidates(*where))
        return max(0, min(before, self._said_now(asked)) - has)

    def _said_now(self, asked: RecallQuery) -> int:
        self._freshness.current(asked.tenant, ())
        return lying_of(self._freshness, asked).number

    def _still_missing(self, asked: RecallQuery, ids: Sequence[str]) -> list[str]:
        """Return those that the store does not give by their id either, as they were admitted, and that still lie."""
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


def lying_of(freshness: KnowsWhatLies, asked: RecallQuery) -> Lying:
    """Return what lies in the scopes that a question covers, as of the last question about its tenant."""
    return freshness.lying(asked.tenant, asked.zone, _tags(asked))


def among(freshness: KnowsWhatLies, asked: RecallQuery, object_ids: Iterable[str]) -> list[str]:
    """Return those of the objects that lie in the scopes that a question covers, each once, as of the last question
    about its tenant."""
    return freshness.among(asked.tenant, asked.zone, _tags(asked), dict.fromkeys(object_ids))


def _tags(asked: RecallQuery) -> list[str]:
    owners = [(Visibility.SHARED, "")] if asked.scope.shared else []
    if asked.scope.principal:
        owners.append((Visibility.PRINCIPAL, asked.scope.principal))
    if asked.scope.session:
        owners.append((Visibility.SESSION, asked.scope.session))
    return [scope_tag(asked.tenant, visibility, owner, asked.namespace) for visibility, owner in owners]
