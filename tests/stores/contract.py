"""What every vector store must do; run on FAISS over SQLite and on a real Weaviate by the two files beside this one."""

from dataclasses import replace
from uuid import uuid4

import numpy as np
import pytest
from tests.stores.build import T0, axis, entry

from memsluice.envelope import codec
from memsluice.envelope.codec import vector_to_bytes
from memsluice.envelope.space import Space
from memsluice.errors import StoreError
from memsluice.events.models import Visibility, Zone
from memsluice.stores.base import SEARCH_MAX, UPSERT_MAX, Scope, Seen, StoreAnswer, StoredObject, VectorStore

ANA = Scope("ana", "s-1")


def outcomes(store: VectorStore, *objects: StoredObject) -> list[StoreAnswer]:
    """Upsert and return the outcomes."""
    return [result.outcome for result in store.upsert(objects)]


def contents(store: VectorStore, tenant: str, scope: Scope = ANA, *, zone=Zone.GUIDANCE, k=10, now_ms=T0, **asked):
    """Return the contents that a search finds, nearest first."""
    hits = store.search(tenant, zone, asked.get("vector", axis(0)), k, scope, asked.get("namespace", "default"), now_ms)
    return [hit.object.content for hit in hits]


class StoreContract:
    """The suite. A subclass gives the fixture ``store``; every test has a tenant of its own."""

    @pytest.fixture
    def tenant(self) -> str:
        """Return a tenant that no other test uses."""
        return f"t-{uuid4().hex[:12]}"

    def test_a_tenant_that_nobody_wrote_to_is_empty(self, store, tenant) -> None:
        """A missing partition is an empty answer to every question, never an error."""
        assert store.search(tenant, Zone.GUIDANCE, axis(0), 5, ANA, "default", T0) == []
        assert store.versions(tenant, Zone.GUIDANCE, [str(uuid4())]) == {}
        assert store.count(tenant, Zone.EXTERNAL) == 0
        assert store.delete(tenant, Zone.GUIDANCE, [str(uuid4())]) == 0
        assert tenant not in store.tenants()

    def test_an_object_comes_back_as_it_went_in(self, store, tenant) -> None:
        """Every property, the content to the last character, and the vector to the last bit that was digested."""
        content = "naïve ❤ \u202e\x00 line\nfeed  "
        tilted = axis(0, towards=1, cosine=0.6)
        item = entry(tenant, content, tilted, expires_ms=T0 + 5, version=2**40, principal=" ana ", namespace=" n ")
        assert outcomes(store, item) == [StoreAnswer.LANDED]
        (hit,) = store.search(tenant, Zone.GUIDANCE, axis(0), 5, Scope(" ana "), " n ", T0)
        found = hit.object
        assert _fields(found) == _fields(item)
        assert vector_to_bytes(found.vector) == vector_to_bytes(item.vector)
        assert hit.similarity == pytest.approx(0.8, abs=1e-3)
        assert store.tenants().count(tenant) == 1

    def test_nearest_come_first_and_no_more_than_asked_for(self, store, tenant) -> None:
        """Search orders by cosine and stops at k."""
        near = [entry(tenant, f"c{n}", axis(n + 1, towards=0, cosine=n / 10), event_id=f"e{n}") for n in range(1, 8)]
        store.upsert(near)
        assert contents(store, tenant, k=3) == ["c7", "c6", "c5"]
        for k in (0, SEARCH_MAX + 1):
            with pytest.raises(StoreError):
                contents(store, tenant, k=k)

    def test_all_that_is_near_is_named_once_where_much_is_equally_near(self, store, tenant) -> None:
        """Objects at the same distance are in no order, so pages of them would overlap, and leave some out for good:
        one question names every one of them, nearest first, and nothing outside scope, namespace and time."""
        one = entry(tenant, "equal", axis(0))
        equals = [replace(one, object_id=str(uuid4())) for _ in range(1_200)]
        far = entry(tenant, "far", axis(1), event_id="far")
        others = [
            entry(tenant, "x", axis(0), event_id="e1", principal="bo"),
            entry(tenant, "x", axis(0), event_id="e2", namespace="work"),
            entry(tenant, "x", axis(0), event_id="e3", expires_ms=T0),
        ]
        for start in range(0, len(equals), 600):
            store.upsert(equals[start : start + 600])
        store.upsert([far, *others])
        ids = store.nearest_ids(tenant, Zone.GUIDANCE, axis(0), ANA, "default", T0)
        assert sorted(ids[:-1]) == sorted(item.object_id for item in equals)
        assert ids[-1] == far.object_id
        assert store.nearest_ids(f"{tenant}-none", Zone.GUIDANCE, axis(0), ANA, "default", T0) == []

    def test_writing_again_doubles_nothing(self, store, tenant) -> None:
        """A re-delivered batch leaves the same objects, once each."""
        batch = [entry(tenant, f"c{n}", axis(n), event_id=f"e{n}") for n in range(5)]
        assert outcomes(store, *batch) == [StoreAnswer.LANDED] * 5
        assert outcomes(store, *batch) == [StoreAnswer.LANDED] * 5
        assert store.count(tenant, Zone.GUIDANCE) == 5

    def test_a_higher_version_replaces_and_a_lower_one_never_does(self, store, tenant) -> None:
        """Replayed or delayed, an old version of a key can not come back over the new one."""
        first, second = (entry(tenant, f"v{n}", axis(n), key="city", version=n) for n in (4, 9))
        assert first.object_id == second.object_id
        assert outcomes(store, first) == [StoreAnswer.LANDED]
        assert outcomes(store, second) == [StoreAnswer.LANDED]
        assert outcomes(store, first) == [StoreAnswer.OLDER]
        assert contents(store, tenant) == ["v9"]
        assert store.versions(tenant, Zone.GUIDANCE, [first.object_id, str(uuid4())]) == {first.object_id: 9}
        assert store.count(tenant, Zone.GUIDANCE) == 1

    @pytest.mark.parametrize("order", [(4, 9), (9, 4)])
    def test_within_a_batch_the_highest_version_wins(self, store, tenant, order) -> None:
        """Whatever the order in the batch, the store holds the highest; the other one is reported as older."""
        batch = [entry(tenant, f"v{n}", key="city", version=n) for n in order]
        assert outcomes(store, *batch) == [StoreAnswer.LANDED if n == 9 else StoreAnswer.OLDER for n in order]
        assert contents(store, tenant) == ["v9"]

    def test_overwriting_asks_for_no_version_in_the_store_and_for_those_of_the_batch(self, store, tenant) -> None:
        """A higher version that should not be there gives way; of two in one batch the higher still wins."""
        planted, low, high = (entry(tenant, f"v{n}", axis(n), key="city", version=n) for n in (9, 4, 5))
        store.upsert([planted])
        results = store.upsert([high, low], overwrite=True)
        assert [result.outcome for result in results] == [StoreAnswer.LANDED, StoreAnswer.OLDER]
        assert contents(store, tenant) == ["v5"]
        assert store.versions(tenant, Zone.GUIDANCE, [low.object_id]) == {low.object_id: 5}
        assert store.count(tenant, Zone.GUIDANCE) == 1

    def test_admissions_come_back_as_they_lie_there(self, store, tenant) -> None:
        """What *land* verifies is the very text that was written; "" where there is none, nothing for no object."""
        signed, bare = entry(tenant, "a"), replace(entry(tenant, "b", axis(1), event_id="e2"), admission="")
        assert store.admissions(tenant, Zone.GUIDANCE, [signed.object_id]) == {}
        store.upsert([signed, bare])
        asked = [signed.object_id, bare.object_id, str(uuid4())]
        found = store.admissions(tenant, Zone.GUIDANCE, asked)
        assert found == {signed.object_id: signed.admission, bare.object_id: ""}
        assert store.admissions(tenant, Zone.EXTERNAL, asked) == {}

    def test_what_many_partitions_hold_is_asked_in_one_call(self, store, tenant) -> None:
        """Each partition has its own answer, also where nobody wrote to it; more partitions than are asked at once."""
        tenants = [f"{tenant}-{number}" for number in range(40)]
        written = [entry(name, f"of {name}") for name in tenants]
        store.upsert(written)
        asked = {(item.tenant, item.zone): [item.object_id, str(uuid4())] for item in written}
        asked |= {(tenants[0], Zone.EXTERNAL): [written[0].object_id], ("nobody-" + tenant, Zone.GUIDANCE): ["x"]}
        held = store.held_of(asked)
        assert list(held) == list(asked)
        assert [held[item.partition][item.object_id].content for item in written] == [item.content for item in written]
        assert sum(map(len, held.values())) == len(tenants)
        assert store.held_of({}) == {}

    def test_a_replaced_vector_is_found_where_it_is_now(self, store, tenant) -> None:
        """A keyed entry that changed its meaning is no longer near its old one."""
        store.upsert([entry(tenant, "old", axis(0), key="k", version=1)])
        store.upsert([entry(tenant, "new", axis(7), key="k", version=2), entry(tenant, "x", axis(5), event_id="x")])
        (best, other) = store.search(tenant, Zone.GUIDANCE, axis(7), 2, ANA, "default", T0)
        assert (best.object.content, round(best.similarity, 3)) == ("new", 1.0)
        assert round(other.similarity, 3) == 0.0

    def test_everybody_sees_what_their_scope_holds_and_nothing_else(self, store, tenant) -> None:
        """Shared entries are everybody's, a principal's are theirs in any session, a session's only that session's."""
        shared, principal, session = Visibility.SHARED, Visibility.PRINCIPAL, Visibility.SESSION
        scopes = [(shared, "bo", "s-9"), (principal, "ana", "s-0"), (session, "ana", "s-1")]
        scopes += [(principal, "bo", "s-1"), (session, "ana", "s-2"), (principal, "s-1", "")]
        store.upsert(
            [
                entry(tenant, f"{v.value} {p} {s}", event_id=f"e{n}", visibility=v, principal=p, session=s or "none")
                for n, (v, p, s) in enumerate(scopes)
            ]
        )
        ana, bo = {"shared bo s-9", "principal ana s-0", "session ana s-1"}, {"shared bo s-9", "principal bo s-1"}
        assert set(contents(store, tenant, Scope("ana", "s-1"))) == ana
        assert set(contents(store, tenant, Scope("bo", "s-7"))) == bo
        assert contents(store, tenant, Scope()) == ["shared bo s-9"]
        assert contents(store, tenant, Scope("ana ", " s-1")) == ["shared bo s-9"]
        assert contents(store, tenant, Scope("Ana", "S-1")) == ["shared bo s-9"]

    def test_namespaces_zones_and_tenants_are_apart(self, store, tenant) -> None:
        """The nearest vector of another namespace, zone or tenant is not found, whatever the question."""
        other = f"{tenant}-x"
        store.upsert(
            [
                entry(tenant, "mine", axis(3)),
                entry(tenant, "other namespace", event_id="e2", namespace="work"),
                entry(tenant, "external", event_id="e3", zone=Zone.EXTERNAL),
                entry(other, "other tenant", event_id="e4"),
            ]
        )
        assert contents(store, tenant) == ["mine"]
        assert contents(store, tenant, namespace="work") == ["other namespace"]
        assert contents(store, tenant, zone=Zone.EXTERNAL) == ["external"]
        assert contents(store, other) == ["other tenant"]
        assert {tenant, other} <= set(store.tenants())

    def test_what_has_expired_is_not_found(self, store, tenant) -> None:
        """An entry is found until the millisecond before it expires."""
        store.upsert([entry(tenant, "short", expires_ms=T0 + 10), entry(tenant, "long", axis(1), event_id="e2")])
        assert contents(store, tenant, now_ms=T0 + 9) == ["short", "long"]
        assert contents(store, tenant, now_ms=T0 + 10) == ["long"]

    def test_one_bad_object_does_not_take_the_others_with_it(self, store, tenant) -> None:
        """63 of 64 land, and the one that cannot is named with its reason."""
        batch = [entry(tenant, f"c{n}", axis(n), event_id=f"e{n}") for n in range(64)]
        batch[17] = replace(batch[17], vector=np.ones(3, dtype=np.float32))
        results = store.upsert(batch)
        assert [n for n, result in enumerate(results) if result.outcome is not StoreAnswer.LANDED] == [17]
        assert results[17].outcome is StoreAnswer.REFUSED
        assert "vector" in results[17].detail
        assert store.count(tenant, Zone.GUIDANCE) == 63

    def test_what_is_deleted_is_gone(self, store, tenant) -> None:
        """A withdrawal removes the object from the search, the count and the versions, and only that one."""
        gone, stays = entry(tenant, "gone"), entry(tenant, "stays", axis(1), event_id="e2")
        store.upsert([gone, stays])
        assert store.delete(tenant, Zone.GUIDANCE, [gone.object_id, str(uuid4())]) == 1
        assert contents(store, tenant) == ["stays"]
        assert store.versions(tenant, Zone.GUIDANCE, [gone.object_id]) == {}
        assert store.count(tenant, Zone.GUIDANCE) == 1

    def test_what_was_brought_since_it_was_seen_is_not_deleted(self, store, tenant) -> None:
        """A writer that was overtaken takes out the version that it saw, and none that came after it."""
        old = [entry(tenant, f"c{n}", axis(n % 300), event_id=f"e{n}") for n in range(UPSERT_MAX)]
        store.upsert(old)
        seen = {item.object_id: Seen(item.event_id, item.version) for item in old[2:]}
        newer = [replace(item, version=item.version + 1, event_id=f"new-{item.event_id}") for item in old[::4]]
        newer += [replace(item, version=item.version + 1) for item in old[2::4]]  # landed again by a command
        store.upsert(newer)
        ids = [item.object_id for item in old]
        assert store.delete(tenant, Zone.GUIDANCE, ids, seen=seen) == UPSERT_MAX // 2 + 1
        assert set(store.versions(tenant, Zone.GUIDANCE, ids)) == {item.object_id for item in newer[1:]}
        assert set(store.versions(tenant, Zone.GUIDANCE, ids).values()) == {newer[0].version}

    def test_a_closed_store_opens_again_at_the_next_call(self, store, tenant) -> None:
        """Dropping the connection loses nothing that was acknowledged."""
        store.upsert([entry(tenant, "kept")])
        store.close()
        assert contents(store, tenant) == ["kept"]


OTHER = Space("acme/small@1", 96)


def other_axis(number: int) -> codec.Vector:
    """Return an axis of the other encoder's space."""
    return np.eye(1, OTHER.dimensions, number, dtype=np.float32)[0]


class OtherEncoderContract:
    """What a store does whose vectors are of another encoder. A subclass gives the fixture ``store``, an empty one."""

    def test_vectors_of_another_length_are_found_and_those_of_another_encoder_refused(self, store) -> None:
        """The first object says whose vectors a store has; from then on one of another encoder, of the same length or
        not, is refused by name, a question of another length is an error, and what lies there comes back whole."""
        tenant, named = f"t-{uuid4().hex[:12]}", {"model": OTHER.model}
        assert store.space() is None
        first = [entry(tenant, f"c{n}", other_axis(n), event_id=f"e{n}", **named) for n in range(3)]
        assert outcomes(store, *first) == [StoreAnswer.LANDED] * 3
        assert store.space() == store.space(Zone.GUIDANCE) == OTHER
        assert contents(store, tenant, vector=other_axis(2))[0] == "c2"
        default = entry(tenant, "long", axis(0), event_id="long")
        stranger = entry(tenant, "as long", other_axis(5), event_id="as-long", model="acme/stranger@1")
        batch = store.upsert([default, entry(tenant, "c3", other_axis(3), event_id="e3", **named), stranger])
        assert [one.outcome for one in batch] == [StoreAnswer.REFUSED, StoreAnswer.LANDED, StoreAnswer.REFUSED]
        assert "acme/small@1 (96 dimensions)" in batch[0].detail
        assert "acme/stranger@1" in batch[2].detail
        assert store.count(tenant, Zone.GUIDANCE) == 4
        with pytest.raises(StoreError):
            contents(store, tenant)
        store.close()
        (hit,) = store.search(tenant, Zone.GUIDANCE, other_axis(1), 1, ANA, "default", T0)
        assert vector_to_bytes(hit.object.vector) == vector_to_bytes(first[1].vector)
        assert store.space() == OTHER


def _fields(item: StoredObject) -> tuple[object, ...]:
    return tuple(getattr(item, name) for name in StoredObject.__slots__ if name not in ("vector", "model"))
