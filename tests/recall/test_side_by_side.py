"""A store that answers while the log is read: what changes meanwhile is neither lost nor taken for forged."""

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from tests.recall.test_missing import TEXTS, ask, travelled
from tests.stages.test_land_floor import gone
from tests.store_repair.sites import EmbeddedSite
from tests.stores.build import accepted

from memsluice.stores.base import Starting


class Meanwhile:
    """A store whose search sees what was done after it was started."""

    def __init__(self, store: Any, then: Callable[[], object] = bool) -> None:
        self._store = store
        self._then = then
        self.counted = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def searching(self, *asked: Any) -> Callable[[], Any]:
        """Start a search, which sees what is done before its answer is waited for."""

        def answer() -> Any:
            self._then()
            return self._store.search(*asked)

        return answer

    def counting(self, *asked: Any) -> Callable[[], int]:
        """Count when started."""
        self.counted += 1
        number = self._store.candidates(*asked)
        return lambda: number


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
    assert isinstance(store, Starting)
    answer = ask(site, encoder, store=store)
    assert {found.content for found in answer.entries} == {TEXTS[0], TEXTS[1]}
    assert answer.withheld == {}


def test_what_was_withdrawn_before_the_question_is_withheld(site, encoder) -> None:
    """The store still finds it; the log, read meanwhile, says that it is gone."""
    zone = site.land(0, TEXTS[0], travelled(encoder, TEXTS[0])).zone
    record = accepted(site.tenant, 0, TEXTS[0], travelled(encoder, TEXTS[0]))
    (stored,) = site.store.page(site.tenant, zone, "", 5)
    site.take(gone(record, 20, site.tenant))
    site.write_past(stored)
    answer = ask(site, encoder, store=Meanwhile(site.store))
    assert (answer.entries, answer.withheld) == ((), {"withdrawn": 1})


def test_what_is_deleted_behind_a_started_count_is_missing(site, encoder) -> None:
    """In a scope with more entries than are fetched the number that the store began to count is compared with the
    log's, and asked again before anything is told."""
    more = [site.land(n, f"Note {n}", travelled(encoder, f"Note {n}")) for n in range(30)]
    store = Meanwhile(site.store)
    assert ask(site, encoder, k=2, store=store).withheld == {}
    site.store.delete(site.tenant, more[0].zone, [more[0].object_id])
    assert ask(site, encoder, k=2, store=store).withheld == {"missing": 1}
    assert store.counted == 2
