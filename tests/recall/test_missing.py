"""V5: what was deleted from the store, or hidden in it, is noticed at recall; on embedded and on real components."""

from dataclasses import replace
from uuid import uuid4

import pytest
from tests.recall.test_recaller import WHO, Told, recaller
from tests.stages.test_land_floor import gone
from tests.store_repair.sites import EmbeddedSite, StackSite
from tests.stores.build import PARTITIONS, RING, T0, accepted

from memsluice.envelope.codec import vector_from_bytes, vector_to_bytes
from memsluice.envelope.records import stored_to_bytes
from memsluice.events.models import Visibility, Zone
from memsluice.events.records import Output
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.recaller import Question
from memsluice.stores.base import Served
from memsluice.topics.names import STORE

QUESTION = "What does Ana drink?"
TEXTS = ["Ana drinks green tea.", "Flights are booked through the travel desk.", "The report goes to Berlin."]


@pytest.fixture(params=["embedded", pytest.param("stack", marks=pytest.mark.stack)])
def site(request, tmp_path):
    """A store and its logs, embedded and real."""
    tenant = f"miss-{uuid4().hex[:10]}"
    if request.param == "embedded":
        made = EmbeddedSite(tenant, tmp_path)
    else:
        request.getfixturevalue("unhurried")
        made = StackSite(tenant, request.getfixturevalue("stack"))
    yield made
    made.close()


def travelled(encoder, text: str):
    """Return a text's vector as it travels."""
    return vector_from_bytes(vector_to_bytes(encoder.encode([text])[0]))


@pytest.fixture
def entries(site, encoder):
    """Three entries that landed: what their store records say."""
    return [site.land(n, text, travelled(encoder, text)) for n, text in enumerate(TEXTS)]


def ask(site, encoder, k: int = 5, now_ms: int = T0, store=None, **who):
    """Ask with a reader that knows nothing yet but the log."""
    log = site.reader(STORE)
    fresh = FreshnessIndex(log, lambda: RING, PARTITIONS, lambda: now_ms)
    asked = recaller(store or site.store, encoder, Told(), now_ms, freshness=fresh)
    return asked.recall(site.tenant, QUESTION, k=k, **{**WHO, **who})


def hide(site, stored, how: str) -> None:
    """Do to an entry what somebody with the store's key could."""
    item = site.store.held(site.tenant, stored.zone, [stored.object_id])[stored.object_id]
    if how == "deleted":
        site.store.delete(site.tenant, stored.zone, [stored.object_id])
    elif how == "without its vector":
        site.strip_vector(item)
    else:
        changes = {
            "expired by another hand": {"expires_ms": -1},
            "another owner": {"owner": "bo"},
            "another namespace": {"namespace": "x"},
            "another visibility": {"visibility": "session"},
        }
        site.write_past(replace(item, **changes[how]))


WAYS = ["deleted", "expired by another hand", "another owner", "another namespace", "another visibility",
        "without its vector"]  # fmt: skip


@pytest.mark.parametrize("how", WAYS)
def test_an_entry_that_the_store_does_not_give_is_said_to_be_missing(site, encoder, entries, how) -> None:
    """Deleted or hidden, however it was done: the answer is not shorter in silence."""
    assert ask(site, encoder).withheld == {}
    hide(site, entries[0], how)
    answer = ask(site, encoder)
    assert TEXTS[0] not in [found.content for found in answer.entries]
    given = how == "expired by another hand"  # the first search leaves in what is over, to count it
    assert answer.withheld == {"property" if given else "missing": 1}


def test_in_a_scope_with_more_entries_than_are_fetched_the_missing_are_counted(site, encoder, entries) -> None:
    """The search finds as many as it asked for: the store is asked how many it has to choose from."""
    more = [site.land(100 + n, f"Note {n}", travelled(encoder, f"Note {n}")) for n in range(30)]
    assert ask(site, encoder, k=2).withheld == {}
    for stored, how in zip(more, ["deleted", "expired by another hand", "another owner"], strict=False):
        hide(site, stored, how)
    assert ask(site, encoder, k=2).withheld == {"missing": 3}


def test_what_no_search_of_this_scope_should_find_is_not_missing(site, encoder, entries) -> None:
    """Withdrawn, expired, replaced, of another principal, session, namespace or zone, and of records that do not say
    where they are searched: none of them is told as missing."""
    record = accepted(site.tenant, 0, TEXTS[0], travelled(encoder, TEXTS[0]))
    site.take(gone(record, 20, site.tenant))
    vector = travelled(encoder, "x")
    site.land(30, "short", vector, expires_ms=T0 + 10)
    for number, fields in enumerate(
        (
            {"principal": "bo"},
            {"visibility": Visibility.SESSION, "session": "s-9"},
            {"namespace": "other"},
            {"zone": Zone.EXTERNAL},
        ),
        40,
    ):
        stored = site.land(number, "x", vector, **fields)
        site.store.delete(site.tenant, stored.zone, [stored.object_id])
    old = site.land(60, "old", vector)
    value = stored_to_bytes(RING, "seal-1", replace(old, scope="", place=None))
    site.append(STORE, Output(STORE, record.partition, old.object_id.encode(), value))
    site.store.delete(site.tenant, Zone.GUIDANCE, [old.object_id])
    site.land(70, "first", vector, key="k")
    site.land(71, "second", vector, key="k")
    answer = ask(site, encoder, now_ms=T0 + 10)
    assert {found.content for found in answer.entries} == {TEXTS[1], TEXTS[2], "second"}
    assert answer.withheld["missing"] == 0


class Late:
    """A real store into which something lands while it is searched."""

    def __init__(self, site, lands) -> None:
        self.site, self.lands = site, lands

    def search(self, *arguments, **options):
        """Search, and let the entry land before anybody looks into the log."""
        return self._and_then(self.site.store.search(*arguments, **options))

    def _and_then(self, found):
        lands, self.lands = self.lands, None
        if lands is not None:
            lands()
        return found

    def __getattr__(self, name):
        return getattr(self.site.store, name)


class LateServer(Late):
    """The same of a store that answers while the log is read."""

    def search_whole(self, *arguments):
        """The same of a whole partition."""
        return self._and_then(self.site.store.search_whole(*arguments))


@pytest.mark.parametrize("many", [0, 30])
def test_what_lands_during_the_search_is_not_missing(site, encoder, entries, many: int) -> None:
    """The log is read after the search and may know more than it found: the store is asked once more before it is
    accused."""
    for number in range(many):
        site.land(100 + number, f"Note {number}", travelled(encoder, f"Note {number}"))
    kind = LateServer if isinstance(site.store, Served) else Late
    late = kind(site, lambda: site.land(500, "late", travelled(encoder, "late")))
    assert ask(site, encoder, k=2, store=late).withheld == {}
    assert late.lands is None


def test_naming_what_is_anothers_tells_nothing(site, encoder) -> None:
    """An object's id follows from owner and key, so anybody can name it. Whether it is there, was deleted, changed or
    taken out, or never was: the answer is the same, and the store is not asked for it."""
    vector = travelled(encoder, "x")
    others = [
        site.land(1, "Bo is ill.", vector, principal="bo", key="diagnosis"),
        site.land(2, "Bo's, deleted.", vector, principal="bo"),
        site.land(3, "Bo's, changed.", vector, principal="bo"),
        site.land(4, "Bo's session.", vector, visibility=Visibility.SESSION, session="s-9", principal="bo"),
        site.land(5, "Bo's, in a session of this name.", vector, visibility=Visibility.SESSION, principal="bo"),
        site.land(6, "Outside.", vector, zone=Zone.EXTERNAL),
        site.land(7, "In another namespace.", vector, namespace="x"),
    ]
    mine = site.land(8, "Ana's own.", vector)
    site.store.delete(site.tenant, Zone.GUIDANCE, [others[1].object_id])
    changed = site.store.held(site.tenant, Zone.GUIDANCE, [others[2].object_id])[others[2].object_id]
    site.write_past(replace(changed, content="Bo's, changed!"))
    asked_for = []

    class Watched:
        def __getattr__(self, name):
            return getattr(site.store, name)

        def held(self, tenant, zone, ids):
            asked_for.extend(ids)
            return site.store.held(tenant, zone, ids)

    asks, question = by_name(site, encoder, Watched())
    for named in ([one.object_id for one in others], [str(uuid4())], []):
        answer = asks.look_up(question, [*named, mine.object_id, mine.object_id])
        assert ([one.content for one in answer.entries], dict(answer.withheld)) == (["Ana's own."], {})
    assert others[0].object_id not in asked_for
    assert [one.content for one in asks.look_up(question).entries] == ["Ana's own."]
    assert asks.look_up(question).withheld == {}
    assert asks.lies(question, [one.object_id for one in others]) == ()


def test_naming_what_is_ones_own_tells_what_became_of_it(site, encoder) -> None:
    """Deleted from the store, or changed in it: counted by its reason, as a search would."""
    vector = travelled(encoder, "x")
    own = [site.land(number, f"Ana's, {number}.", vector) for number in range(3)]
    site.store.delete(site.tenant, Zone.GUIDANCE, [own[0].object_id])
    changed = site.store.held(site.tenant, Zone.GUIDANCE, [own[1].object_id])[own[1].object_id]
    site.write_past(replace(changed, content="Something else."))
    asks, question = by_name(site, encoder)
    answer = asks.look_up(question, [one.object_id for one in own])
    assert [one.content for one in answer.entries] == ["Ana's, 2."]
    assert answer.withheld == {"missing": 1, "content": 1}


def by_name(site, encoder, store=None):
    """Return a recaller with the log, and the question of one who names what he wants."""
    fresh = FreshnessIndex(site.reader(STORE), lambda: RING, PARTITIONS, lambda: T0)
    asks = recaller(store or site.store, encoder, Told(), T0, freshness=fresh)
    return asks, Question(site.tenant, "by name", WHO["agent"], WHO["principal"], WHO["session"])


def test_without_a_log_nothing_is_said_to_be_missing(site, encoder, entries) -> None:
    """A reader in an agent's process has no index, and asks the store no more than before."""
    site.store.delete(site.tenant, Zone.GUIDANCE, [entries[0].object_id])
    assert recaller(site.store, encoder, Told()).recall(site.tenant, QUESTION, **WHO).withheld == {}
