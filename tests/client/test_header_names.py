"""A record whose header name is no UTF-8 stops nobody: aiokafka alone would never get past it."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.consumer import fetcher
from aiokafka.record.memory_records import MemoryRecords
from tests.patience import HANG_S

from memsluice.readers.kafka import KafkaTopic
from memsluice.runtimes.kafka import header_names
from memsluice.topics.names import QUARANTINE, USER_ADMIN

PARTITION = 7
OFTEN = 40


def publish(stack: Any, folder: Path, compression: str) -> int:
    """Publish three records, the middle one odd, by a client that allows it; return the first one's offset."""
    file = folder / "connection.json"
    stack.connection.save(file)
    done = subprocess.run(
        [
            sys.executable,
            str(Path(__file__).with_name("odd_header.py")),
            str(file),
            QUARANTINE,
            str(PARTITION),
            compression,
        ],
        env={**os.environ, "AIOKAFKA_NO_EXTENSIONS": "1"},
        capture_output=True,
        text=True,
        timeout=HANG_S,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


async def consume(stack: Any, offset: int, count: int) -> list[Any]:
    """Return the next records from an offset on, as a stage's consumer fetches them."""
    consumer = AIOKafkaConsumer(**stack.connection.aiokafka("admin"))
    await consumer.start()
    try:
        partition = TopicPartition(QUARANTINE, PARTITION)
        consumer.assign([partition])
        consumer.seek(partition, offset)
        return [await asyncio.wait_for(consumer.getone(), HANG_S) for _ in range(count)]
    finally:
        await consumer.stop()


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_header_name_that_is_no_text_stops_no_partition(
    stack: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: str
) -> None:
    """The odd record and those after it are read, its name escaped; without the cure the same fetch fails for ever."""
    offset = publish(stack, tmp_path, compression)
    monkeypatch.setattr(fetcher, "MemoryRecords", MemoryRecords)
    with pytest.raises(UnicodeDecodeError):
        asyncio.run(consume(stack, offset, 3))
    header_names.install()
    records = asyncio.run(consume(stack, offset, 3))
    assert [record.value for record in records] == [b"before", b"odd", b"after"]
    assert [record.offset for record in records] == [offset, offset + 1, offset + 2]
    assert records[1].headers == (("\\xff\\xfeX", b"1"), ("y", None))
    assert records[1].timestamp == pytest.approx(records[0].timestamp, abs=HANG_S * 1000)


@pytest.mark.stack
@pytest.mark.usefixtures("unhurried")
def test_an_odd_header_name_stops_no_command_that_reads_the_topic(stack: Any, tmp_path: Path) -> None:
    """Lists and traces read on behind it, and show what lies there: librdkafka's client fails on its headers.

    Often enough for the interpreter to specialise the call, after which the client's error would show a call later.
    """
    offset = publish(stack, tmp_path, "none")
    reader = KafkaTopic.of(stack.connection, USER_ADMIN, QUARANTINE)
    for _ in range(OFTEN):
        records = list(reader.read(PARTITION, offset))
        assert [record.value for record in records] == [b"before", b"odd", b"after"]
        assert records[1].headers == ()
    reader.close()
