"""Waiting for what the gate made of commands: their audit records, found by the ids of the events they are about."""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from memsluice.events.models import Command
from memsluice.events.partition import partition_of
from memsluice.inspect.collect import AuditTopic
from memsluice.stages.headers import EVENT_ID
from memsluice.stages.records import Record

POLL_S, PAUSE_S = 0.2, 0.02


class FollowedTopic(AuditTopic, Protocol):
    """An audit topic that can be entered at a time, and followed while it grows."""

    def at(self, partition: int, since_ms: int) -> int:
        """Return an offset before which nothing was appended at or after a time (Unix ms). Raises StoreUnavailable."""

    def follow(self, offsets: Mapping[int, int], timeout_s: float) -> list[Record]:
        """Return what partitions hold from these offsets on, waiting at most so long. Raises StoreUnavailable."""


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Where a tenant's audit ended before a command was published: its answer lies behind."""

    partition: int
    offset: int

    @classmethod
    def at(cls, audit: AuditTopic, tenant: str, partitions: int) -> "Bookmark":
        """Return the present end. Raises StoreUnavailable."""
        partition = partition_of(tenant, partitions)
        return cls(partition, audit.end(partition))


def heard(
    audit: FollowedTopic,
    commands: Iterable[Command],
    since: Iterable[Bookmark],
    wait_s: float,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Record]:
    """Return the first audit record of each command by its id: of all, or of those that come within ``wait_s`` seconds.

    ``since`` are bookmarks of the commands' partitions. Nothing is verified here. Raises StoreUnavailable.
    """
    waiting = {command.id.encode(): command for command in commands}
    found, offsets = dict[str, Record](), {mark.partition: mark.offset for mark in since}
    deadline = monotonic() + wait_s
    while True:
        records = audit.follow(offsets, POLL_S)
        for record in records:
            offsets[record.partition] = record.offset + 1
            command = waiting.get(dict(record.headers).get(EVENT_ID) or b"")
            if command is not None and record.key == command.tenant.encode():
                found.setdefault(command.id, record)
        if len(found) == len(waiting) or monotonic() >= deadline:
            return found
        if not records:
            sleep(PAUSE_S)
