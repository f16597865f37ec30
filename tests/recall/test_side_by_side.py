"""A store that answers while the log is read: what changes meanwhile is neither lost nor taken for forged."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Event, current_thread, main_thread
from typing import Any
from uuid import uuid4

import pytest
from tests.patience import HANG_S
from tests.recall.test_missing import QUESTION, TEXTS, travelled
from tests.recall.test_recaller import WHO, Told, recaller
from tests.stages.test_land_floor import gone
from tests.store_repair.sites import EmbeddedSite
from tests.stores.build import PARTITIONS, RING, T0, accepted

from memsluice.events.models import Visibility
from memsluice.recall.freshness import FreshnessIndex
from memsluice.stores.base import Scope, Served
from memsluice.topics.names import STORE


class Meanwhile:
    """A server whose search sees what was done after the log was read."""

    def __init__(self, store: Any, then: Callable[[], object] = bool) -> None:
        self._store = store
        self._then = then
        self.scopes: list[Any] = []
        self.read = Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def search(self, tenant: str, zone: Any, vector: Any, k: int, scope: Any, *rest: Any) -> Any:
        """Search once the log was read, and something was done then."""
        assert self.read.wait(HANG_S)
        self._then()
        self.scopes.append(scope)
        return self._store.search(tenant, zone, vector, k, scope or Scope("ana", "s-1"), *rest)

    def search_whole(self, tenant: str, zone: Any, vector: Any, k: int) -> Any:
        """Search the whole partition, of which all that matters here is Ana's."""
        return self.search(tenant, zone, vector, k, None, "default", 0)


class Copied:
    """A log as the test's thread sees it now, and any other as that saw it last: SQLite's is its thread's."""

    def __init__(self, site) -> None:
        self._log = site.reader(STORE)
        self._records = [list(self._log.read(partition)) for partition in range(PARTITIONS)]

    def end(self, partition: int) -> int:
        """Return where it ends."""
        if current_thread() is main_thread():
            self._records[partition] = list(self._log.read(partition))
        return len(self._records[partition])

    def read(self, partition: int, from_offset: int = 0) -> Any:
        """Read to its end."""
        return iter(self._records[partition][from_offset:])


class Telling(FreshnessIndex):
    """An index that tells when it read the log."""

    told: Event

    def current(self, tenant: str, object_ids: Sequence[str]) -> Any:
        """Read the log, and tell."""
        found = super().current(tenant, object_ids)
        self.told.set()
        return found


@contextmanager
def reader(site, encoder, store: Any) -> Iterator[Callable[[], Any]]:
    """Give what asks again and again, with one reader."""
    fresh = Telling(Copied(site), lambda: RING, PARTITIONS, lambda: T0)
    fresh.told = store.read
    asked = recaller(store, encoder, Told(), T0, freshness=fresh)
    yield lambda: asked.recall(site.tenant, QUESTION, k=2, **WHO)


@pytest.fixture
def site(tmp_path):
    """An embedded store and its logs."""
    made = EmbeddedSite(f"side-{uuid4().hex[:10]}", tmp_path)
    yield made
    made.close()


def test_what_lands_during_the_search_is_known(site, encoder) -> None:
    """The log was read before it landed and the store searched after: it is looked up once more, and returned."""
    site.land(1, TEXTS[1], travelled(encoder, TEXTS[1]))
    store = Meanwhile(site.store, lambda: site.land(2, TEXTS[0], travelled(encoder, TEXTS[0])))
    assert isinstance(store, Served)
    with reader(site, encoder, store=store) as asked:
        answer = asked()
    assert {found.content for found in answer.entries} == {TEXTS[0], TEXTS[1]}
    assert answer.withheld == {}


def test_what_was_withdrawn_before_the_question_is_withheld(site, encoder) -> None:
    """The store still finds it; the log, read meanwhile, says that it is gone."""
    zone = site.land(0, TEXTS[0], travelled(encoder, TEXTS[0])).zone
    record = accepted(site.tenant, 0, TEXTS[0], travelled(encoder, TEXTS[0]))
    (stored,) = site.store.page(site.tenant, zone, "", 5)
    site.take(gone(record, 20, site.tenant))
    site.write_past(stored)
    with reader(site, encoder, store=Meanwhile(site.store)) as asked:
        answer = asked()
    assert (answer.entries, answer.withheld) == ((), {"withdrawn": 1})


def test_where_nearly_all_lies_in_the_scope_the_store_searches_without_one(site, encoder) -> None:
    """What others wrote for themselves is then left out by the reader, and is neither shown nor told as withheld."""
    for n in range(40):
        site.land(n, f"Note {n}", travelled(encoder, f"Note {n}"))
    site.land(50, "Bo's note on what Ana drinks", travelled(encoder, "Bo's note on what Ana drinks"), principal="bo",
              visibility=Visibility.PRINCIPAL)  # fmt: skip
    store = Meanwhile(site.store)
    with reader(site, encoder, store=store) as asked:
        first, second = asked(), asked()
    assert store.scopes[1] is None  # the first question did not know the log yet
    assert [found.content for found in first.entries] == [found.content for found in second.entries]
    assert second.withheld == {}


def test_a_scope_that_is_a_part_of_the_zone_is_searched_as_one(site, encoder) -> None:
    """Others' entries would take the places of one's own."""
    for n in range(30):
        site.land(n, f"Note {n}", travelled(encoder, f"Note {n}"), principal="bo", visibility=Visibility.PRINCIPAL)
    site.land(40, TEXTS[0], travelled(encoder, TEXTS[0]))
    store = Meanwhile(site.store)
    with reader(site, encoder, store=store) as asked:
        asked()
        assert [found.content for found in asked().entries] == [TEXTS[0]]
    assert None not in store.scopes
