"""Where a reviewer works: the running stack, or a home's embedded log. Opens what is needed, when it is needed."""

from collections.abc import Callable
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.errors import NotDelivered
from memsluice.events.models import Command
from memsluice.events.names import EventType
from memsluice.home import Home
from memsluice.inspect.collect import AuditTopic
from memsluice.keystore import KeyStore
from memsluice.topics.names import AUDIT, QUARANTINE

if TYPE_CHECKING:
    from memsluice.assembly import Assembly

ACKNOWLEDGED_S = 15.0


@dataclass(frozen=True, slots=True)
class Desk:
    """``publish`` signs a command with the tenant's reviewer credential and returns where it lies, acknowledged.

    ``settle`` lets the stages work on it where nobody else does (embedded); on a broker the workers do.
    """

    name: str
    held: AuditTopic
    audit: AuditTopic
    keys: KeyStore
    publish: Callable[[Command], str]
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
    options = Options(delivery_seconds=ACKNOWLEDGED_S, linger_ms=0)

    def publish(command: Command) -> str:
        with open_local(OperatorChannel, Role.REVIEWER, home=home, tenant=command.tenant, options=options) as channel:
            try:
                receipt = channel.publish(command).result(ACKNOWLEDGED_S + 1)
            except FutureTimeout:
                raise NotDelivered("the broker did not acknowledge the command", event_id=command.id) from None
        return f"{receipt.topic}[{receipt.partition}] at offset {receipt.offset}"

    return Desk(topics[1].name, topics[0], topics[1], KeyStore(home), publish, lambda: None)


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

    def publish(command: Command) -> str:
        credential = assembly.keys.find_credential(Role.REVIEWER, wall_ms(), tenant=command.tenant)
        check(credential, EventType.COMMAND, command, wall_ms())
        message = build(command, [credential.signer()], source=f"urn:memsluice:reviewer:{credential.kid}")
        topic = topic_of(command)
        partition, offset = log.append(topic, message.key, message.value, message.headers, append_ms=wall_ms())
        return f"{topic}[{partition}] at offset {offset}"

    return Desk(name, held, audit, assembly.keys, publish, lambda: settle(assembly))


def settle(assembly: "Assembly") -> None:
    """Run the stages over the home's log until nothing waits."""
    from memsluice.encoder import load_encoder

    with ExitStack() as closing:
        store = assembly.local_store()
        closing.callback(store.close)
        runtime = assembly.embedded(load_encoder(), store)
        closing.callback(runtime.close)
        runtime.run_until_idle()
