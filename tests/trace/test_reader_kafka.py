"""A reader of a topic on a real broker: between two reads it asks for nothing, and each read begins at once."""

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer

from memsluice.readers.kafka import KafkaTopic
from memsluice.topics.names import QUARANTINE, USER_ADMIN

pytestmark = pytest.mark.stack
IDLE_S = 1.5


@pytest.fixture
def put(stack: Any) -> Any:
    """Return a function that appends a record to a partition and returns its offset."""
    producer = Producer({**stack.connection.confluent(USER_ADMIN), "linger.ms": 0})

    def one(partition: int) -> int:
        places: list[int] = []
        producer.produce(
            QUARANTINE, b"v", b"k", partition=partition, on_delivery=lambda _, sent: places.append(sent.offset())
        )
        producer.flush(30)
        return places[0]

    return one


@pytest.fixture
def reader(stack: Any) -> Iterator[KafkaTopic]:
    """Yield a reader that gives up in five seconds: a partition that is not fetched is not waited for."""
    log = KafkaTopic(stack.connection.confluent(USER_ADMIN), topic=QUARANTINE, stalled_s=5)
    yield log
    log.close()


def test_between_two_reads_nothing_is_fetched(stack: Any, put: Any) -> None:
    """A reader that waits for its next use costs the broker nothing: fifty requests a second each would add up."""
    asked: list[int] = []

    def heard(text: str) -> None:
        asked.append(sum(broker["req"].get("Fetch", 0) for broker in json.loads(text)["brokers"].values()))

    told = {"statistics.interval.ms": 100, "stats_cb": heard}
    log = KafkaTopic({**stack.connection.confluent(USER_ADMIN), **told}, topic=QUARANTINE)
    first = put(0)
    assert [record.offset for record in log.read(0, first)] == [first]
    before, deadline = len(asked), time.monotonic() + IDLE_S
    while time.monotonic() < deadline:
        log._consumer.poll(0.1)
    log.close()
    assert len(asked) > before + 2
    assert asked[-1] - asked[before + 1] <= 2  # the first may have been counted before the pause


def test_a_read_goes_on_whatever_was_read_before(put: Any, reader: KafkaTopic) -> None:
    """A partition that was left while it was not fetched is read again like any other, in whatever order."""
    one, other = put(1), put(2)

    def offsets(partition: int, begin: int) -> list[int]:
        return [record.offset for record in reader.read(partition, begin)]

    assert offsets(1, one) == [one]
    assert offsets(2, other + 1) == []
    assert offsets(1, one) == [one]
    assert offsets(2, other) == [other]
    assert offsets(2, other + 1) == []
    assert offsets(2, put(2)) == [other + 1]
    assert next(reader.read(1, one)).offset == one
    assert offsets(1, one) == [one]
    assert [record.offset for record in reader.follow({1: one}, 5)] == [one]
    assert offsets(1, put(1)) == [one + 1]
