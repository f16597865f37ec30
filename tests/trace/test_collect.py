"""Reading the audit for one id: which partitions, how often, and how far."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.gate.build import PARTITION, RING
from tests.trace.audit import SOON_MS, Gate
from tests.trace.test_show import shown_lives

from memsluice.envelope.keys import Keyring, Purpose
from memsluice.events.names import EventType
from memsluice.events.records import Output, Record
from memsluice.operations.trace.beginnings import Beginnings
from memsluice.operations.trace.collect import trace
from memsluice.operations.trace.life import EntryStanding
from memsluice.operations.trace.opening import as_data, not_found
from memsluice.readers.local import LocalTopic
from memsluice.runtimes.embedded import LocalLog
from memsluice.topics.names import AUDIT

SEALLESS = Keyring(key for key in RING if key.purpose is not Purpose.SEAL)


class Counted(LocalTopic):
    """A local audit that notes which partitions were read, and how many records of them."""

    def __init__(self, log: LocalLog) -> None:
        super().__init__(log, name="memory")
        self.reads: list[list[int]] = []

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Read on, and count."""
        self.reads.append([partition, 0])
        for record in super().read(partition, from_offset):
            self.reads[-1][1] += 1
            yield record


@pytest.fixture
def topic() -> Iterator[Counted]:
    """An audit topic: a session that saw a page, what was written after it, and much else."""
    gate, log = Gate(), LocalLog(":memory:", durable=False)
    gate.see("runtime", EventType.OBSERVATION, origin="open")
    gate.see("runtime", EventType.OBSERVATION, origin="web")
    gate.write("agent", id="note")
    for _ in range(5):
        gate.write()
    with log.transaction():
        for record in gate.audit:
            log.put(Output(AUDIT, PARTITION, record.key, record.value, record.headers), record.timestamp_ms)
    yield Counted(log)
    log.close()


def test_a_tenant_is_one_partition_and_nobody_s_all(topic: Counted) -> None:
    """Naming the tenant reads its partition alone; without it every partition is read, and said so."""
    found = trace(topic, RING, "note", "acme", 8)
    assert (found.partitions, topic.reads[0], found.read) == ((PARTITION,), [PARTITION, 8], 8)
    topic.reads.clear()
    assert trace(topic, RING, "e0", None, 8).partitions == tuple(range(8))
    assert [partition for partition, _ in topic.reads] == list(range(8))


def test_what_tainted_it_is_read_up_to_the_entry_and_no_further(topic: Counted) -> None:
    """The second look goes through the one partition, ends at the entry's own record, and finds the observation."""
    found = trace(topic, RING, "note", "acme", 8)
    assert [life.standing(SOON_MS) for life in found.lives] == [EntryStanding.EXTERNAL]
    assert list(found.ancestors) == [("acme", "e1")]
    assert topic.reads[1:] == [[PARTITION, 3]]


def test_laundering_is_followed_back_to_where_it_began() -> None:
    """A page, what was written after it, what was derived from that in a clean session: all of it, level by level."""
    gate, log = Gate(), LocalLog(":memory:", durable=False)
    gate.see("runtime", EventType.OBSERVATION, origin="open")
    gate.see("runtime", EventType.OBSERVATION, origin="web")
    gate.write("agent", id="copied")
    gate.see("runtime", EventType.OBSERVATION, origin="open", session="clean")
    gate.write("agent", id="derived", session="clean", parents=["copied"])
    gate.write("agent", id="again", session="clean", parents=["derived", "copied", "lost"])
    with log.transaction():
        for record in gate.audit:
            log.put(Output(AUDIT, PARTITION, record.key, record.value, record.headers), record.timestamp_ms)
    topic = Counted(log)
    found = trace(topic, RING, "again", "acme", 8)
    assert {name for _, name in found.ancestors} == {"derived", "copied", "e1"}
    assert [many for _, many in topic.reads] == [6, 6, 5]
    told = shown_lives(found.lives, found.ancestors)
    log.close()
    assert told.count("its session observed a web page: e1") == 1
    assert told.index("declared parent, tainted itself: derived") < told.index("its session observed a web page: e1")


def test_an_untainted_entry_needs_no_second_look(topic: Counted) -> None:
    """The audit is read once where nothing tainted."""
    trace(topic, RING, "e0", "acme", 8)
    assert len(topic.reads) == 1


def test_what_nobody_knows_is_nothing(topic: Counted) -> None:
    """No life, and how much was looked through."""
    found = trace(topic, RING, "nobody", None, 8)
    assert (found.lives, found.ancestors, found.read) == ([], {}, 8)


def test_a_shortened_id_is_told_the_whole_ones_that_begin_so() -> None:
    """An id as a log cut it finds no event, but the hint names those that begin so, five at most, of the tenant that is
    looked at alone and only where the verdict's seal holds; three letters and a whole id give none."""
    gate = Gate()
    for number in range(7):
        gate.write(id=f"write-{number}")
    for ring, tenant, asked, begun in (
        (RING, "acme", "writ", 5), (RING, None, "write-3", 0), (RING, None, "wri", 0), (RING, "globex", "writ", 0),
        (SEALLESS, None, "writ", 0),
    ):  # fmt: skip
        longer = Beginnings(ring, asked, tenant)
        for record in gate.audit:
            longer.take(record)
        assert len(longer.found) == begun, asked


def test_a_header_names_no_id_that_its_verdict_does_not() -> None:
    """No seal covers a header: where it names another event than the verdict behind it, nothing is hinted."""
    gate = Gate()
    gate.write(id="write-1")
    (record,) = gate.audit
    headers = [(name, b"order-1" if value == b"write-1" else value) for name, value in record.headers]
    assert headers != list(record.headers)
    longer = Beginnings(RING, "order")
    longer.take(replace(record, headers=tuple(headers)))
    assert not longer.found


def test_the_hint_is_in_the_words_and_the_data() -> None:
    """``trace`` of a shortened id says the whole ones, in words and in JSON; of an id that is there it says none."""
    gate, log = Gate(), LocalLog(":memory:", durable=False)
    gate.write(id="order-1")
    gate.write(id="order-12")
    with log.transaction():
        for record in gate.audit:
            log.put(Output(AUDIT, PARTITION, record.key, record.value, record.headers), record.timestamp_ms)
    topic = LocalTopic(log, name="memory")
    shortened, whole = (trace(topic, RING, asked, "acme", 8) for asked in ("order", "order-1"))
    assert "these begin so: order-1, order-12." in not_found(shortened, "order", "acme", "memory")
    assert as_data(shortened, "order", "memory", SOON_MS)["begin_so"] == ["order-1", "order-12"]
    assert (whole.begin_so, len(whole.lives)) == ((), 1)
    log.close()
