"""What a reviewer signs about a held write, and what the gate answered. Pure but for the waiting, whose clock is given.

A command holds for VALID_S: long enough to pass a busy pipeline, short enough that nobody finds it useful later.
"""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from memsluice.envelope.keys import Keyring
from memsluice.errors import ConfigError
from memsluice.events.limits import HELD_CHARS_MAX
from memsluice.events.models import Action, Command
from memsluice.events.partition import partition_of
from memsluice.gate.review import OFFSET_PARAMETER
from memsluice.inspect.collect import AuditTopic
from memsluice.producer import requests
from memsluice.quarantine.entries import Entry, Ruled, read_ruling
from memsluice.stages.headers import EVENT_ID
from memsluice.stages.records import Record

VALID_S = 900
POLL_S, PAUSE_S = 0.2, 0.02


def order(
    entry: Entry,
    action: Action,
    command_id: str,
    now: datetime,
    reason: str = "",
    *,
    valid: timedelta = timedelta(seconds=VALID_S),
    parameters: Mapping[str, str] | None = None,
) -> Command:
    """Return the command about an entry, which was read with its content: bound to its digest, void after ``valid``.

    Raises ConfigError for a write too large to be carried, MalformedEvent or LimitExceeded for the reason.
    """
    carries = action in (Action.RELEASE, Action.REPLAY)
    if carries and len(entry.sealed) > HELD_CHARS_MAX:
        raise ConfigError(
            f"a {action.value} carries the write, and this one has {len(entry.sealed)} characters once sealed, at most "
            f"{HELD_CHARS_MAX} fit: it can only be rejected"
        )
    return requests.command(
        command_id,
        now,
        entry.tenant,
        action,
        entry.event_id,
        now + valid,
        digest=entry.digest,
        reason=reason,
        parameters={**(parameters or {}), **({OFFSET_PARAMETER: str(entry.offset)} if entry.repeated_id else {})},
        held=entry.sealed if carries else None,
    )


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


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gate made of a command; ``ruled`` is None where the command's id was answered before: a repetition."""

    command: Command
    ruled: Ruled | None


def answers(
    audit: FollowedTopic,
    keyring: Keyring,
    commands: Iterable[Command],
    since: Iterable[Bookmark],
    wait_s: float,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Answer]:
    """Return the answers to commands by their ids: of all, or of those that the audit has within ``wait_s`` seconds.

    ``since`` are bookmarks of the commands' partitions. Raises StoreUnavailable where the audit cannot be read,
    SealError where an answer does not verify.
    """
    waiting = {command.id.encode(): command for command in commands}
    found = dict[str, Answer]()

    def take(record: Record) -> None:
        command = waiting.get(dict(record.headers).get(EVENT_ID) or b"")
        if command is not None and record.key == command.tenant.encode():
            found.setdefault(command.id, Answer(command, read_ruling(keyring, record)))

    follow([(audit, since, take)], lambda: len(found) == len(waiting), wait_s, monotonic=monotonic, sleep=sleep)
    return found


def follow(
    sources: Sequence[tuple[FollowedTopic, Iterable[Bookmark], Callable[[Record], None]]],
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
