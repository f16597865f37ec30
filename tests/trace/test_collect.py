"""Reading the audit for one id: which partitions, how often, and how far."""

from collections.abc import Iterator

import pytest
from tests.gate.build import PARTITION, RING
from tests.trace.audit import SOON_MS, Gate
from tests.trace.test_show import shown_lives

from memsluice.events.names import EventType
from memsluice.events.records import Output, Record
from memsluice.operations.trace.collect import trace
from memsluice.operations.trace.life import EntryStanding
from memsluice.readers.local import LocalTopic
from memsluice.runtimes.embedded import LocalLog
from memsluice.topics.names import AUDIT


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
