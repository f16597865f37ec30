"""Where an operator puts policies in force: the running stack, or a home's embedded log."""

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.envelope.records import verdict_from_bytes
from memsluice.envelope.registry import Role
from memsluice.envelope.verdict import Verdict
from memsluice.errors import SealError
from memsluice.events.headers import EVENT_ID
from memsluice.events.models import Command
from memsluice.events.names import EVERYBODY
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.gate.commands.activation import APPROVALS
from memsluice.keystore.files import SigningCredential
from memsluice.keystore.store import KeyStore
from memsluice.operations.commands import desk as orders
from memsluice.operations.commands.answers import Bookmark, follow
from memsluice.operations.commands.signing import sign
from memsluice.readers.base import TopicReader
from memsluice.topics.names import PARTITIONS

Publish = Callable[[Command, Sequence[SigningCredential]], None]
"""Publishes a command signed by all of these, and returns once it is durable everywhere it belongs."""


@dataclass(frozen=True, slots=True)
class PolicyDesk:
    """``settle`` lets the stages work where nobody else does (embedded); on a broker the workers do."""

    name: str
    audit: TopicReader
    keys: KeyStore
    publish: Publish
    settle: Callable[[], None]

    def approvers(self, tenant: str, kids: Sequence[str], wanted: int = APPROVALS) -> list[SigningCredential]:
        """Return the operators' credentials that will sign; see :func:`memsluice.operations.commands.desk.signers`."""
        return orders.signers(self.keys, Role.OPERATOR, tenant, kids, wanted)

    def ends(self, tenant: str) -> dict[int, int]:
        """Return where the audit ends now, for every partition that a command for ``tenant`` goes to."""
        partitions = range(PARTITIONS) if tenant == EVERYBODY else (partition_of(tenant, PARTITIONS),)
        return {partition: self.audit.end(partition) for partition in partitions}

    def answered(
        self,
        command: Command,
        since: dict[int, int],
        wait_s: float,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> dict[int, Verdict]:
        """Return the verdicts on a command by partition, those that came within ``wait_s`` seconds.

        A record that does not verify is no answer. Raises BrokerUnavailable.
        """
        keyring, found = self.keys.keyring(), dict[int, Verdict]()

        def take(record: Record) -> None:
            if (EVENT_ID, command.id.encode()) not in record.headers or record.key != command.tenant.encode():
                return
            with suppress(SealError):
                verdict = verdict_from_bytes(keyring, command.tenant, record.value or b"")
                if verdict.event_id == command.id:
                    found.setdefault(record.partition, verdict)

        self.settle()
        marks = [Bookmark(partition, offset) for partition, offset in since.items()]
        follow([(self.audit, marks, take)], lambda: len(found) == len(since), wait_s, monotonic=monotonic, sleep=sleep)
        return found


def on_kafka(home: Path | None, closing: ExitStack) -> PolicyDesk:
    """Return the desk of a running stack, or of the deployment that the environment names. Raises ConfigError."""
    return _governing(orders.on_kafka(home, closing))


def embedded(home: Home, closing: ExitStack) -> PolicyDesk:
    """Return the desk of a home's embedded log. Raises ConfigError where there is none."""
    return _governing(orders.embedded(home, closing))


def _governing(desk: orders.CommandDesk) -> PolicyDesk:
    def publish(command: Command, approvers: Sequence[SigningCredential]) -> None:
        desk.publish([sign(command, approvers, wall_ms())])

    return PolicyDesk(desk.name, desk.audit, desk.keys, publish, desk.settle)
