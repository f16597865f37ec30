"""Compressed bombs on the real broker, by a producer that may write there: a worker reads on in bounded memory."""

from pathlib import Path
from typing import Any

import pytest
from tests.kafka_runtime.harness import Lab

from memsluice.events.names import NOT_UNPACKED_HEADER
from memsluice.events.records import Record
from memsluice.runtimes.kafka.worker import EXIT_OK
from memsluice.topics.names import EVENTS
from memsluice.topics.spec import load_topics

pytestmark = pytest.mark.stack

BOMB_BYTES = 500 * 1024 * 1024
GROWTH_KIB_MAX = 150 * 1024


@pytest.fixture
def lab(stack: Any, tmp_path: Path) -> Any:
    """Fresh topics, group and data folder."""
    corner = Lab(stack.connection, tmp_path)
    try:
        yield corner
    finally:
        corner.close()


def highest_kib(pid: int) -> int:
    """Return the most memory that a process has had so far."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


@pytest.mark.parametrize("codec", ["zstd", "gzip"])
def test_a_bomb_takes_no_more_memory_than_the_bound(lab: Lab, codec: str) -> None:
    """500 MiB in some hundred kB, which the broker lets in: every offset arrives, the bomb's without its bytes."""
    limit = next(str(topic.spec.max_message) for topic in load_topics() if topic.name == EVENTS)
    lab.create({lab.source: 1}, **{"max.message.bytes": limit})
    lab.create({lab.target: 1})
    lab.send([Record(lab.source, 0, 0, b"k", b"before")])
    worker = lab.start(lab.stage("Stamp", "batch"))
    lab.until(lambda: lab.total(lab.target) == 1, "the first output")
    before = highest_kib(worker.process.pid)
    lab.send(
        [Record(lab.source, 0, 0, b"k", bytes(BOMB_BYTES))],
        **{
            "compression.type": codec,
            "message.max.bytes": BOMB_BYTES + 10_000,
            "queue.buffering.max.kbytes": 2_000_000,
        },
    )
    lab.send([Record(lab.source, 0, 0, b"k", b"after")])
    lab.until(lambda: lab.total(lab.target) == 3, "all outputs")
    grown = highest_kib(worker.process.pid) - before
    assert worker.stop() == EXIT_OK
    first, bomb, last = lab.read(lab.target)
    assert (first.value, last.value) == (b"before", b"after")
    assert (bomb.key, bomb.value, bomb.headers[0][0]) == (None, None, NOT_UNPACKED_HEADER)
    assert grown < GROWTH_KIB_MAX
