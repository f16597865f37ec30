"""The simulated broker keeps Kafka's promises, and no more."""

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaError

from memsluice_lab.simulation.broker import Broker, Message

TP = ("topic", 0)
GROUP = "group"


def message(key: str, value: str = "v") -> Message:
    """Return a record."""
    return Message(key.encode(), value.encode(), ())


@pytest.fixture
def clock() -> list[float]:
    """Return a clock that a test sets."""
    return [0.0]


@pytest.fixture
def broker(clock: list[float]) -> Broker:
    """Return an empty broker."""
    return Broker(lambda: clock[0], lambda: int(clock[0] * 1000))


def keys(broker: Broker, *, committed: bool = True) -> list[bytes | None]:
    """Return the keys that a reader is given."""
    return [record.key for record in broker.log(*TP).fetch(0, 100, committed=committed)[0]]


def test_a_reader_of_committed_records_waits_for_the_open_transaction(broker) -> None:
    """What is behind it, others' records too, is seen when it ends; its marker takes an offset."""
    epoch = broker.identify("a")
    broker.produce_in("a", epoch, TP, [message("1")])
    broker.produce(TP, [message("2")])
    assert keys(broker) == []
    assert keys(broker, committed=False) == [b"1", b"2"]
    broker.end_in("a", epoch, commit=True)
    assert keys(broker) == [b"1", b"2"]
    assert broker.log(*TP).end == 3


def test_an_aborted_transaction_leaves_nothing_but_its_marker(broker) -> None:
    """Neither its records nor its offsets count."""
    epoch = broker.identify("a")
    broker.produce_in("a", epoch, TP, [message("1")])
    broker.offsets_in("a", epoch, GROUP, {TP: 7})
    broker.end_in("a", epoch, commit=False)
    assert keys(broker) == []
    assert broker.committed[GROUP] == {}


def test_who_asks_for_an_id_ends_and_shuts_out_its_former_owner(broker) -> None:
    """The open transaction is aborted, and each later request of the old epoch refused."""
    old = broker.identify("a")
    broker.produce_in("a", old, TP, [message("1")])
    new = broker.identify("a")
    for request in (
        lambda: broker.produce_in("a", old, TP, [message("2")]),
        lambda: broker.offsets_in("a", old, GROUP, {TP: 1}),
        lambda: broker.end_in("a", old, commit=True),
    ):
        with pytest.raises(KafkaError):
            request()
    broker.produce_in("a", new, TP, [message("3")])
    broker.end_in("a", new, commit=True)
    assert keys(broker) == [b"3"]


def test_offsets_are_committed_with_the_records_or_not_at_all(broker) -> None:
    """Before the end of the transaction the group stands where it stood."""
    epoch = broker.identify("a")
    broker.produce_in("a", epoch, TP, [message("1")])
    broker.offsets_in("a", epoch, GROUP, {TP: 1})
    assert broker.committed[GROUP] == {}
    broker.end_in("a", epoch, commit=True)
    assert broker.committed[GROUP] == {TP: 1}


def test_a_transaction_that_is_left_open_is_ended_by_the_broker(broker, clock) -> None:
    """After its timeout; and who left it open is shut out."""
    epoch = broker.identify("a")
    broker.produce_in("a", epoch, TP, [message("1")])
    clock[0] = 29.0
    broker.expire(30.0)
    assert broker.log(*TP).open
    clock[0] = 30.0
    broker.expire(30.0)
    assert not broker.log(*TP).open
    with pytest.raises(KafkaError):
        broker.end_in("a", epoch, commit=True)


def test_compaction_keeps_the_last_committed_record_of_a_key_and_every_offset(broker) -> None:
    """Aborted records go, what is not decided stays, and a reader goes on where it was."""
    broker.produce(TP, [message("a", "1"), message("b", "1"), message("a", "2")])
    epoch = broker.identify("t")
    broker.produce_in("t", epoch, TP, [message("a", "never")])
    broker.end_in("t", epoch, commit=False)
    epoch = broker.identify("u")
    broker.produce_in("u", epoch, TP, [message("b", "open")])
    log = broker.log(*TP)
    log.compact()
    assert [(record.offset, record.key, record.value) for record in log.read()] == [(1, b"b", b"1"), (2, b"a", b"2")]
    assert [record.offset for record in log.ever()] == [0, 1, 2]
    broker.end_in("u", epoch, commit=True)
    assert [record.value for record in log.fetch(2, 10)[0]] == [b"2", b"open"]


def test_a_broker_that_is_away_takes_nothing(broker) -> None:
    """Every request fails, and leaves no trace."""
    broker.down = True
    with pytest.raises(KafkaConnectionError):
        broker.produce(TP, [message("1")])
    assert broker.log(*TP).end == 0
