"""Records of a transaction are packed into batches: each is there once, in its order, and knows its place."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaError, MessageSizeTooLargeError
from aiokafka.producer.message_accumulator import BatchBuilder
from aiokafka.record.default_records import DefaultRecordBatch

from memsluice.errors import StateError
from memsluice.runtimes.kafka.packing import Packing

HEADERS = (("h", b"1"),)


class Broker:
    """Stands in for a producer whose broker answers with offsets from 100 on; ``batch_bytes`` bound a batch."""

    def __init__(self, batch_bytes: int = 4_096, fault: BaseException | None = None) -> None:
        self.batch_bytes, self.fault = batch_bytes, fault
        self.log: dict[tuple[str, int], list[tuple[bytes, bytes, list[Any]]]] = {}
        self.batches: list[tuple[str, int, int]] = []

    def create_batch(self) -> BatchBuilder:
        """Return aiokafka's own builder."""
        return BatchBuilder(self.batch_bytes, 0, is_transactional=True, key_serializer=None, value_serializer=None)

    def _serialize(self, key: bytes | None, value: bytes | None, headers: list[Any]) -> None:
        if len(value or b"") > 100_000:
            raise MessageSizeTooLargeError("too large")

    async def send_batch(self, builder: BatchBuilder, topic: str, *, partition: int) -> "asyncio.Future[Any]":
        """Keep a batch's records, and answer with the place of the first."""
        if self.fault is not None:
            raise self.fault
        builder.close()
        records = list(DefaultRecordBatch(bytes(builder._build())))
        log = self.log.setdefault((topic, partition), [])
        done: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        done.set_result(SimpleNamespace(offset=100 + len(log)))
        log += [(one.key, one.value, list(one.headers)) for one in records]
        self.batches.append((topic, partition, len(records)))
        return done


def packed(broker: Broker, work: Callable[[Packing], Any]) -> Any:
    """Run ``work`` with a packing over a broker, and flush."""

    async def run() -> Any:
        packing = Packing(broker, lambda future: None)
        result = await work(packing)
        await packing.flush()
        return result

    return asyncio.run(run())


def test_every_record_is_there_once_in_order_and_knows_its_offset() -> None:
    """Two topics and two partitions at once, in batches that become full: no record is lost or moves."""
    broker = Broker(batch_bytes=512)
    places = [("a", 0), ("a", 1), ("b", 0)]

    async def work(packing: Packing) -> list[Any]:
        return [
            (where, number, await packing.send(*where, b"k%d" % number, b"v" * 60 + b"%d" % number, HEADERS))
            for number in range(40)
            for where in places
        ]

    sent = packed(broker, work)
    assert len(broker.batches) > 2 * len(places)
    for where in places:
        assert broker.log[where] == [(b"k%d" % n, b"v" * 60 + b"%d" % n, list(HEADERS)) for n in range(40)]
    assert [one.offset for where, number, one in sent] == [100 + number for _, number, _ in sent]


def test_a_record_larger_than_a_batch_has_one_of_its_own() -> None:
    """What is larger than the usual batch is sent all the same, between those before and behind it."""
    broker = Broker(batch_bytes=256)
    values = [b"a", b"x" * 5_000, b"b"]

    async def work(packing: Packing) -> list[Any]:
        return [await packing.send("a", 0, b"k", value) for value in values]

    assert [one.offset for one in packed(broker, work)] == [100, 101, 102]
    assert [value for _, value, _ in broker.log["a", 0]] == values


def test_a_record_that_is_too_large_at_all_names_its_topic() -> None:
    """The fence says which topic's record it was; one that is no fault of a record's size names none."""

    async def large(packing: Packing) -> None:
        await packing.send("a", 0, b"k", b"v")
        with pytest.raises(MessageSizeTooLargeError):
            await packing.send("b", 0, b"k", b"x" * 100_001)
        assert packing.sending == "b"
        await packing.send("a", 0, b"k", b"w")
        assert packing.sending == ""

    broker = Broker()
    packed(broker, large)
    assert [value for _, value, _ in broker.log["a", 0]] == [b"v", b"w"]


def test_a_transaction_that_ends_while_a_batch_waits_is_no_defect_of_ours() -> None:
    """aiokafka asserts that one is open: the stage is to begin anew, as where the broker broke it off."""

    async def work(packing: Packing) -> None:
        await packing.send("a", 0, b"k", b"v")

    with pytest.raises(KafkaError, match="ended before a batch for a was sent") as ended:
        packed(Broker(fault=AssertionError()), work)
    assert type(ended.value) is KafkaError


def test_an_empty_batch_that_takes_nothing_loses_no_record_silently() -> None:
    """aiokafka's builders take a first record of any size; if that changes, it is an error and no gap."""
    broker = Broker()
    broker.create_batch = lambda: SimpleNamespace(append=lambda **_: None)  # type: ignore[method-assign]

    async def work(packing: Packing) -> None:
        await packing.send("a", 0, b"k", b"v")

    with pytest.raises(StateError, match="an empty batch for a refused a record"):
        packed(broker, work)
