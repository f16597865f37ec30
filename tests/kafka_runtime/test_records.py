"""What travels through a stage arrives as it was sent."""

import json
import os
import subprocess
import sys

import pytest

from memsluice.events.records import Record
from memsluice.runtimes.kafka.worker import EXIT_OK
from memsluice.stages.dead_letter import original
from memsluice.topics.names import DEAD_LETTER, EVENTS
from memsluice.topics.spec import load_topics

from .harness import HANG_S, HERE, Lab

pytestmark = pytest.mark.stack

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LARGE = 4 * 1024 * 1024


def test_headers_nulls_and_sizes_survive(lab: Lab) -> None:
    """Repeated headers in order, headers without value, no key, no value, neither, and 4 MiB: all pass unchanged."""
    lab.prepare(1)
    sent = [
        Record(lab.source, 0, 0, b"k", b"v", (("h", b"1"), ("g", b""), ("h", b"2"), ("h", None))),
        Record(lab.source, 0, 1, None, b"no key"),
        Record(lab.source, 0, 2, b"no value", None, (("h", b"1"),)),
        Record(lab.source, 0, 3, None, None),
        Record(lab.source, 0, 4, b"", b""),
        Record(lab.source, 0, 5, b"large", bytes(LARGE)),
        Record(lab.source, 0, 6, b"\xff\x00", b"\xfe" * 10, (("schlüssel", b"\xff"),)),
    ]
    lab.send(sent)
    worker = lab.start(lab.stage("Stamp", "batch"))
    lab.until(lambda: lab.total(lab.target) == len(sent), "all outputs")
    assert worker.stop() == EXIT_OK
    got = lab.read(lab.target)
    assert [(r.key, r.value, r.headers[:-1]) for r in got] == [(r.key, r.value, r.headers) for r in sent]
    assert [r.headers[-1] for r in got] == [("position", f"{lab.source}/0/{i}".encode()) for i in range(len(sent))]


def test_every_codec_is_read(lab: Lab) -> None:
    """A producer may compress as it likes; none of Kafka's codecs ends the worker."""
    lab.prepare(1)
    for codec in CODECS:
        lab.send(
            [Record(lab.source, 0, 0, codec.encode(), b"text " * 200 + b"%d" % i) for i in range(20)],
            **{"compression.type": codec, "linger.ms": 50},
        )
    worker = lab.start(lab.stage("Stamp", "batch"))
    lab.until(lambda: lab.total(lab.target) == 20 * len(CODECS), "all outputs")
    assert worker.stop() == EXIT_OK
    assert [r.key for r in lab.read(lab.target)] == [codec.encode() for codec in CODECS for _ in range(20)]


def test_what_compression_let_past_the_limit_becomes_dead_letters(lab: Lab) -> None:
    """The intake's limit bounds the compressed batch. Zeros of 6 and 14 MB arrive, and their dead letters fit."""
    limits = {topic.name: str(topic.spec.max_message) for topic in load_topics()}
    lab.create({lab.source: 1}, **{"max.message.bytes": limits[EVENTS]})
    lab.create({lab.target: 1}, **{"max.message.bytes": limits[DEAD_LETTER]})
    sent = []
    for codec in ("gzip", "zstd"):
        for size in (6_000_000, 14_000_000):
            record = Record(lab.source, 0, 0, b"k", bytes(size), (("h", codec.encode()), ("h", None)))
            after = Record(lab.source, 0, 0, None, b"small")
            lab.send([record, after], **{"compression.type": codec, "message.max.bytes": 64_000_000})
            sent += [record, after]
    worker = lab.start(lab.stage("Letters", "batch"))
    parts_of = {6_000_000: 3, 14_000_000: 7, len(b"small"): 1}
    lab.until(lambda: lab.total(lab.target) == sum(parts_of[len(r.value or b"")] for r in sent), "all dead letters")
    assert worker.stop() == EXIT_OK
    parts: dict[int, list[Record]] = {}
    for part in lab.read(lab.target):
        parts.setdefault(json.loads(part.headers[-1][1] or b"")["offset"], []).append(part)
    letters = [original((p.key, p.value, p.headers) for p in parts[offset]) for offset in range(len(sent))]
    assert letters == [(r.key, r.value, r.headers) for r in sent]


def test_the_stage_sees_the_log_append_time(lab: Lab) -> None:
    """The timestamp is the broker's, in milliseconds, and not the producer's."""
    lab.prepare(1)
    lab.fill(5)
    worker = lab.start(lab.stage("Clock", "batch"))
    lab.until(lambda: lab.total(lab.target) == 5, "all outputs")
    assert worker.stop() == EXIT_OK
    assert [int(r.value or b"") for r in lab.read(lab.target)] == [r.timestamp_ms for r in lab.read(lab.source)]


def test_two_inputs_keep_the_order_of_each_partition(lab: Lab) -> None:
    """A stage with two intake topics gets each of their partitions in order, and commits both."""
    lab.prepare(2)
    other = f"{lab.source}-2"
    lab.create({other: 2})
    lab.send(Record(topic, i % 2, 0, b"k", b"%d" % i) for i in range(300) for topic in (lab.source, other))
    worker = lab.start(lab.stage("Stamp", "batch", inputs=[lab.source, other]))
    lab.until(lambda: lab.total(lab.target) == 600, "all outputs")
    assert worker.stop() == EXIT_OK
    seen: dict[tuple[str, str], list[int]] = {}
    for record in lab.read(lab.target):
        topic, partition, offset = (record.headers[-1][1] or b"").decode().split("/")
        seen.setdefault((topic, partition), []).append(int(offset))
    assert seen == {(topic, p): list(range(150)) for topic in (lab.source, other) for p in ("0", "1")}


def test_state_rows_are_read_as_they_were_written(lab: Lab) -> None:
    """Reads and prefix scans see every earlier change at once: stored, unconfirmed and deleted rows alike."""
    lab.prepare(1)
    lab.fill(300)
    worker = lab.start(lab.stage("Shelf", "stateful"))
    lab.until(lambda: lab.total(lab.target) == 300, "all outputs")
    assert worker.stop() == EXIT_OK
    shelf: dict[bytes, bytes] = {}
    for i, record in enumerate(lab.read(lab.target)):
        shelf[b"a/%03d" % (i % 40)] = b"%d" % i
        if i % 3 == 0:
            shelf.pop(b"a/%03d" % (i * 7 % 40), None)
        assert record.value == b",".join(k + b"=" + v for k, v in sorted(shelf.items())[:25])


def test_a_header_name_that_is_no_text_does_not_end_the_worker(lab: Lab) -> None:
    """Such a record from any producer would end every worker for ever; it passes like any other, its name escaped."""
    lab.prepare(1)
    lab.connection.save(lab.folder / "connection.json")
    script = HERE.parent / "client" / "odd_header.py"
    command = [sys.executable, str(script), str(lab.folder / "connection.json"), lab.source, "0", "zstd"]
    subprocess.run(command, check=True, env={**os.environ, "AIOKAFKA_NO_EXTENSIONS": "1"}, timeout=HANG_S)
    worker = lab.start(lab.stage("Stamp", "batch"))
    lab.until(lambda: lab.total(lab.target) == 3, "all outputs")
    assert worker.stop() == EXIT_OK
    got = lab.read(lab.target)
    assert [r.value for r in got] == [b"before", b"odd", b"after"]
    assert got[1].headers[0] == ("\\xff\\xfeX", b"1")


def test_two_stages_share_a_process(lab: Lab) -> None:
    """One worker runs a batch stage and, on its output, a stateful one; each has its own group and commits."""
    lab.prepare(2)
    between = f"{lab.source}-between"
    lab.create({between: 2})
    lab.fill(300, 2)
    worker = lab.start(
        lab.stage("Stamp", "batch", outputs=[between], app_id=f"{lab.group}-first"),
        lab.stage("Count", "stateful", inputs=[between], transactional=[between]),
    )
    lab.until(lambda: lab.total(lab.target) == 300, "all outputs")
    assert worker.stop() == EXIT_OK
    assert sum(lab.committed(f"{lab.group}-first").values()) == 300
    assert sorted({r.key for r in lab.read(lab.target)}) == [b"k%d" % n for n in range(7)]
