"""What the deployment says while it runs: verdicts as they come, and where its topics and groups stand."""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

import orjson
from confluent_kafka import ConsumerGroupState, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from memsluice.envelope.records import verdict_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.events.records import Record
from memsluice.operations.monitor.lag import committed_of, offsets_of
from memsluice.readers.kafka import KafkaTopic
from memsluice.topics import names
from memsluice_lab.figures.bed import GROUPS as STAGE_GROUPS
from memsluice_lab.figures.bed import STAGES, Bed, Place

COMMITTED = {"isolation.level": "read_committed"}
POLL_S = 0.02
ASK_S = 15
SILENT_S_MAX = 60


class Verdicts:
    """Every intake place that has a verdict or a dead letter, from when this was made on; committed records only."""

    def __init__(self, bed: Bed) -> None:
        self._keyring = bed.store.keyring()
        settings = {**bed.connection.confluent(names.USER_ADMIN), **COMMITTED}
        self._topics = {topic: KafkaTopic(settings, topic=topic) for topic in (names.AUDIT, names.DEAD_LETTER)}
        self._next = {
            topic: {number: reader.end(number) for number in range(names.PARTITIONS)}
            for topic, reader in self._topics.items()
        }
        self.verdicts: dict[Place, Verdict] = {}
        self.dead: set[Place] = set()

    def poll(self) -> int:
        """Take what is new; return how many places are answered."""
        for topic, reader in self._topics.items():
            while found := reader.follow(self._next[topic], POLL_S):
                for record in found:
                    self._next[topic][record.partition] = record.offset + 1
                    self._take(record)
        return len(self.verdicts) + len(self.dead)

    def _take(self, record: Record) -> None:
        if record.topic == names.AUDIT:
            verdict = verdict_from_bytes(self._keyring, (record.key or b"").decode(), record.value or b"")
            self.verdicts.setdefault(verdict.intake, verdict)
        elif (place := dead_place(record)) is not None:
            self.dead.add(place)

    def missing(self, places: Iterable[Place]) -> set[Place]:
        """Return which places have no answer yet."""
        self.poll()
        return {place for place in places if place not in self.verdicts and place not in self.dead}

    def until(self, places: Collection[Place], seconds_max: float, go_on: Callable[[], bool] = lambda: True) -> bool:
        """Wait until all places are answered; False after so long, or once ``go_on`` says no."""
        deadline = time.monotonic() + seconds_max
        while self.missing(places):
            if time.monotonic() > deadline or not go_on():
                return False
        return True

    def close(self) -> None:
        """Leave the broker."""
        for reader in self._topics.values():
            reader.close()


def dead_place(record: Record) -> Place | None:
    """Return where a dead letter's original lies, by the header that the gate appended; None for a later part."""
    name, why = record.headers[-1] if record.headers else ("", None)
    if name != DEAD_LETTER_HEADER or why is None:
        return None
    said = orjson.loads(why)
    return str(said["topic"]), int(said["partition"]), int(said["offset"])


def members(bed: Bed, group: str) -> dict[str, set[int]]:
    """Return a group's members that have partitions, by replica, and which; none while it is rebalancing."""
    found = _described(bed, group)
    if found is None or found.state != ConsumerGroupState.STABLE:
        return {}
    busy = (one for one in found.members if one.assignment and one.assignment.topic_partitions)
    return {_replica(one, group): {at.partition for at in one.assignment.topic_partitions} for one in busy}


def known(bed: Bed, group: str) -> set[str]:
    """Return a group's members by replica, with partitions or without."""
    found = _described(bed, group)
    return {_replica(one, group) for one in found.members} if found is not None else set()


def _described(bed: Bed, group: str) -> Any:
    """Return what the broker says of a group; None where it does not say it in time."""
    admin = AdminClient({**bed.connection.confluent(names.USER_ADMIN), "log_level": 0})
    try:
        return admin.describe_consumer_groups([group])[group].result(ASK_S)
    except (KafkaException, TimeoutError):
        return None


def _replica(member: Any, group: str) -> str:
    return str(member.client_id).removeprefix(f"{group}-")


def uncommitted(bed: Bed, stage: str) -> dict[int, int]:
    """Return how many records of each partition a stage has not committed (with a commit marker or two among them)."""
    group, topics = STAGE_GROUPS[STAGES.index(stage)]
    wanted = [TopicPartition(topic, number) for topic in topics for number in range(names.PARTITIONS)]
    committed = _committed(bed, group, wanted)
    found: dict[int, int] = dict.fromkeys(range(names.PARTITIONS), 0)
    for topic in topics:
        for number, end in enumerate(bed.ends(topic)):
            found[number] += end - max(committed.get((topic, number), 0), 0)
    return found


def _committed(bed: Bed, group: str, wanted: list[TopicPartition]) -> dict[tuple[str, int], int]:
    """Return a group's offsets, asked again where a broker that was stopped, or has much to do, was silent."""
    deadline = time.monotonic() + SILENT_S_MAX
    while True:
        asked = offsets_of({**bed.connection.confluent(names.USER_ADMIN), "log_level": 0}, group)
        try:
            return committed_of(asked, wanted)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        finally:
            asked.close()


def wait(done: Callable[[], Any], seconds_max: float, every_s: float = 0.1) -> bool:
    """Poll until something is true; False after so long."""
    deadline = time.monotonic() + seconds_max
    while not done():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True
