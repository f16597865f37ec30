"""What a reviewer signs about a held write, and what the gate answered. Pure but for the waiting, whose clock is given.

A command holds for VALID_S: long enough to pass a busy pipeline, short enough that nobody finds it useful later.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from memsluice.envelope.keys import Keyring
from memsluice.envelope.seals import open_
from memsluice.errors import ConfigError, SealError
from memsluice.events.limits import HELD_CHARS_MAX
from memsluice.events.models import Action, Command
from memsluice.events.names import VERDICT
from memsluice.events.partition import partition_of
from memsluice.gate.review import OFFSET_PARAMETER
from memsluice.inspect.collect import AuditTopic
from memsluice.producer import requests
from memsluice.quarantine.entries import Entry, Ruled, read_ruling
from memsluice.stages.headers import EVENT_ID

VALID_S = 900
POLL_S = 0.2


def order(entry: Entry, action: Action, command_id: str, now: datetime, reason: str = "") -> Command:
    """Return the command about an entry, which was read with its content: bound to its digest, void after VALID_S.

    Raises ConfigError for a write too large to be carried, MalformedEvent or LimitExceeded for the reason.
    """
    if action is Action.RELEASE and len(entry.sealed) > HELD_CHARS_MAX:
        raise ConfigError(
            f"a release carries the write, and this one has {len(entry.sealed)} characters once sealed, at most "
            f"{HELD_CHARS_MAX} fit: it can only be rejected"
        )
    return requests.command(
        command_id,
        now,
        entry.tenant,
        action,
        entry.event_id,
        now + timedelta(seconds=VALID_S),
        digest=entry.digest,
        reason=reason,
        parameters={OFFSET_PARAMETER: str(entry.offset)} if entry.repeated_id else {},
        held=entry.sealed if action is Action.RELEASE else None,
    )


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


def answer(
    audit: AuditTopic,
    keyring: Keyring,
    command: Command,
    since: Bookmark,
    wait_s: float,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Ruled | None:
    """Return what the gate made of a command, or None where the audit does not say within ``wait_s`` seconds.

    Raises StoreUnavailable where the audit cannot be read, SealError where the answer does not verify.
    """
    deadline, offset = monotonic() + wait_s, since.offset
    while True:
        for record in audit.read(since.partition, offset):
            offset = record.offset + 1
            if (EVENT_ID, command.id.encode()) in record.headers and record.key == command.tenant.encode():
                ruled = read_ruling(keyring, record)
                if ruled is None:  # a duplicate: an id is made anew for each command
                    told = open_(keyring, command.tenant, VERDICT, record.value or b"")
                    raise SealError(f"the audit answers {told['decision']} to a new command")
                return ruled
        if monotonic() >= deadline:
            return None
        sleep(POLL_S)
