"""Waiting for what the gate made of commands: their audit records, found by the ids of the events they are about."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import verdict_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.events.headers import EVENT_ID
from memsluice.events.models import Command
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.readers.base import TopicReader

POLL_S, PAUSE_S = 0.2, 0.02


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Where a tenant's audit ended before a command was published: its answer lies behind."""

    partition: int
    offset: int

    @classmethod
    def at(cls, audit: TopicReader, tenant: str, partitions: int) -> "Bookmark":
        """Return the present end. Raises BrokerUnavailable."""
        partition = partition_of(tenant, partitions)
        return cls(partition, audit.end(partition))


def heard(
    audit: TopicReader,
    commands: Iterable[Command],
    since: Iterable[Bookmark],
    wait_s: float,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Record]:
    """Return the first audit record of each command by its id: of all, or of those that come within ``wait_s`` seconds.

    ``since`` are bookmarks of the commands' partitions. Nothing is verified here. Raises BrokerUnavailable.
    """
    waiting = {command.id.encode(): command for command in commands}
    found = dict[str, Record]()

    def take(record: Record) -> None:
        command = waiting.get(dict(record.headers).get(EVENT_ID) or b"")
        if command is not None and record.key == command.tenant.encode():
            found.setdefault(command.id, record)

    follow([(audit, since, take)], lambda: len(found) == len(waiting), wait_s, monotonic=monotonic, sleep=sleep)
    return found


def verified(keyring: Keyring, record: Record) -> Verdict:
    """Return an audit record's verdict. Raises SealError where its seal does not hold, or it is none."""
    return verdict_from_bytes(keyring, (record.key or b"").decode("utf-8", "replace"), record.value or b"")


def follow(
    sources: Sequence[tuple[TopicReader, Iterable[Bookmark], Callable[[Record], None]]],
    done: Callable[[], bool],
    wait_s: float,
    *,
    monotonic: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    """Give what topics hold behind bookmarks to their takers, as it comes, until all is done or the time is over."""
    deadline = monotonic() + wait_s
    positions = [(topic, {mark.partition: mark.offset for mark in since}, take) for topic, since, take in sources]
    while True:
        idle = True
        for topic, offsets, take in positions:
            for record in topic.follow(offsets, POLL_S):
                offsets[record.partition] = record.offset + 1
                take(record)
                idle = False
        if done() or monotonic() >= deadline:
            return
        if idle:
            sleep(PAUSE_S)
