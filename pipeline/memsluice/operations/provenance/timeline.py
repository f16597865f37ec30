"""What one session did, in the order of its tenant's audit. Pure but for the reading; bounded around one event."""

from collections import deque
from dataclasses import dataclass, field

from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Verdict
from memsluice.events.partition import partition_of
from memsluice.operations.trace.verdicts import read
from memsluice.readers.base import TopicReader

BEFORE_MAX, AFTER_MAX = 100, 50
"""Verdicts that are kept: the last before the event that is asked for, and the first after it."""


@dataclass(slots=True)
class Timeline:
    """Verdicts of a session around an event, oldest first. ``left_out`` counts further ones, on both sides."""

    session: str
    about: str
    before: deque[Verdict] = field(default_factory=deque)
    after: list[Verdict] = field(default_factory=list)
    left_out: int = 0
    read: int = 0
    unverified: int = 0

    def take(self, verdict: Verdict) -> None:
        """Learn from one verdict, in the order of the audit."""
        if verdict.session != self.session and verdict.target != self.about:
            return
        if self.after or verdict.event_id == self.about:
            if len(self.after) <= AFTER_MAX:
                self.after.append(verdict)
            else:
                self.left_out += 1
            return
        self.before.append(verdict)
        if len(self.before) > BEFORE_MAX:
            self.before.popleft()
            self.left_out += 1

    @property
    def verdicts(self) -> list[Verdict]:
        """What is kept, oldest first."""
        return [*self.before, *self.after]


def timeline(audit: TopicReader, keyring: Keyring, tenant: str, session: str, about: str, partitions: int) -> Timeline:
    """Return what a session did around an event (its id), and the commands about it. Raises BrokerUnavailable."""
    found = Timeline(session, about)
    for record in audit.read(partition_of(tenant, partitions)):
        if record.key != tenant.encode():
            continue
        found.read += 1
        verdict = read(keyring, record)
        if verdict is None:
            found.unverified += 1
        else:
            found.take(verdict)
    return found
