"""*land*: what is verified once more, what each record comes to, and waiting for a store that is down."""

import os
import signal
import threading
from dataclasses import replace
from uuid import uuid4

import numpy as np
import orjson
import pytest
from structlog.testing import capture_logs
from tests.administration import be_patient
from tests.patience import HANG_S
from tests.stores.build import PARTITIONS, RING, STRANGER, T0, TRACE, accepted, axis, entry

from memsluice.devstack import control
from memsluice.envelope.records import stored_from_bytes
from memsluice.envelope.seals import close
from memsluice.errors import StoreError, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.events.names import ADMISSION, DEAD_LETTER_HEADER
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.stages.land import LandStage
from memsluice.stages.patience import REFUSAL_S, RETRY_FIRST_S, RETRY_MAX_S, Patience
from memsluice.stores.base import Scope, StoreAnswer, StoredObject, UpsertResult
from memsluice.stores.faiss.store import FaissStore
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics.names import DEAD_LETTER, STORE, WEAVIATE_LAND

ANA = Scope("ana", "s-1")


class Faulty:
    """A real store behind a fault: fails as often as told, then works. Everything else passes through."""

    def __init__(self, store, faults) -> None:
        self.store, self.faults, self.calls = store, list(faults), 0

    def upsert(self, objects, *, overwrite=False):
        """Raise, or spoil the results, as the next fault says."""
        self.calls += 1
        if not self.faults:
            return self.store.upsert(objects, overwrite=overwrite)
        fault = self.faults.pop(0)
        if isinstance(fault, Exception):
            raise fault
        return fault(self.store, objects)

    def __getattr__(self, name):
        return getattr(self.store, name)


@pytest.fixture
def store():
    """An embedded store in memory."""
    return FaissStore(":memory:")


def stage(store, now_ms=T0, **options) -> LandStage:
    """Return the stage under test, which never really waits."""
    options.setdefault("wait", lambda _seconds: False)
    return LandStage(lambda: RING, store, PARTITIONS, lambda: now_ms, **options)


def found(store, tenant: str, zone=Zone.GUIDANCE, now_ms=T0) -> set[str]:
    """Return the contents that a search finds."""
    return {hit.object.content for hit in store.search(tenant, zone, axis(0), 100, ANA, "default", now_ms)}


def why(output) -> dict:
    """Return what a dead letter's last header says."""
    name, value = output.headers[-1]
    assert (output.topic, name) == (DEAD_LETTER, DEAD_LETTER_HEADER)
    return orjson.loads(value)


def test_a_landed_entry_is_in_the_store_and_said_to_be(store) -> None:
    """One store record an object: keyed by it, on the tenant's partition, with its version and the producer's trace."""
    record = accepted("acme", 7, "note")
    ((output,),) = stage(store).process([record])
    stored = stored_from_bytes(RING, "acme", output.value)
    assert (output.topic, output.partition) == (STORE, partition_of("acme", PARTITIONS))
    assert output.key == stored.object_id.encode()
    assert (stored.version, stored.event_id, stored.zone, stored.withdrawn) == (7, "event-7", Zone.GUIDANCE, False)
    assert output.headers == (TRACE, ("memsluice-event-id", b"event-7"))
    assert found(store, "acme") == {"note"}


def test_a_re_delivered_batch_changes_nothing_and_says_the_same(store) -> None:
    """At least once in, exactly one object, byte for byte the same store records."""
    batch = [accepted("acme", n, f"c{n}", axis(n)) for n in range(20)]
    first, again = stage(store).process(batch), stage(store).process(batch)
    assert first == again
    assert store.count("acme", Zone.GUIDANCE) == 20


def _bent(record: Record, **changes) -> Record:
    value = orjson.loads(record.value)
    return replace(record, value=orjson.dumps({**value, **changes}))


def _long_key_id(envelope: dict) -> dict:
    return {**envelope, "signatures": [{**envelope["signatures"][0], "keyid": "k" * 129}]}


def bad_records() -> dict[str, Record]:
    """Records that nobody with the gate's keys wrote like this."""
    good, other = accepted("acme", 1, "note"), accepted("acme", 2, "other", axis(3))
    elsewhere = (partition_of("acme", PARTITIONS) + 1) % PARTITIONS
    sealed_otherwise = orjson.loads(close(RING, "seal-1", "acme", ADMISSION, {"tenant": "acme"}))
    return {
        "null value": replace(good, value=None),
        "no JSON": replace(good, value=b"\xff{"),
        "a list": replace(good, value=b"[]"),
        "content changed": _bent(good, content="note!"),
        "vector of another": _bent(good, vector=orjson.loads(other.value)["vector"]),
        "vector no base64": _bent(good, vector="*"),
        "admission of another": _bent(good, admission=orjson.loads(other.value)["admission"]),
        "admission a text": _bent(good, admission="x"),
        "admission without fields": _bent(good, admission=sealed_otherwise),
        "another tenant's key": replace(good, key=b"globex"),
        "a key that is no text": replace(good, key=b"\xff\xfe"),
        "no key": replace(good, key=None),
        "signed by a stranger": accepted("acme", 1, "note", ring=STRANGER),
        "a key id beyond its limit": _bent(good, admission=_long_key_id(orjson.loads(good.value)["admission"])),
        "an object id of somebody else": accepted("acme", 1, "note", object_id=entry("acme", event_id="e9").object_id),
        "wrong partition": replace(good, partition=elsewhere),
    }


@pytest.mark.parametrize("name", bad_records())
def test_what_does_not_verify_is_a_dead_letter_with_its_own_bytes(store, name) -> None:
    """Key, value and headers are kept as they were, one header says why and where, and nothing reaches the store."""
    record = bad_records()[name]
    good = [accepted("acme", n, f"c{n}", axis(n)) for n in (5, 6)]
    before, (letter,), after = stage(store).process([good[0], record, good[1]])
    assert (letter.key, letter.value, letter.headers[:-1]) == (record.key, record.value, record.headers)
    told = why(letter)
    assert told["reason"] == ("wrong_partition" if name == "wrong partition" else "seal")
    assert (told["topic"], told["partition"], told["offset"]) == (record.topic, record.partition, record.offset)
    assert letter.partition == record.partition
    assert [output.topic for output in (*before, *after)] == [STORE, STORE]
    assert found(store, "acme") == {"c5", "c6"}


def test_what_expired_on_the_way_is_withdrawn(store) -> None:
    """An entry whose time is over is not written; what it replaces goes; readers are told so."""
    stage(store).process([accepted("acme", 1, "old", key="k")])
    late = accepted("acme", 2, "late", key="k", expires_ms=T0 + 100)
    ((output,),) = stage(store, now_ms=T0 + 100).process([late])
    stored = stored_from_bytes(RING, "acme", output.value)
    assert (stored.version, stored.withdrawn) == (2, True)
    assert store.count("acme", Zone.GUIDANCE) == 0


def test_an_expired_entry_withdraws_nothing_that_is_newer(store) -> None:
    """Re-delivered late, an expired version leaves the newer one, and its store record, alone."""
    one = stage(store)
    one.process([accepted("acme", 9, "new", key="k")])
    assert one.process([accepted("acme", 2, "late", key="k", expires_ms=T0 - 1)]) == [[]]
    assert found(store, "acme") == {"new"}


def test_an_older_version_leaves_no_trace(store) -> None:
    """Its store record would, compacted, outlive the newer one's."""
    one = stage(store)
    one.process([accepted("acme", 9, "new", key="k")])
    assert one.process([accepted("acme", 4, "old", key="k")]) == [[]]
    both = [accepted("acme", 12, "b", key="k"), accepted("acme", 11, "a", key="k")]
    newer, older = one.process(both)
    assert (len(newer), older) == (1, [])
    assert found(store, "acme") == {"b"}


HIGH = 2**52
"""A version that no log reaches, exact in a double."""


def planted(tenant: str) -> dict[str, StoredObject]:
    """Objects under one entry's id that somebody with access to the store wrote there, with a version of his choice."""
    genuine = entry(tenant, "first", key="k", version=1)
    other = entry(tenant, "other", event_id="e9", version=HIGH)
    long = _long_key_id(orjson.loads(genuine.admission))
    return {
        "signed by a stranger": entry(tenant, "forged", key="k", version=HIGH, ring=STRANGER),
        "a genuine old one, stating another version": replace(genuine, version=HIGH),
        "with another entry's admission": replace(other, object_id=genuine.object_id),
        "without an admission": replace(genuine, version=HIGH, admission=""),
        "with an admission that is none": replace(genuine, version=HIGH, admission="[" * 5_000 + "]" * 5_000),
        "with a key id beyond its limit": replace(genuine, version=HIGH, admission=orjson.dumps(long).decode()),
    }


@pytest.fixture(params=["faiss", pytest.param("weaviate", marks=pytest.mark.stack)])
def either(request, patient):
    """The embedded store, and the real Weaviate with land's key."""
    if request.param == "faiss":
        made = FaissStore(":memory:")
    else:
        made = WeaviateStore.of(request.getfixturevalue("stack").connection, WEAVIATE_LAND)
    yield made
    made.close()


@pytest.mark.parametrize("name", planted("acme"))
def test_a_version_that_the_gate_never_admitted_keeps_no_entry_out(either, name) -> None:
    """Who can write to the store can plant any version; the owner's next write lands over it, and is said to."""
    tenant = f"land-{uuid4().hex[:10]}"
    either.upsert([planted(tenant)[name]])
    with capture_logs() as logs:
        first, second = stage(either).process(
            [accepted(tenant, 7, "mine", key="k"), accepted(tenant, 8, "next", axis(1), event_id="e2")]
        )
    assert [stored_from_bytes(RING, tenant, outputs[0].value).version for outputs in (first, second)] == [7, 8]
    assert found(either, tenant) == {"mine", "next"}
    assert either.count(tenant, Zone.GUIDANCE) == 2
    (warning,) = [log for log in logs if log["log_level"] == "warning"]
    assert (warning["objects"], warning["tenant"]) == (1, tenant)
    assert "forged" not in str(warning)


@pytest.mark.parametrize("name", planted("acme"))
def test_a_version_that_the_gate_never_admitted_keeps_no_withdrawal_out(either, name) -> None:
    """An entry that expired on its way is withdrawn, and what was planted under its id goes."""
    tenant = f"land-{uuid4().hex[:10]}"
    either.upsert([planted(tenant)[name]])
    ((output,),) = stage(either).process([accepted(tenant, 7, "late", key="k", expires_ms=T0 - 1)])
    assert stored_from_bytes(RING, tenant, output.value).withdrawn
    assert either.count(tenant, Zone.GUIDANCE) == 0


def test_a_version_that_the_gate_admitted_is_not_overwritten_by_an_older_one(either) -> None:
    """Re-delivered late, an old version does not come back, whatever else in its batch is overwritten."""
    tenant, one = f"land-{uuid4().hex[:10]}", stage(either)
    one.process([accepted(tenant, 9, "new", key="k")])
    either.upsert([entry(tenant, "forged", axis(1), key="j", version=HIGH, ring=STRANGER)])
    older, over = one.process([accepted(tenant, 2, "old", key="k"), accepted(tenant, 3, "mine", axis(1), key="j")])
    assert (older, len(over)) == ([], 1)
    assert found(either, tenant) == {"new", "mine"}


def test_an_object_that_the_store_refuses_is_a_dead_letter_and_the_rest_land(store) -> None:
    """Refused is not lost: the record is kept with the store's own words, and its 63 neighbours are in."""

    def refuse_third(real, objects):
        landed = real.upsert([item for n, item in enumerate(objects) if n != 3])
        landed.insert(3, UpsertResult(objects[3].object_id, StoreAnswer.REFUSED, "not this one"))
        return landed

    batch = [accepted("acme", n, f"c{n}", axis(n)) for n in range(64)]
    results = stage(Faulty(store, [refuse_third])).process(batch)
    assert [n for n, outputs in enumerate(results) if outputs[0].topic == DEAD_LETTER] == [3]
    assert (why(results[3][0])["reason"], why(results[3][0])["detail"]) == ("store_refused", "not this one")
    assert results[3][0].value == batch[3].value
    assert store.count("acme", Zone.GUIDANCE) == 63


def test_what_the_store_refuses_after_an_answer_was_lost_does_not_lie_there(store) -> None:
    """No record of the log will speak of it, so that the sweep would take it for a landing on its way. What lies there
    of another version is left alone: the log has it."""
    stage(store).process([accepted("acme", 1, "kept", key="k")])

    def lost(real, objects):
        real.upsert([item for item in objects if item.content == "orphan"])
        raise StoreUnavailable("the answer was lost")

    def refuse(_real, objects):
        return [UpsertResult(item.object_id, StoreAnswer.REFUSED, "not any more") for item in objects]

    batch = [accepted("acme", 2, "orphan", axis(1)), accepted("acme", 3, "new", axis(2), key="k")]
    results = stage(Faulty(store, [lost, refuse])).process(batch)
    assert [why(letter)["reason"] for (letter,) in results] == ["store_refused", "store_refused"]
    assert found(store, "acme") == {"kept"}


def test_a_store_that_is_down_is_waited_for_in_place(store) -> None:
    """The same batch again after growing, bounded pauses; nothing is skipped, nothing written twice."""
    pauses: list[float] = []
    faulty = Faulty(store, [StoreUnavailable("down")] * 5 + [StoreError("key refused")])
    batch = [accepted("acme", n, f"c{n}", axis(n)) for n in range(3)]
    results = stage(faulty, wait=pauses.append).process(batch)
    assert pauses == [0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert (pauses[0], pauses[-1]) == (RETRY_FIRST_S, RETRY_MAX_S)
    assert [len(outputs) for outputs in results] == [1, 1, 1]
    assert store.count("acme", Zone.GUIDANCE) == 3


def test_a_refusal_is_known_while_it_lasts_and_a_hang_is_none() -> None:
    """Liveness goes by it: no restart mends a store that refuses, and one does where an attempt never ends."""
    now_s, seen = [100.0], []

    def wait(seconds: float) -> bool:
        now_s[0] += seconds
        seen.append(patience.refused_s())
        return False

    patience = Patience(wait, lambda: now_s[0])
    answers = iter([StoreError("no")] * 3)

    def ask() -> str:
        if (error := next(answers, None)) is not None:
            raise error
        now_s[0] += REFUSAL_S
        seen.append(patience.refused_s())
        return "taken"

    assert patience.until_answered(ask) == "taken"
    assert seen == pytest.approx([0.4, 1.2, 2.8, 0.0])
    assert patience.refused_s() == 0


def test_only_what_was_not_written_is_tried_again(store) -> None:
    """An answer lost half way: the objects that landed are not sent again, the others are."""
    sent: list[int] = []

    def half(real, objects):
        sent.append(len(objects))
        done = real.upsert(objects[:2])
        return done + [UpsertResult(item.object_id, StoreAnswer.UNAVAILABLE, "later") for item in objects[2:]]

    def rest(real, objects):
        sent.append(len(objects))
        return real.upsert(objects)

    batch = [accepted("acme", n, f"c{n}", axis(n)) for n in range(5)]
    results = stage(Faulty(store, [half, rest])).process(batch)
    assert sent == [5, 3]
    assert all(len(outputs) == 1 for outputs in results)
    assert store.count("acme", Zone.GUIDANCE) == 5


def test_stopping_ends_the_wait(store) -> None:
    """SIGTERM during an outage: the batch raises at once, so that it is not committed and the worker can end."""
    land = LandStage(lambda: RING, Faulty(store, [StoreUnavailable("down")] * 1_000), PARTITIONS, lambda: T0)
    raised: list[BaseException] = []

    def run() -> None:
        try:
            land.process([accepted("acme", 1, "note")])
        except StoreUnavailable as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join(0.2)
    assert thread.is_alive()
    land.give_up()
    thread.join(HANG_S)
    assert not thread.is_alive()
    assert len(raised) == 1


def test_an_object_with_a_vector_that_is_none_never_reaches_a_store(store) -> None:
    """Admitted with digests that hold, yet of zeros: refused for itself, as a dead letter."""
    record = accepted("acme", 1, "zero", np.zeros(384, dtype=np.float32))
    ((letter,),) = stage(store).process([record])
    assert why(letter)["reason"] == "store_refused"


@pytest.mark.stack
@pytest.mark.timeout(900)
def test_an_outage_of_the_real_store_loses_and_doubles_nothing(stack, monkeypatch) -> None:
    """Frozen in the middle of landing and awake again: every object once, every batch committed once."""
    tenants = [f"land-{uuid4().hex[:10]}-{n}" for n in range(3)]
    batches = [
        [accepted(tenants[n % 3], 100 * b + n, f"c{b}-{n}", axis((b * 40 + n) % 384)) for n in range(60)]
        for b in range(6)
    ]
    (server,) = [row for row in control.status(stack.home) if row.name == "weaviate"]
    store = WeaviateStore.of(stack.connection, WEAVIATE_LAND)
    land = LandStage(lambda: RING, store, PARTITIONS, lambda: T0)
    land.process(batches[0])
    woken = threading.Timer(7.0, os.kill, (server.pid, signal.SIGCONT))  # beyond a call's deadline of 5 s
    os.kill(server.pid, signal.SIGSTOP)
    woken.start()
    try:
        results = [land.process(batch) for batch in batches[1:]]
    finally:
        woken.cancel()
        os.kill(server.pid, signal.SIGCONT)
    be_patient(monkeypatch)
    assert all(len(outputs) == 1 for batch in results for outputs in batch)
    assert [store.count(tenant, Zone.GUIDANCE) for tenant in tenants] == [120, 120, 120]
    land.process(batches[2])
    assert [store.count(tenant, Zone.GUIDANCE) for tenant in tenants] == [120, 120, 120]
    store.close()


@pytest.mark.stack
@pytest.mark.usefixtures("patient")
def test_a_bad_object_in_a_batch_lands_63_on_the_real_store(stack) -> None:
    """One record of 64 that no store takes: its own dead letter, and 63 objects in Weaviate."""
    tenant = f"land-{uuid4().hex[:10]}"
    batch = [accepted(tenant, n, f"c{n}", axis(n)) for n in range(64)]
    batch[9] = accepted(tenant, 9, "zero", np.zeros(384, dtype=np.float32))
    store = WeaviateStore.of(stack.connection, WEAVIATE_LAND)
    results = LandStage(lambda: RING, store, PARTITIONS, lambda: T0).process(batch)
    assert [n for n, outputs in enumerate(results) if outputs[0].topic == DEAD_LETTER] == [9]
    assert store.count(tenant, Zone.GUIDANCE) == 63
    store.close()


@pytest.mark.parametrize(("ahead_ms", "withdrawn"), [(1, False), (0, True), (-1, True)])
def test_an_entry_holds_until_the_millisecond_that_it_names(store, ahead_ms: int, withdrawn: bool) -> None:
    """At that moment it is over, as for readers and the sweep: record and store say the same on either side of it."""
    late = accepted("acme", 2, "late", key="k", expires_ms=T0 + ahead_ms)
    ((output,),) = stage(store).process([late])
    assert stored_from_bytes(RING, "acme", output.value).withdrawn is withdrawn
    assert store.count("acme", Zone.GUIDANCE) == (0 if withdrawn else 1)
    assert found(store, "acme") == (set() if withdrawn else {"late"})


def test_an_expired_entry_withdraws_its_own_version_that_landed_before(store) -> None:
    """Delivered again once its time is over, it is withdrawn: what lies there is no newer than itself."""
    record = accepted("acme", 2, "mine", key="k", expires_ms=T0 + 100)
    stage(store).process([record])
    ((output,),) = stage(store, now_ms=T0 + 100).process([record])
    assert stored_from_bytes(RING, "acme", output.value).withdrawn
    assert store.count("acme", Zone.GUIDANCE) == 0
