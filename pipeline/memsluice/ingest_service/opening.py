"""An ingest service on a deployment: the broker that it publishes to, and the topics on which it hears outcomes."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from time import monotonic

from memsluice.client.options import WriterOptions
from memsluice.client.publisher import Publisher
from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.events.records import Record
from memsluice.http_service.callers import Callers
from memsluice.http_service.readiness import Missing, asks_broker
from memsluice.ingest_service.app import Serving
from memsluice.ingest_service.ledger import Ledger
from memsluice.ingest_service.status import LOOKUP_S, Statuses
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
        audit = _Audit(connection)
        closing.callback(audit.close)
        statuses = Statuses(ledger, keys.keyring, audit)
        closing.callback(statuses.close)
        closing.callback(Hearing(connection, range(PARTITIONS), ledger.take, BACK).close)
        callers = Callers(keys.keyring, keys.registry, wall_ms, quota, INGEST_AUDIENCE, "send {} requests")
        missing = Missing({"the broker does not answer": asks_broker(connection, USER_PRODUCER, EVENTS)})
        yield Serving(
            keys.keyring, keys.registry, keys.credential, publisher.send, ledger, statuses, meters, wall_ms, callers,
            missing,
        )  # fmt: skip


class _Audit:
    """Reads one record of the audit at a time, each thread with a reader of its own.

    A read that takes longer than anybody waits for it ends, so that its thread is there for the next.
    """

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._own = threading.local()
        self._topics: list[KafkaTopic] = []

    def __call__(self, partition: int, offset: int) -> Record | None:
        self._own.until = monotonic() + LOOKUP_S
        record = next(self._topic().read(partition, offset), None)
        return record if record is not None and record.offset == offset else None

    def _topic(self) -> KafkaTopic:
        if not hasattr(self._own, "topic"):
            own = self._own
            own.topic = KafkaTopic.of(self._connection, USER_VERDICTS, AUDIT, ended=lambda: monotonic() > own.until)
            self._topics.append(own.topic)
        found: KafkaTopic = self._own.topic
        return found

    def close(self) -> None:
        """Leave the broker, once nobody reads any more."""
        for topic in self._topics:
            topic.close()
