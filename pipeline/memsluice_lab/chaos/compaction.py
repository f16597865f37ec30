"""Compaction now, and not in a day: what a check finds must hold of what the cleaner leaves, too.

A record may hide a fault only until the log is compacted, because the cleaner keeps the last record of a key, whatever
it says. So before a check the compacted topics' segments are closed, everything closed counts as dirty, tombstones are
kept for no time, and the check waits until the cleaner's own checkpoint is past what was there.
"""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

from memsluice.deployment.layout import Layout
from memsluice.devstack.kafka import NAME
from memsluice.errors import StackError
from memsluice.topics import names
from memsluice_lab.chaos.following import ASK_S, wait
from memsluice_lab.figures.bed import Bed

TOPICS = (names.SCREEN_CHANGELOG, names.STORE)
ROLLED = b"~rolled"
"""Key of the tombstones that close a segment: no row and no object has it."""
EAGER = {
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.001",
    "delete.retention.ms": "0",
    "max.compaction.lag.ms": "100",
}
NODE = "1"
"""The local stack has one broker."""
BROKER = {"log.cleaner.backoff.ms": "200"}
CLEANED_S_MAX = 90
SEGMENT_S = 0.3
CHECKPOINT = "cleaner-offset-checkpoint"


@contextmanager
def eager(bed: Bed, topics: Iterable[str] = TOPICS) -> Iterator[None]:
    """Let the cleaner work at once for as long as this lasts; afterwards the topics are as their files say."""
    admin = AdminClient({**bed.connection.confluent(names.USER_ADMIN), "log_level": 0})
    _set(admin, ConfigResource.Type.BROKER, NODE, BROKER)
    for topic in topics:
        _set(admin, ConfigResource.Type.TOPIC, topic, EAGER)
    try:
        yield
    finally:
        from memsluice.topics.plan import apply
        from memsluice.topics.spec import load

        apply(admin, load())
        _set(admin, ConfigResource.Type.BROKER, NODE, dict.fromkeys(BROKER, ""))


def force(bed: Bed, topics: Iterable[str] = TOPICS) -> None:
    """Have all that the topics hold now compacted, under :func:`eager`. Raises StackError where the cleaner does not.

    Each partition that holds anything gets two tombstones of no key's: the first closes the segment of what was there.
    """
    chosen = list(topics)
    goals = {(topic, number): end for topic in chosen for number, end in enumerate(bed.ends(topic)) if end > 0}
    for _ in range(2):
        time.sleep(SEGMENT_S)  # a segment is closed by the record that comes after its time
        producer = Producer({**bed.connection.confluent(names.USER_ADMIN), "acks": "all", "log_level": 0})
        for topic, number in goals:
            producer.produce(topic, key=ROLLED, value=None, partition=number)
        if producer.flush(ASK_S):
            raise StackError("the broker did not take the records that close a segment")
    checkpoint = Layout(bed.home).data / NAME / CHECKPOINT

    def cleaned() -> bool:
        stands = _read(checkpoint)
        return all(stands.get(where, 0) >= end for where, end in goals.items())

    if not wait(cleaned, CLEANED_S_MAX, 0.2):
        late = [where for where, end in goals.items() if _read(checkpoint).get(where, 0) < end]
        raise StackError(f"the cleaner did not get to {late} within {CLEANED_S_MAX} s")


def _read(checkpoint: Path) -> dict[tuple[str, int], int]:
    """Return how far the cleaner is: a version, a count, then a topic, a partition and an offset a line."""
    if not checkpoint.exists():
        return {}
    found = {}
    for line in checkpoint.read_text().splitlines()[2:]:
        topic, number, offset = line.split(" ")
        found[topic, int(number)] = int(offset)
    return found


def _set(admin: AdminClient, kind: ConfigResource.Type, name: str, settings: dict[str, str]) -> None:
    entries = [
        ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET if value else AlterConfigOpType.DELETE)
        for key, value in settings.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    for done in admin.incremental_alter_configs([resource]).values():
        done.result(ASK_S)
