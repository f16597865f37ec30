"""Every activation that the audit has, by tenant: what is in force, and the versions before. Read on, never anew."""

from collections import deque
from collections.abc import Set
from threading import Lock

from memsluice.envelope.keys import Keyring
from memsluice.errors import SealError
from memsluice.events.names import EVERYBODY
from memsluice.operations.policies.history import Activated, read_activation
from memsluice.operations.trace.equals import payload_of
from memsluice.readers.base import TopicReader
from memsluice.topics.names import PARTITIONS

VERSIONS_MAX = 20
"""Activations of one tenant that are kept: the latest."""
TENANTS_MAX = 10_000
NAMED = b"activation."


class Activations:
    """What one audit says of activations. Several threads may ask; one at a time reads on."""

    def __init__(self) -> None:
        self._found: dict[str, deque[Activated]] = {}
        self._next: dict[int, int] = {}
        self._reading = Lock()
        self.whole = True
        """Whether the audit still has its beginning: where it has not, a policy of then may be in force unseen."""
        self.left_out = 0

    def learn(self, audit: TopicReader, keyring: Keyring) -> None:
        """Take in what was appended since the last time. Raises BrokerUnavailable."""
        with self._reading:
            for partition in range(PARTITIONS):
                for record in audit.read(partition, self._next.get(partition, 0)):
                    if partition not in self._next:
                        self.whole = self.whole and record.offset == 0
                    self._next[partition] = record.offset + 1
                    if NAMED not in (payload_of(record) or b""):  # the cheap look: hardly any record is one
                        continue
                    try:
                        activated = read_activation(keyring, record)
                    except SealError:
                        continue
                    if activated is not None:
                        self._keep(activated)

    def _keep(self, one: Activated) -> None:
        if one.tenant not in self._found and len(self._found) >= TENANTS_MAX:
            self.left_out += 1
            return
        versions = self._found.setdefault(one.tenant, deque(maxlen=VERSIONS_MAX))
        if all(known.command_id != one.command_id for known in versions):  # everybody's is on every partition
            versions.append(one)

    def in_force(self, tenants: Set[str] | None) -> list[Activated]:
        """Return the activation in force for everybody, and those of tenants of their own; None: of all tenants."""
        latest = (versions[-1] for _, versions in sorted(self._found.items()))
        return [one for one in latest if one.text is not None and _seen(one, tenants)]

    def versions(self, tenants: Set[str] | None) -> list[Activated]:
        """Return the activations that have a text, the newest first, everybody's and those of these tenants."""
        every = (one for versions in self._found.values() for one in versions)
        shown = [one for one in every if one.text is not None and _seen(one, tenants)]
        return sorted(shown, key=lambda one: -one.at_ms)


def _seen(one: Activated, tenants: Set[str] | None) -> bool:
    return tenants is None or one.tenant == EVERYBODY or one.tenant in tenants
