"""The freshness index: what the log of landed objects says is current, read to its end at each question."""

import threading
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest
from confluent_kafka import Producer
from tests.patience import HANG_S
from tests.stores.build import PARTITIONS, RING, STRANGER

from memsluice.envelope.records import StoreRecord, stored_to_bytes
from memsluice.errors import BrokerUnavailable, StoreError
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.readers import kafka
from memsluice.readers.apart import ApartTopic
from memsluice.readers.kafka import KafkaTopic
from memsluice.readers.local import LocalTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.landed import Landed
from memsluice.recall.reader import Current
from memsluice.runtimes.embedded import LocalLog
from memsluice.topics.names import STORE, USER_LAND, USER_READER


def record_of(tenant: str, object_id: str, version: int, expires_ms: int | None = None, withdrawn=False) -> StoreRecord:
    """Return what a store record says."""
    return StoreRecord(object_id, tenant, version, Zone.GUIDANCE, "event-1", "d" * 64, expires_ms, withdrawn)


def stored(
    tenant: str, object_id: str, version: int, *, expires_ms: int | None = None, withdrawn=False, ring=RING
) -> tuple[bytes, bytes]:
    """Return key and value of a store record."""
    record = record_of(tenant, object_id, version, expires_ms, withdrawn)
    return object_id.encode(), stored_to_bytes(ring, "seal-1", record)


@pytest.fixture
def log(tmp_path):
    """The embedded runtime's log."""
    made = LocalLog(tmp_path / "log.db")
    yield made
    made.close()


def say(log, tenant: str, key: bytes, value: bytes | None) -> None:
    """Append a store record where *land* would."""
    log.append(STORE, key, value, append_ms=1, partition=partition_of(tenant, PARTITIONS))


def index(log) -> FreshnessIndex:
    """Return an index over a local log."""
    return FreshnessIndex(LocalTopic(log, topic=STORE), lambda: RING, PARTITIONS)


def test_each_question_reads_the_log_to_its_end(log) -> None:
    """A landing acknowledged before the question counts: there is no time in which an old version still passes."""
    fresh = index(log)
    assert fresh.current("acme", ["a"]) == {}
    say(log, "acme", *stored("acme", "a", 3))
    assert fresh.current("acme", ["a", "b"]) == {"a": Current(3, False)}
    say(log, "acme", *stored("acme", "a", 7))
    say(log, "acme", *stored("acme", "b", 5, withdrawn=True))
    assert fresh.current("acme", ["a", "b"]) == {"a": Current(7, False), "b": Current(5, True)}


def test_an_older_record_does_not_turn_the_index_back(log) -> None:
    """A re-delivered landing repeats old records after newer ones."""
    for version in (3, 7, 3):
        say(log, "acme", *stored("acme", "a", version))
    assert index(log).current("acme", ["a"]) == {"a": Current(7, False)}


def test_an_erased_object_is_unknown(log) -> None:
    """A tombstone takes the object out, whatever it was."""
    say(log, "acme", *stored("acme", "a", 3))
    say(log, "acme", b"a", None)
    assert index(log).current("acme", ["a"]) == {}


def test_what_the_gate_did_not_seal_counts_for_nothing(log) -> None:
    """Records of strangers, of another object than their key, and of no form at all are left out, and counted."""
    say(log, "acme", *stored("acme", "a", 3))
    say(log, "acme", *stored("acme", "a", 9, withdrawn=True, ring=STRANGER))
    say(log, "acme", b"a", stored("acme", "b", 9)[1])
    for junk in (b"", b"{}", b"\xff", b'{"payload":1}'):
        say(log, "acme", b"a", junk)
    fresh = index(log)
    assert fresh.current("acme", ["a", "b"]) == {"a": Current(3, False)}
    assert fresh.unverified == 6


def neighbours() -> tuple[str, str]:
    """Return two tenants of one partition."""
    home = partition_of("acme", PARTITIONS)
    return "acme", next(name for name in (f"t{n}" for n in range(1_000)) if partition_of(name, PARTITIONS) == home)


def test_a_tenant_over_its_limit_ends_nobody_elses_recall(log) -> None:
    """The questions of the tenant with too many live entries fail, saying so; its neighbour's on the partition do not,
    whether it landed before or after."""
    many, other = neighbours()
    fresh = FreshnessIndex(LocalTopic(log, topic=STORE), lambda: RING, PARTITIONS, objects_max=2)
    say(log, other, *stored(other, "o", 1))
    for number in range(3):
        say(log, many, *stored(many, f"m{number}", number))
    say(log, other, *stored(other, "p", 9))
    for _ in range(2):
        with pytest.raises(StoreError, match=f"{many} has more than 2 live entries"):
            fresh.current(many, ["m0"])
        assert fresh.current(other, ["o", "p", "m0"]) == {"o": Current(1, False), "p": Current(9, False)}


def test_what_ended_does_not_count_towards_the_limit(log) -> None:
    """Any number of entries may come and go: expired ones leave when their time has passed, withdrawn ones at once."""
    clock = [0]
    fresh = FreshnessIndex(LocalTopic(log, topic=STORE), lambda: RING, PARTITIONS, lambda: clock[0], objects_max=2)
    for number in range(1, 30):
        clock[0] = 10 * number
        say(log, "acme", *stored("acme", f"short{number}", number, expires_ms=10 * number + 5))
        say(log, "acme", *stored("acme", f"taken{number}", number))
        assert fresh.current("acme", [f"short{number}"]) == {f"short{number}": Current(number, False)}
        say(log, "acme", *stored("acme", f"taken{number}", number, withdrawn=True))
    assert fresh.current("acme", ["taken29"]) == {"taken29": Current(29, True)}


def test_an_expired_entry_is_not_current_and_neither_is_what_it_replaced(log) -> None:
    """When a version expires, an older one that is delivered again, or put back, does not become the current one."""
    clock = [0]
    fresh = FreshnessIndex(LocalTopic(log, topic=STORE), lambda: RING, PARTITIONS, lambda: clock[0])
    say(log, "acme", *stored("acme", "a", 3))
    say(log, "acme", *stored("acme", "a", 7, expires_ms=10))
    assert fresh.current("acme", ["a"]) == {"a": Current(7, False)}
    clock[0] = 10
    say(log, "acme", *stored("acme", "a", 3))
    assert fresh.current("acme", ["a"]) == {"a": Current(7, True)}
    say(log, "acme", *stored("acme", "a", 8))
    assert fresh.current("acme", ["a"]) == {"a": Current(8, False)}


def test_a_longer_life_is_not_ended_by_the_shorter_one_before() -> None:
    """A newer version's expiry counts, also while the older version's is still noted."""
    landed = Landed("acme")
    landed.put(record_of("acme", "a", 1, expires_ms=10), 0)
    landed.put(record_of("acme", "a", 2, expires_ms=20), 0)
    landed.expire(15)
    assert landed.current("a") == Current(2, False)
    landed.expire(20)
    assert landed.current("a") == Current(2, True)


def test_the_longest_gone_are_forgotten_and_stay_unknown() -> None:
    """Memory of what ended is bounded; what is forgotten is unknown, which readers withhold."""
    landed = Landed("acme", objects_max=5, gone_max=2)
    for number in range(1_000):
        landed.put(record_of("acme", f"o{number}", number, withdrawn=True), 0)
        landed.put(record_of("acme", "kept", number, expires_ms=5_000 - number), 0)
    assert landed.current("o997") is None
    assert landed.current("o998") == Current(998, True)
    assert landed.current("kept") == Current(999, False)
    assert len(landed._ends) < 100


def test_an_end_that_no_record_reaches_is_read_once(log) -> None:
    """The mark of a transaction stands behind the last record: the next question does not wait for a record there."""
    reads = list[int]()

    class Marked(LocalTopic):
        def end(self, partition: int) -> int:
            """Return the end, with a mark behind the last record."""
            return super().end(partition) + 1

        def read(self, partition: int, from_offset: int = 0):
            """Count the reads."""
            reads.append(from_offset)
            return super().read(partition, from_offset)

    say(log, "acme", *stored("acme", "a", 3))
    fresh = FreshnessIndex(Marked(log, topic=STORE), lambda: RING, PARTITIONS)
    for _ in range(3):
        assert fresh.current("acme", ["a"]) == {"a": Current(3, False)}
    assert reads == [0]


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_the_broker_is_read_to_its_end_at_each_question(stack) -> None:
    """On the real topic, as the reader's own user: records of many tenants, then one more, then a withdrawal."""
    producer = Producer({**stack.connection.confluent(USER_LAND), "acks": "all", "linger.ms": 0})
    tenant, other = f"fresh-{uuid4().hex[:10]}", f"fresh-{uuid4().hex[:10]}"

    def publish(name: str, object_id: str, version: int, **options) -> None:
        key, value = stored(name, object_id, version, **options)
        producer.produce(STORE, key=key, value=value, partition=partition_of(name, PARTITIONS))
        assert producer.flush(HANG_S) == 0

    ids = [str(uuid4()) for _ in range(50)]
    log = ApartTopic(stack.connection, USER_READER, STORE)
    fresh = FreshnessIndex(log, lambda: RING, PARTITIONS)
    for number, object_id in enumerate(ids):
        publish(tenant if number % 2 else other, object_id, number)
    assert fresh.current(tenant, ids[1::2]) == {ids[n]: Current(n, False) for n in range(1, 50, 2)}
    publish(tenant, ids[1], 60)
    assert fresh.current(tenant, [ids[1]]) == {ids[1]: Current(60, False)}
    assert fresh.current(other, [ids[2]]) == {ids[2]: Current(2, False)}
    publish(tenant, ids[1], 61, withdrawn=True)
    assert fresh.current(tenant, [ids[1]]) == {ids[1]: Current(61, True)}
    log.close()


def test_a_broker_that_does_not_answer_is_an_error_and_no_answer(monkeypatch) -> None:
    """Without the log nobody can say what is current: the reader is told so, in time."""
    monkeypatch.setattr(kafka, "ASK_TIMEOUT_S", 1.5)
    log = KafkaTopic({"bootstrap.servers": "127.0.0.1:1", "socket.timeout.ms": 1_000})
    with pytest.raises(BrokerUnavailable):
        FreshnessIndex(log, lambda: RING, PARTITIONS).current("acme", ["a"])
    log.close()


def test_a_tenant_does_not_wait_for_a_partition_of_others(log) -> None:
    """While the log of one partition is long in coming, tenants of the others are answered."""
    slow, going = partition_of("acme", PARTITIONS), threading.Event()
    other = next(name for name in map(str, range(99)) if partition_of(name, PARTITIONS) != slow)
    for tenant in ("acme", other):
        say(log, tenant, *stored(tenant, "a", 3))
    said = {number: list(log.read(STORE, 0, partition=number)) for number in range(PARTITIONS)}

    class Slow(LocalTopic):
        def read(self, partition: int, from_offset: int = 0):
            """Yield what was said, where it is slow once it may go on."""
            if partition == slow:
                assert going.wait(HANG_S)
            yield from said[partition][from_offset:]

        def end(self, partition: int) -> int:
            """Return how much was said."""
            return len(said[partition])

    fresh = FreshnessIndex(Slow(log, topic=STORE), lambda: RING, PARTITIONS)
    with ThreadPoolExecutor(2) as pool:
        waiting = pool.submit(fresh.current, "acme", ["a"])
        assert pool.submit(fresh.current, other, ["a"]).result(HANG_S) == {"a": Current(3, False)}
        assert not waiting.done()
        going.set()
        assert waiting.result(HANG_S) == {"a": Current(3, False)}
