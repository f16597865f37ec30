"""Where commands are given: the running stack, or a home's embedded log. Opens what is needed, when it is needed."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack, contextmanager
from contextlib import closing as shutting
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.envelope.registry import Role, check_persons
from memsluice.errors import BufferFull, ConfigError, NotDelivered, StateError
from memsluice.events.names import EVERYBODY
from memsluice.keystore.files import SigningCredential
from memsluice.keystore.store import KeyStore
from memsluice.operations.commands.signing import Signed
from memsluice.operations.target import opened
from memsluice.readers.base import TopicReader
from memsluice.topics.names import AUDIT, COMMANDS, PARTITIONS, USER_OPERATOR

if TYPE_CHECKING:
    from concurrent.futures import Future

    from memsluice.client.publisher import Publisher, Receipt
    from memsluice.runtimes.embedded import Embedded

ACKNOWLEDGED_S = 15.0
SOURCE = "urn:memsluice:orders"
SETTLE_ATTEMPTS = 5
"""How often the stages of an embedded log are opened anew because another process works on it too."""


@dataclass(frozen=True, slots=True)
class CommandDesk:
    """``topic`` opens a topic of the gate's outputs. ``publish`` returns, in order, where each command lies.

    ``settle`` lets the stages work on it where nobody else does (embedded); on a broker the workers do.
    """

    name: str
    topic: Callable[[str], TopicReader]
    keys: KeyStore
    publish: Callable[[Sequence[Signed]], list[str]]
    settle: Callable[[], None]

    @property
    def audit(self) -> TopicReader:
        """The audit topic."""
        return self.topic(AUDIT)

    def signers(self, role: Role, tenant: str, kids: Sequence[str], wanted: int) -> list[SigningCredential]:
        """Return the credentials that will sign; see :func:`signers`. Raises ConfigError."""
        return signers(self.keys, role, tenant, kids, wanted)


def signers(keys: KeyStore, role: Role, tenant: str, kids: Sequence[str], wanted: int) -> list[SigningCredential]:
    """Return the credentials that will sign: those named, else the newest of the role held here, and that one alone.

    Several signatures are several people's. A home may hold the keys of two; it signs as both only where it is told to,
    by their names. Raises ConfigError where there are fewer than are ``wanted``, and says what to do; and where they
    have several roles: the gate authenticates no such command, so no answer would come. Raises NotPermitted where two
    are one person's, for the same reason.
    """
    if kids:
        chosen = [keys.credential(kid) for kid in dict.fromkeys(kids)]
    else:
        chosen = keys.find_credentials(role, wall_ms(), tenant=tenant)[:1]
    if not chosen:
        raise ConfigError(
            f"this home has no {role.value} credential that may sign for {tenant}: run memsluice keys new {role.value} "
            f"--tenant '{tenant}'"
        )
    if len({one.role for one in chosen}) > 1:
        named = ", ".join(f"{one.kid} is a {one.role.value}'s" for one in chosen)
        raise ConfigError(f"the keys that sign one command must be of one role: {named}")
    if len(chosen) < wanted:
        raise ConfigError(
            f"this command needs the signatures of {wanted} people: sign with --propose FILE, and let the other "
            "person run `memsluice approve FILE`. Where both keys are here on purpose, name both: --kid KID --kid KID"
        )
    check_persons([one.kid for one in chosen], keys.keyring(), keys.registry())
    return chosen


@contextmanager
def open_desk(home: Path | None) -> Iterator[CommandDesk]:
    """Give the running stack (or the deployment that the environment names), else the home's embedded log.

    Raises ConfigError, in one sentence, where there is neither.
    """
    with opened(home, on_kafka, embedded) as desk:
        yield desk


def on_kafka(home: Path | None, closing: ExitStack) -> CommandDesk:
    """Return the desk of a running stack, or of the deployment that the environment names. Raises ConfigError."""
    from memsluice.client.options import WriterOptions
    from memsluice.client.publisher import Publisher
    from memsluice.deployment.connection import Connection
    from memsluice.readers.kafka import KafkaTopic

    connection = Connection.load(home)
    topics, publishers = dict[str, KafkaTopic](), list[Publisher]()

    def topic(name: str) -> KafkaTopic:
        if name not in topics:
            topics[name] = KafkaTopic.of(connection, topic=name)
            closing.callback(topics[name].close)
        return topics[name]

    def publish(signed: Sequence[Signed]) -> list[str]:
        if not publishers:
            options = WriterOptions(delivery_seconds=ACKNOWLEDGED_S, linger_ms=1, source=SOURCE)
            opened = Publisher(connection.confluent(USER_OPERATOR), (), options, topic=COMMANDS)
            publishers.append(closing.enter_context(opened))
        pending = [_queued(publishers[0], one) for one in signed]
        return [_place(futures, one) for futures, one in zip(pending, signed, strict=True)]

    return CommandDesk(topic(AUDIT).name, topic, KeyStore(home), publish, lambda: None)


def _queued(publisher: "Publisher", signed: Signed) -> "list[Future[Receipt]]":
    """Queue a command; where the local buffer is full, wait for the broker to take some of it."""
    try:
        return publisher.forward(signed.command, signed.envelope)
    except BufferFull:
        publisher.flush(ACKNOWLEDGED_S)
        return publisher.forward(signed.command, signed.envelope)


def _place(pending: "list[Future[Receipt]]", signed: Signed) -> str:
    try:
        receipts = [future.result(ACKNOWLEDGED_S + 1) for future in pending]
    except FutureTimeout:
        raise NotDelivered("the broker did not acknowledge the command in time", event_id=signed.command.id) from None
    if len(receipts) > 1:
        return f"{receipts[0].topic}, all {len(receipts)} partitions"
    return f"{receipts[0].topic}[{receipts[0].partition}] at offset {receipts[0].offset}"


def embedded(home: Home, closing: ExitStack) -> CommandDesk:
    """Return the desk of a home's embedded log. Raises ConfigError where there is none."""
    from memsluice.client.build import wrap
    from memsluice.readers.local import LocalTopic

    keys, log = KeyStore(home.path), home.local_log(reading=True)
    closing.callback(log.close)
    name = f"the embedded log in {home.path}"

    def publish(signed: Sequence[Signed]) -> list[str]:
        places = []
        with shutting(home.local_log()) as written:
            for one in signed:
                message = wrap(one.command, one.envelope, source=SOURCE)
                everywhere = one.command.tenant == EVERYBODY
                for number in range(PARTITIONS) if everywhere else (None,):
                    partition, offset = written.append(
                        COMMANDS, message.key, message.value, message.headers, append_ms=wall_ms(), partition=number
                    )
                where = ", all partitions" if everywhere else f"[{partition}] at offset {offset}"
                places.append(COMMANDS + where)
        return places

    settle = _settling(home, keys, closing)
    return CommandDesk(name, lambda topic: LocalTopic(log, name=name, topic=topic), keys, publish, settle)


def _settling(home: Home, keys: KeyStore, closing: ExitStack) -> Callable[[], None]:
    """Return what lets the stages work over a home's log until nothing waits; they are opened when first needed.

    Where another process worked on the log since (two people review in one home), they are opened anew.
    """
    stages: list[Embedded] = []
    opened_for = closing.enter_context(ExitStack())

    def settle() -> None:
        for attempt in range(SETTLE_ATTEMPTS):
            if not stages:
                stages.append(_stages(home, keys, opened_for))
            try:
                stages[0].run_until_idle()
            except StateError:
                stages.clear()
                opened_for.close()
                if attempt + 1 == SETTLE_ATTEMPTS:
                    raise
            else:
                return

    return settle


def _stages(home: Home, keys: KeyStore, closing: ExitStack) -> "Embedded":
    """Open the stages over the home's log."""
    from memsluice.encoder import load_encoder
    from memsluice.runtimes.assembly import Assembly

    assembly = Assembly(home, keys)
    store = assembly.local_store()
    closing.callback(store.close)
    runtime = assembly.embedded(load_encoder(), store)
    closing.callback(runtime.close)
    return runtime
