"""What a recall carries so that its use may renew it: which entry, how often, and nothing where there is no reason."""

from typing import Any

import pytest
from orjson import loads
from tests.recall.test_recaller import Told
from tests.stores.build import DAY_MS, RING, T0, axis, entry

from memsluice.envelope.codec import vector_from_bytes, vector_to_bytes
from memsluice.envelope.records import accepted_from_bytes
from memsluice.envelope.seals import admission_verify_inside
from memsluice.errors import StoreUnavailable
from memsluice.events.limits import RENEWS_BYTES_MAX
from memsluice.events.models import Tier, Visibility, Zone
from memsluice.gate.policy.model import Policy, default, laid_over
from memsluice.recall.reader import VerifiedEntry
from memsluice.recall.recaller import Recaller
from memsluice.recall.renewing import AGAIN_MS, CARRIED_MAX, Renewals
from memsluice.stores.base import StoredObject
from memsluice.stores.faiss.store import FaissStore

ON = laid_over(default().default, {"renew_on_use": {"enabled": True}})
DUE = {"visibility": Visibility.SHARED, "expires_ms": T0 + 10 * DAY_MS, "written_ms": T0 - 20 * DAY_MS}
BEN = {"agent": "helper", "principal": "ben", "session": "b-1"}


@pytest.fixture
def store() -> FaissStore:
    """An embedded store in memory."""
    return FaissStore(":memory:")


def put(store: FaissStore, **fields: Any) -> StoredObject:
    """Have an entry lie there that is due, but for what ``fields`` say."""
    number = store.count("acme", Zone.GUIDANCE) + store.count("acme", Zone.EXTERNAL)
    item = entry("acme", fields.pop("content", f"Note {number}."), **{**DUE, "event_id": f"e{number}", **fields})
    store.upsert([item])
    return item


def found(*items: StoredObject) -> list[VerifiedEntry]:
    """Return entries as a recaller found them."""
    return [VerifiedEntry(admission_verify_inside(RING, "acme", loads(one.admission)), one.content, 1.0)
            for one in items]  # fmt: skip


def carried(store: Any, *items: StoredObject, policy: Policy = ON, **who: str) -> str | None:
    """Return the event id of what a recall of these entries carries, once the gate's own reading of it holds."""
    text = Renewals(store, lambda _tenant: policy).of(
        who.get("principal", "ben"), who.get("session", "b-1"), found(*items), T0
    )
    return None if text is None else accepted_from_bytes(RING, "acme", text.encode()).admission.event_id


def test_the_entry_that_is_over_first_is_carried_whole(store: FaissStore) -> None:
    """One record, with content and vector, which the gate's own reading takes: of several that are due, the nearest to
    its end."""
    later, first = put(store, vector=axis(3, 4, 0.5)), put(store, expires_ms=T0 + DAY_MS, vector=axis(5, 6, 0.25))
    assert carried(store, later, first) == first.event_id


@pytest.mark.parametrize(
    "fields",
    [
        {"visibility": Visibility.PRINCIPAL, "principal": "ben"},
        {"visibility": Visibility.SESSION, "session": "b-1"},
        {"principal": "ben"},
        {"session": "b-1"},
        {"taint": True},
        {"zone": Zone.EXTERNAL},
        {"expires_ms": None},
        {"expires_ms": T0 + 15 * DAY_MS + 1},
        {"tier": Tier.OPERATOR},
        {"content": "\x01" * (RENEWS_BYTES_MAX // 6 + 1)},
    ],
)
def test_what_the_gate_would_not_renew_is_not_carried(store: FaissStore, fields: dict[str, Any]) -> None:
    """Private, one's own, tainted, data, endless, too young, of a tier without end, or larger than a recall may be."""
    assert carried(store, put(store, **fields)) is None


def test_nothing_is_carried_under_a_policy_that_renews_nothing(store: FaissStore) -> None:
    """The one that ships: its recalls have the bytes that they had."""
    assert carried(store, put(store), policy=default().default) is None


def test_an_entry_is_carried_once_in_an_hour_and_the_next_one_in_between(store: FaissStore) -> None:
    """Whatever the gate says of it, the next recall would hear the same; a new version is another matter."""
    one, two = put(store, expires_ms=T0 + DAY_MS), put(store)
    renewals = Renewals(store, lambda _tenant: ON)
    got = [renewals.of("ben", "b-1", found(one, two), T0 + late) for late in (0, 1, 2, AGAIN_MS)]
    names = [None if text is None else accepted_from_bytes(RING, "acme", text.encode()).admission.event_id
             for text in got]  # fmt: skip
    assert names == [one.event_id, two.event_id, None, one.event_id]
    assert len(renewals._carried) == 2 < CARRIED_MAX


def test_what_is_remembered_of_it_is_bounded(store: FaissStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader of many entries forgets the oldest."""
    monkeypatch.setattr("memsluice.recall.renewing.CARRIED_MAX", 3)
    renewals = Renewals(store, lambda _tenant: ON)
    for item in [put(store) for _ in range(5)]:
        renewals.of("ben", "b-1", found(item), T0)
    assert len(renewals._carried) == 3


class Bad:
    """A store that does not answer, or has something else there by now."""

    def __init__(self, there: StoredObject | None) -> None:
        self.there = there

    def held(self, tenant: str, zone: Zone, ids: list[str]) -> dict[str, StoredObject]:
        """Give what is there, or fail."""
        if self.there is None:
            raise StoreUnavailable("away")
        return dict.fromkeys(ids, self.there)


def test_a_store_that_gives_it_no_more_costs_no_answer(store: FaissStore) -> None:
    """Away, gone, of another version, or of another content: the recall carries nothing and goes on."""
    item = put(store)
    later, other = put(store, version=9), put(store, content="Something else.")
    for there in (FaissStore(":memory:"), Bad(None), Bad(later), Bad(other)):
        assert carried(there, item) is None


def test_a_recalls_event_carries_it_and_no_other_event_has_a_word_of_it(store: FaissStore, encoder: Any) -> None:
    """The answer is what it was; asked for by name, or by the author, the event has the bytes that it always had."""
    item = put(store, content="The gate code is 1234.", vector=_as_sent(encoder.encode(["The gate code is 1234."])[0]))
    told = Told()
    recaller = Recaller(
        store=store, encoder=encoder, keys=lambda: RING, publish=told, permits=lambda _: None, freshness=None,
        now_ms=lambda: T0, new_id=lambda: "r-1", renewals=Renewals(store, lambda _tenant: ON),
    )  # fmt: skip
    for who in (BEN, BEN | {"principal": "ana"}, BEN):
        assert [one.content for one in recaller.recall("acme", "Which code?", **who).entries] == [item.content]
    assert ["renews" in event.model_dump_json() for event in told.events] == [True, False, False]
    accepted = accepted_from_bytes(RING, "acme", (told.events[0].renews or "").encode())
    assert (accepted.admission.event_id, accepted.content) == (item.event_id, item.content)


def _as_sent(vector: Any) -> Any:
    return vector_from_bytes(vector_to_bytes(vector))
