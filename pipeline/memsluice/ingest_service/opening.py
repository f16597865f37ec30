"""An ingest service on a deployment: the broker that it publishes to, and the topics on which it hears outcomes."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memsluice.client.options import WriterOptions
from memsluice.client.publisher import Publisher
from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.events.records import Record
from memsluice.http_service.callers import Callers
from memsluice.http_service.readiness import Missing, asks_broker
from memsluice.ingest_service.app import Serving
from memsluice.ingest_service.ledger import Ledger
from memsluice.ingest_service.status import Statuses
from memsluice.keystore.store import KeyStore
from memsluice.memory.hearing import Hearing
from memsluice.readers.kafka import KafkaTopic
from memsluice.recall.bearer import INGEST_AUDIENCE
from memsluice.stages.quota import Quota
from memsluice.telemetry.meters import Meters
from memsluice.topics.names import AUDIT, EVENTS, PARTITIONS, USER_PRODUCER, USER_VERDICTS

DELIVERY_S = 10.0
BUFFER_MESSAGES = 2_000
"""Events that may wait for the broker; the next is answered 503."""
BACK = 2_000
"""Records of each partition that were there before the service started, and that it hears: what it then knows of what
its predecessor took."""


@contextmanager
def opened(home: Path | None, quota: Quota, meters: Meters) -> Iterator[Serving]:
    """Give what a service of this home's deployment stands on, and close it afterwards.

    Raises ConfigError, which says what to run, where a stack, keys or a user are missing, and BrokerUnavailable.
    """
    connection, keys = Connection.load(home), KeyStore(home)
    keys.load_registry()  # a home without keys is told at once
    options = WriterOptions(delivery_seconds=DELIVERY_S, linger_ms=1, buffer_messages=BUFFER_MESSAGES)
    with ExitStack() as closing:
        publisher = closing.enter_context(Publisher(connection.confluent(USER_PRODUCER), [], options, topic=EVENTS))
        ledger = Ledger(keys.keyring)
        audit = closing.enter_context(_audit(connection))
        statuses = Statuses(ledger, keys.keyring, audit)
        closing.callback(statuses.close)
        closing.callback(Hearing(connection, range(PARTITIONS), ledger.take, BACK).close)
        callers = Callers(keys.keyring, keys.registry, wall_ms, quota, INGEST_AUDIENCE, "send {} requests")
        missing = Missing({"the broker does not answer": asks_broker(connection, USER_PRODUCER, EVENTS)})
        yield Serving(
            keys.keyring, keys.registry, keys.credential, publisher.send, ledger, statuses, meters, wall_ms, callers,
            missing,
        )  # fmt: skip


@contextmanager
def _audit(connection: Connection) -> "Iterator[_Audit]":
    topic = KafkaTopic.of(connection, USER_VERDICTS, AUDIT)
    try:
        yield _Audit(topic)
    finally:
        topic.close()


class _Audit:
    """Reads one record of the audit at a time."""

    def __init__(self, topic: KafkaTopic) -> None:
        self._topic = topic
        self._lock = threading.Lock()

    def __call__(self, partition: int, offset: int) -> Record | None:
        with self._lock:
            record = next(self._topic.read(partition, offset), None)
        return record if record is not None and record.offset == offset else None
