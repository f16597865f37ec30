"""*land* and what the store log says: no lower version is published after a higher one, and what was written is read
back."""

from dataclasses import replace
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from structlog.testing import capture_logs
from tests.patience import HANG_S
from tests.stages.test_land import Faulty, found, why
from tests.stages.test_land_withdrawn import withdrawal
from tests.stores.build import PARTITIONS, RING, STRANGER, T0, accepted, axis

from memsluice.envelope.records import StoreRecord, accepted_from_bytes, stored_from_bytes, stored_to_bytes
from memsluice.errors import BrokerUnavailable, StoreUnavailable
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.readers.kafka import KafkaTopic
from memsluice.readers.local import LocalTopic
from memsluice.runtimes.embedded import LocalLog
from memsluice.stages.land import LandStage
from memsluice.stages.settling import WRITTEN_TRIES_MAX
from memsluice.stores.base import StoreAnswer, UpsertResult
from memsluice.stores.faiss.store import FaissStore
from memsluice.stores.log_index import LogIndex
from memsluice.stores.weaviate.store import WeaviateStore
from memsluice.topics.names import DEAD_LETTER, STORE, USER_LAND, WEAVIATE_LAND


class OnFile:
    """The embedded store and log: what a stage publishes is appended, and compacted when asked."""

    def __init__(self, folder) -> None:
        self.store, self.log = FaissStore(":memory:"), LocalLog(folder / "log.db")

    def reader(self):
        """Return a reader of the store log."""
        return LocalTopic(self.log, topic=STORE)

    def publish(self, outputs) -> None:
        """Append what a stage said to the store log."""
        for output in outputs:
            self.log.append(output.topic, output.key, output.value, append_ms=T0, partition=output.partition)

    def compact(self) -> None:
        """Keep the last record of each object."""
        self.log.compact(STORE)

    def close(self) -> None:
        """Close both."""
        self.store.close()
        self.log.close()


class OnStack:
    """The real Weaviate and the real broker, as *land*."""

    def __init__(self, connection) -> None:
        self._connection = connection
        self.store = WeaviateStore.of(connection, WEAVIATE_LAND)
        self._producer = Producer({**connection.confluent(USER_LAND), "acks": "all"})

    def reader(self):
        """Return a reader of the store log, with land's own user."""
        return KafkaTopic.of(self._connection, USER_LAND, STORE)

    def publish(self, outputs) -> None:
        """Append what a stage said to the store log."""
        for output in outputs:
            self._producer.produce(output.topic, key=output.key, value=output.value, partition=output.partition)
        assert self._producer.flush(HANG_S) == 0

    def compact(self) -> None:
        """Leave it to the broker: what a reader sees of a key last is the same."""

    def close(self) -> None:
        """Leave the store."""
        self.store.close()


@pytest.fixture(params=["embedded", pytest.param("stack", marks=pytest.mark.stack)])
def place(request, tmp_path, patient):
    """A store and its log: embedded, and real."""
    made = OnFile(tmp_path) if request.param == "embedded" else OnStack(request.getfixturevalue("stack").connection)
    yield made
    made.close()


@pytest.fixture
def tenant() -> str:
    """A tenant that no other test uses."""
    return f"floor-{uuid4().hex[:10]}"


def worker(place, **options) -> LandStage:
    """Return *land* as a worker that knows nothing yet has it."""
    options.setdefault("wait", lambda _seconds: False)
    return LandStage(
        lambda: RING,
        place.store,
        PARTITIONS,
        lambda: T0,
        log=LogIndex(lambda _ended: place.reader(), lambda: RING),
        **options,
    )


def landed(place, stage: LandStage, *records) -> list[StoreRecord]:
    """Land records, publish what the stage says, and return it."""
    said = [output for outputs in stage.process(list(records)) for output in outputs]
    assert all(output.topic == STORE for output in said)
    place.publish(said)
    return [stored_from_bytes(RING, (records[0].key or b"").decode(), output.value) for output in said]


def gone(record, version: int, tenant: str):
    """Return the withdrawal of what an accepted record of the tenant lands."""
    admission = accepted_from_bytes(RING, tenant, record.value).admission
    made = withdrawal(accepted("acme", 1), version, tenant=tenant, object_id=admission.object_id)
    return replace(made, key=tenant.encode(), partition=partition_of(tenant, PARTITIONS))


def test_what_was_withdrawn_does_not_come_back_with_an_older_record(place, tenant) -> None:
    """V2: a worker that knows nothing is given the entry again after its withdrawal, and after compaction: it lands
    nothing, and publishes nothing that would outlive the withdrawal."""
    entry = accepted(tenant, 7, "revoked")
    first = worker(place)
    assert [one.version for one in landed(place, first, entry)] == [7]
    assert [(one.version, one.withdrawn) for one in landed(place, first, gone(entry, 20, tenant))] == [(20, True)]
    place.compact()
    assert worker(place).process([entry]) == [[]]
    assert first.process([entry]) == [[]]
    assert place.store.count(tenant, Zone.GUIDANCE) == 0


def test_the_store_log_never_runs_backwards(place, tenant) -> None:
    """V4: the store lost the newer version, or somebody took it out: an older one that is delivered again is not
    published after it, so that the last record of an object is its highest."""
    old, new = accepted(tenant, 4, "old", key="k"), accepted(tenant, 9, "new", key="k")
    (one,) = landed(place, worker(place), new)
    place.store.delete(tenant, Zone.GUIDANCE, [one.object_id])
    assert landed(place, worker(place), old) == []
    assert found(place.store, tenant) == set()
    assert [one.version for one in landed(place, worker(place), new)] == [9]
    assert found(place.store, tenant) == {"new"}


def test_a_partition_that_comes_back_is_read_on_from_where_it_was_left(place, tenant) -> None:
    """Another worker owned it meanwhile: what that one published is a floor before the next batch."""
    old, new = accepted(tenant, 4, "old", key="k"), accepted(tenant, 9, "new", key="k")
    here, there = worker(place), worker(place)
    landed(place, here, accepted(tenant, 1, "other"))
    landed(place, there, new)
    landed(place, there, gone(new, 12, tenant))
    here.owns({partition_of(tenant, PARTITIONS)})
    assert here.process([old]) == [[]]
    assert here.process([new]) == [[]]
    assert found(place.store, tenant) == {"other"}


def test_what_was_not_committed_is_landed_again(place, tenant) -> None:
    """The same records once more, after a transaction that failed: a floor of the own version keeps nothing out."""
    batch = [
        accepted(tenant, 4, "old", key="k"),
        accepted(tenant, 9, "new", key="k"),
        accepted(tenant, 11, "x", axis(3)),
    ]
    stage = worker(place)
    first = stage.process(batch)  # not published
    stage.owns({partition_of(tenant, PARTITIONS)})
    assert stage.process(batch) == first
    stage.forget(partition_of(tenant, PARTITIONS))
    assert stage.process(batch) == first
    assert worker(place).process(batch) == first
    assert [len(outputs) for outputs in first] == [1, 1, 1]


@pytest.fixture
def here(tmp_path):
    """The embedded store and log."""
    made = OnFile(tmp_path)
    yield made
    made.close()


def test_a_record_that_the_gate_did_not_seal_is_no_floor(here, tenant) -> None:
    """Whoever gets to write to the topic keeps no entry out with a version of his choice, and is noticed."""
    record = accepted(tenant, 7, "mine", key="k")
    (mine,) = landed(here, worker(here), record)
    here.store.delete(tenant, Zone.GUIDANCE, [mine.object_id])
    for ring, key in ((STRANGER, mine.object_id), (RING, str(uuid4()))):
        value = stored_to_bytes(ring, "seal-1", replace(mine, version=2**40, withdrawn=True))
        here.log.append(STORE, key.encode(), value, append_ms=T0, partition=record.partition)
    index = LogIndex(lambda _ended: here.reader(), lambda: RING)
    index.catch_up(record.partition)
    assert index.unverified == 2
    stage, counted = worker(here), []
    stage.tell(lambda *what: counted.append(what))
    assert [one.version for one in landed(here, stage, record)] == [7]
    assert counted == [("unverified", 2)]


def test_a_store_log_that_can_not_be_read_is_waited_for(here, tenant) -> None:
    """Without floors nothing is landed; with the broker back, the batch goes on. A stop ends the wait."""
    fails = [BrokerUnavailable("away"), BrokerUnavailable("away")]

    class Away:
        def read(self, partition, from_offset=0):
            if fails:
                raise fails.pop()
            return here.reader().read(partition, from_offset)

    pauses: list[float] = []
    record = accepted(tenant, 7, "mine")
    stage = LandStage(
        lambda: RING,
        here.store,
        PARTITIONS,
        lambda: T0,
        log=LogIndex(lambda _ended: Away(), lambda: RING),
        wait=pauses.append,
    )
    assert [len(outputs) for outputs in stage.process([record])] == [1]
    assert pauses == [0.4, 0.8]
    fails.append(BrokerUnavailable("away"))
    stopped = LandStage(
        lambda: RING,
        here.store,
        PARTITIONS,
        lambda: T0,
        log=LogIndex(lambda _ended: Away(), lambda: RING),
        wait=lambda _pause: True,
    )
    with pytest.raises(StoreUnavailable):
        stopped.process([record])


class Forgetful(Faulty):
    """A real store that answers "landed" for one object and keeps nothing of it, as often as told."""

    def __init__(self, store, times: int, spoil) -> None:
        super().__init__(store, [])
        self.times, self.spoil = times, spoil

    def upsert(self, objects, *, overwrite=False):
        """Say that all landed; leave the first out, or change it."""
        if self.times == 0:
            return self.store.upsert(objects, overwrite=overwrite)
        self.times -= 1
        kept = [*self.spoil(objects[0]), *objects[1:]]
        if kept:
            self.store.upsert(kept, overwrite=overwrite)
        return [UpsertResult(item.object_id, StoreAnswer.LANDED) for item in objects]


SPOILS = {
    "lost": lambda item: [],
    "another owner": lambda item: [replace(item, owner="bo")],
    "another content": lambda item: [replace(item, content=item.content + "!")],
    "hidden": lambda item: [replace(item, expires_ms=-1)],
    "another vector": lambda item: [replace(item, vector=axis(200))],
    "without its admission": lambda item: [replace(item, admission="")],
}


@pytest.mark.parametrize("name", SPOILS)
def test_what_the_store_took_and_does_not_give_back_is_written_again(here, tenant, name) -> None:
    """An answer is not believed: what was written is read back, and only then said to be there."""
    counted: list[tuple[str, int]] = []
    stage = worker(here)
    stage._store = Forgetful(here.store, 1, SPOILS[name])
    stage.tell(lambda *what: counted.append(what))
    batch = [accepted(tenant, n, f"c{n}", axis(n)) for n in range(3)]
    assert len(landed(here, stage, *batch)) == 3
    assert found(here.store, tenant) == {"c0", "c1", "c2"}
    assert counted == [("unlike", 1)]


def test_what_the_store_never_gives_back_is_a_dead_letter_and_holds_nobody_up(here, tenant) -> None:
    """After a bounded number of tries, loudly, with the record's own bytes, and nothing of it is left behind."""
    stage = worker(here)
    stage._store = Forgetful(here.store, WRITTEN_TRIES_MAX, SPOILS["another content"])
    batch = [accepted(tenant, n, f"c{n}", axis(n)) for n in range(3)]
    with capture_logs() as logs:
        (letter,), *rest = stage.process(batch)
    assert (letter.topic, why(letter)["reason"]) == (DEAD_LETTER, "store_refused")
    assert letter.value == batch[0].value
    assert [outputs[0].topic for outputs in rest] == [STORE, STORE]
    assert found(here.store, tenant) == {"c1", "c2"}
    assert [log["last"] for log in logs if log["log_level"] == "error"] == [False, False, True]


def test_a_withdrawal_is_said_only_once_the_object_is_gone(here, tenant) -> None:
    """A store that answers a deletion and keeps the object is asked again until it is gone."""
    entry = accepted(tenant, 7, "revoked")
    landed(here, worker(here), entry)

    class Keeps(Faulty):
        left = 2

        def delete(self, *arguments, **options):
            if self.left:
                self.left -= 1
                return 1
            return self.store.delete(*arguments, **options)

    stage = worker(here)
    stage._store = Keeps(here.store, [])
    assert [one.withdrawn for one in landed(here, stage, gone(entry, 20, tenant))] == [True]
    assert here.store.count(tenant, Zone.GUIDANCE) == 0


def test_many_withdrawals_are_one_question_and_one_deletion(here, tenant) -> None:
    """A revocation of hundreds does not cost two calls an object."""
    entries = [accepted(tenant, n, f"c{n}", axis(n)) for n in range(40)]
    landed(here, worker(here), *entries)
    calls: list[str] = []

    class Counting(Faulty):
        def __getattr__(self, name):
            calls.append(name)
            return getattr(self.store, name)

    stage = worker(here)
    stage._store = Counting(here.store, [])
    assert len(landed(here, stage, *[gone(one, 100 + n, tenant) for n, one in enumerate(entries)])) == 40
    assert calls == ["held", "delete", "admissions"]
