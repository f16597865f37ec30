"""Where a reviewer works: the running stack, or a home's embedded log. Opens what is needed, when it is needed."""

from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.errors import BufferFull, NotDelivered
from memsluice.events.models import Command
from memsluice.events.names import EventType
from memsluice.home import Home
from memsluice.inspect.collect import AuditTopic
from memsluice.keystore import KeyStore
from memsluice.quarantine.order import FollowedTopic
from memsluice.topics.names import AUDIT, QUARANTINE

if TYPE_CHECKING:
    from concurrent.futures import Future

    from memsluice.assembly import Assembly
    from memsluice.producer.publisher import Receipt
    from memsluice.producer.writer import OperatorChannel
    from memsluice.stages.embedded import Embedded

ACKNOWLEDGED_S = 15.0


@dataclass(frozen=True, slots=True)
class Desk:
    """``publish`` signs commands with their tenants' reviewer credentials, in order, and returns where each lies.

    ``settle`` lets the stages work on it where nobody else does (embedded); on a broker the workers do.
    """

    name: str
    held: AuditTopic
    audit: FollowedTopic
    keys: KeyStore
    publish: Callable[[Sequence[Command]], list[str]]
    settle: Callable[[], None]

    def signer(self, tenant: str) -> str:
        """Return the key id of the reviewer credential for a tenant. Raises ConfigError: how to make one."""
        return self.keys.find_credential(Role.REVIEWER, wall_ms(), tenant=tenant).kid


def on_kafka(home: Path | None, closing: ExitStack) -> Desk:
    """Return the desk of a running stack, or of the deployment that the environment names. Raises ConfigError."""
    from memsluice.connection import Connection
    from memsluice.inspect.audit_kafka import KafkaAudit
    from memsluice.producer.local import open_local
    from memsluice.producer.publisher import Options
    from memsluice.producer.writer import OperatorChannel

    connection = Connection.load(home)
    topics = [KafkaAudit.of(connection, topic=topic) for topic in (QUARANTINE, AUDIT)]
    for topic in topics:
        closing.callback(topic.close)
    options = Options(delivery_seconds=ACKNOWLEDGED_S, linger_ms=1)
    keys, channels = KeyStore(home), dict[str, OperatorChannel]()  # one a credential

    def channel_of(tenant: str) -> OperatorChannel:
        kid = keys.find_credential(Role.REVIEWER, wall_ms(), tenant=tenant).kid
        if kid not in channels:
            opened = open_local(OperatorChannel, Role.REVIEWER, home=home, tenant=tenant, options=options)
            channels[kid] = closing.enter_context(opened)
        return channels[kid]

    def publish(commands: Sequence[Command]) -> list[str]:
        of_tenant = {tenant: channel_of(tenant) for tenant in dict.fromkeys(command.tenant for command in commands)}
        pending = [_queued(of_tenant[command.tenant], command) for command in commands]
        return [_place(future, command) for future, command in zip(pending, commands, strict=True)]

    return Desk(topics[1].name, topics[0], topics[1], keys, publish, lambda: None)


def _queued(channel: "OperatorChannel", command: Command) -> "Future[Receipt]":
    """Queue a command; where the local buffer is full, wait for the broker to take some of it."""
    try:
        return channel.publish(command)
    except BufferFull:
        channel.flush(ACKNOWLEDGED_S)
        return channel.publish(command)


def _place(pending: "Future[Receipt]", command: Command) -> str:
    try:
        receipt = pending.result(ACKNOWLEDGED_S + 1)
    except FutureTimeout:
        raise NotDelivered("the broker did not acknowledge the command", event_id=command.id) from None
    return f"{receipt.topic}[{receipt.partition}] at offset {receipt.offset}"


def embedded(home: Home, closing: ExitStack) -> Desk:
    """Return the desk of a home's embedded log. Raises ConfigError where there is none."""
    from memsluice.assembly import Assembly
    from memsluice.inspect.audit_log import LocalAudit
    from memsluice.producer.build import build, topic_of
    from memsluice.producer.credentials import check

    assembly = Assembly(home, KeyStore(home.path))
    log = assembly.local_log()
    closing.callback(log.close)
    name = f"the embedded log in {home.path}"
    held, audit = (LocalAudit(log, name=name, topic=topic) for topic in (QUARANTINE, AUDIT))

    def publish(commands: Sequence[Command]) -> list[str]:
        found = dict.fromkeys(command.tenant for command in commands)
        credentials = {
            tenant: assembly.keys.find_credential(Role.REVIEWER, wall_ms(), tenant=tenant) for tenant in found
        }
        places = []
        for command in commands:
            credential = credentials[command.tenant]
            check(credential, EventType.COMMAND, command, wall_ms())
            message = build(command, [credential.signer()], source=f"urn:memsluice:reviewer:{credential.kid}")
            topic = topic_of(command)
            partition, offset = log.append(topic, message.key, message.value, message.headers, append_ms=wall_ms())
            places.append(f"{topic}[{partition}] at offset {offset}")
        return places

    return Desk(name, held, audit, assembly.keys, publish, settling(assembly, closing))


def settling(assembly: "Assembly", closing: ExitStack) -> Callable[[], None]:
    """Return what lets the stages work over a home's log until nothing waits; they are opened when first needed."""
    stages: list[Embedded] = []

    def settle() -> None:
        if not stages:
            stages.append(_stages(assembly, closing))
        stages[0].run_until_idle()

    return settle


def _stages(assembly: "Assembly", closing: ExitStack) -> "Embedded":
    """Open the stages over the home's log."""
    from memsluice.encoder import load_encoder

    store = assembly.local_store()
    closing.callback(store.close)
    runtime = assembly.embedded(load_encoder(), store)
    closing.callback(runtime.close)
    return runtime
