"""Compressed batches: how much one unpacks to is found out within a bound, for every codec that producers may use."""

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import cramjam
import pytest
from aiokafka.consumer.fetcher import READ_COMMITTED, PartitionRecords
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from aiokafka.structs import TopicPartition

from memsluice.errors import LimitExceeded
from memsluice.events import cloudevent
from memsluice.events.names import NOT_UNPACKED_HEADER
from memsluice.readers.batches import UNPACKED_BYTES_MAX, TooLarge, too_large
from memsluice.runtimes.kafka import header_names
from memsluice.topics.names import EVENTS
from memsluice.topics.spec import load_topics
from memsluice_lab.hostile import mutate
from memsluice_lab.hostile.judge import bounded

NONE, GZIP, SNAPPY, LZ4, ZSTD = range(5)
CODECS = (GZIP, SNAPPY, LZ4, ZSTD)
INTAKE = next(topic.spec for topic in load_topics() if topic.name == EVENTS)
MIB = 1024 * 1024
FEED: dict[int, Callable[[], Any]] = {ZSTD: cramjam.zstd.Compressor, LZ4: cramjam.lz4.Compressor}


def batch(codec: int, *values: bytes) -> bytes:
    """Return a record batch as aiokafka's producer writes it."""
    builder = DefaultRecordBatchBuilder(
        magic=2, compression_type=codec, is_transactional=0, producer_id=-1, producer_epoch=-1, base_sequence=-1,
        batch_size=10**9,
    )  # fmt: skip
    for number, value in enumerate(values):
        assert builder.append(number, timestamp=1_000, key=b"k", value=value, headers=[]) is not None
    return bytes(builder.build())


def huge(codec: int, size_mib: int) -> bytes:
    """Return a batch of zeros of so many MiB, made without ever holding them; what stands in it is no record."""
    packer = FEED[codec]()
    for _ in range(size_mib):
        packer.compress(bytes(MIB))
    empty = batch(codec, b"")
    return empty[:61] + bytes(packer.finish())


@pytest.mark.parametrize("codec", [NONE, *CODECS])
def test_what_a_producer_may_send_is_unpacked(codec: int) -> None:
    """A batch of events, and one of the largest records that the intake takes, of text that compresses as it may."""
    events = [b'{"payload":"%d"}' % number * 40 for number in range(400)]
    assert too_large(batch(codec, *events)) is None
    assert too_large(batch(codec, b"a" * INTAKE.max_message)) is None
    assert 4 * INTAKE.max_message <= UNPACKED_BYTES_MAX


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_told_with_its_places(codec: int) -> None:
    """Of what unpacks to more than the bound each offset is told, and the broker's time, which is the gate's clock."""
    data = batch(codec, b"first", bytes(UNPACKED_BYTES_MAX), b"last")
    found = too_large(data)
    assert found is not None
    assert (found.first, found.last, found.append_ms) == (0, 2, 1_000)


@pytest.mark.parametrize("codec", CODECS)
def test_the_bound_is_of_the_whole_batch(codec: int) -> None:
    """Many records that fit each are as large together as one: it is the batch that is unpacked at once."""
    records = [bytes(MIB) for _ in range(UNPACKED_BYTES_MAX // MIB)]
    assert too_large(batch(codec, *records)) is not None
    assert too_large(batch(codec, *records[: len(records) // 2])) is None


@pytest.mark.parametrize("codec", list(FEED))
def test_no_more_memory_is_taken_than_the_bound(codec: int) -> None:
    """600 MiB in some kB are refused by a process that may take a few dozen MiB more; aiokafka would take them all."""
    data = huge(codec, 600)
    assert len(data) < INTAKE.max_message * 2
    with bounded(memory_bytes=4 * UNPACKED_BYTES_MAX):
        assert too_large(data) is not None
        with pytest.raises((MemoryError, OSError)):
            bytearray(600 * MIB)  # the bound holds


def test_a_control_batch_and_an_old_format_are_left_alone() -> None:
    """Transaction markers are the broker's own; what is no batch of today is not guessed at."""
    data = bytearray(batch(ZSTD, bytes(UNPACKED_BYTES_MAX * 2)))
    assert too_large(bytes(data)) is not None
    data[22] |= 0x20
    assert too_large(bytes(data)) is None
    data[22] &= 0x0F
    data[16] = 1
    assert too_large(bytes(data)) is None
    assert too_large(b"") is None


@pytest.mark.parametrize("codec", CODECS)
def test_what_cannot_be_unpacked_is_left_to_the_reader(codec: int) -> None:
    """Damaged bytes raise nothing here, whatever they are: a broker lets none in, and the reader says what is wrong."""
    valid = batch(codec, b"value" * 100_000)
    chance = random.Random(codec)
    for _ in range(200):
        damaged = valid[:61] + mutate.damaged(chance, valid[61:])
        assert isinstance(too_large(damaged, bytes_max=MIB), TooLarge | None)


def test_aiokafka_reads_what_is_within_the_bound() -> None:
    """The judgement is on the very bytes that the consumer then reads: same header, same records."""
    data = batch(LZ4, b"one", b"two")
    assert too_large(data) is None
    read = MemoryRecords(data).next_batch()
    assert read is not None
    assert [record.value for record in read] == [b"one", b"two"]


def test_a_record_of_such_a_batch_is_refused_by_its_own_reason() -> None:
    """Its place is kept by a marker, and its dead letter says that it was too large, not that it was empty."""
    with pytest.raises(LimitExceeded, match="unpacks") as caught:
        cloudevent.read(None, None, ((NOT_UNPACKED_HEADER, b"1"),))
    assert caught.value.field == "batch"


class _Place:
    """Where a partition is read, as aiokafka keeps it."""

    paused = False
    position = 0

    def consumed_to(self, position: int) -> None:
        """Go on."""
        self.position = position


def test_batches_that_unpack_to_much_are_handed_on_one_at_a_time() -> None:
    """Each is within its bound, and a fetch has hundreds: aiokafka unpacks as many records as it is asked for."""
    sizes = (3 * MIB, 3 * MIB, 10, 10, 3 * MIB)
    data = b"".join(at.to_bytes(8, "big") + batch(ZSTD, bytes(size))[8:] for at, size in enumerate(sizes))
    tp, place = TopicPartition("a", 0), _Place()
    records = PartitionRecords(tp, header_names.TolerantRecords(data), [], 0, None, None, False, READ_COMMITTED)
    assignment = SimpleNamespace(active=True, state_value=lambda _: place)
    result = header_names.BoundedResult(tp, assignment=assignment, partition_records=records, backoff=0)
    taken = []
    while result.has_more():
        taken.append([record.offset for record in result.getall(500)])
    assert (taken, place.position) == ([[0], [1], [2, 3, 4], []], len(sizes))
