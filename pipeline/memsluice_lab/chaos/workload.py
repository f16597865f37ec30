"""Real signed events of several tenants, published by the SDK; what the broker acknowledged is remembered.

Whatever is in :attr:`Workload.said` the deployment has promised to decide, in the order of the log. What failed without
an answer (the broker was away) is in :attr:`Workload.unsure`: it may be there or not, and no promise rests on it.
"""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime, timedelta
from itertools import count
from uuid import uuid4

from memsluice.client import requests
from memsluice.client.options import WriterOptions
from memsluice.client.publisher import Publisher, Receipt
from memsluice.client.requests import Session, WriteOptions
from memsluice.envelope.codec import content_digest
from memsluice.errors import BufferFull, ProducerError
from memsluice.events.models import Action, AnyPayload, Origin, Returned, Tier
from memsluice.events.partition import partition_of
from memsluice.topics import names
from memsluice_lab.cast import kid_of
from memsluice_lab.figures.bed import Bed, Place

USERS: Mapping[str, str] = {
    "runtime": names.USER_RUNTIME,
    "reader": names.USER_READER,
    "agent": names.USER_PRODUCER,
    "web": names.USER_PRODUCER,
    "operator": names.USER_OPERATOR,
}
"""The broker's user of each source that the workload speaks as."""
OPTIONS = WriterOptions(linger_ms=5, delivery_seconds=120, check_seconds=None, buffer_messages=50_000)
ACKNOWLEDGED_S = 130
COMMAND_VALID = timedelta(hours=1)
TENANTS_TRIED_MAX = 1_000


class Workload:
    """What happens in some tenants. One thread; every method queues, :meth:`settle` waits for the broker."""

    def __init__(self, bed: Bed, tenants: Sequence[str], run: str) -> None:
        bed.signers(tenants)
        self._bed = bed
        self._run = run
        self._numbers = count()
        self._read = count()
        self._publishers: dict[tuple[str, str], Publisher] = {}
        self._waiting: list[tuple[AnyPayload, Future[Receipt]]] = []
        self._contents: dict[str, tuple[str, str]] = {}
        self.tenants = tuple(tenants)
        self.said: dict[Place, AnyPayload] = {}
        self.unsure: list[AnyPayload] = []

    def open(self, tenant: str, number: int) -> list[Session]:
        """Open sessions, each of a person of its own, so that nobody's daily limit is met."""
        found = []
        for _ in range(number):
            name = f"{self._run}.{next(self._numbers)}"
            session = Session(tenant, "helper", f"p-{name}", f"s-{name}")
            self._say("runtime", tenant, requests.observation(self._id(), _now(), session, Origin.OPEN, None, None))
            found.append(session)
        return found

    def taint(self, session: Session) -> None:
        """Taint a session from here on: one is given a tainted entry, the next one reads a web page, in turn."""
        number = next(self._read)
        if number % 2:
            seen = requests.observation(self._id(), _now(), session, Origin.WEB, None, None)
            self._say("runtime", session.tenant, seen)
            return
        given = Returned(
            object_id=str(uuid4()), version=1, event_id=f"{self._run}.web", tier=Tier.EXTERNAL_WEB, taint=True
        )
        question = "When does the delivery come?"
        self._say("reader", session.tenant, requests.recall(self._id(), _now(), session, question, (given,)))

    def write(self, session: Session, source: str = "agent", *, key: str | None = None) -> str:
        """Write a note in a session; return its event id. With a key it replaces the entry of that key."""
        event_id = self._id()
        content = f"Note {event_id}: the delivery comes on Monday."
        options: WriteOptions = {} if key is None else {"key": key}
        self._contents[event_id] = (session.tenant, content)
        self._say(source, session.tenant, requests.write(event_id, _now(), session, content, options))
        return event_id

    def recall(self, session: Session) -> None:
        """Ask something, and be given nothing."""
        asked = requests.recall(self._id(), _now(), session, "When does the delivery come?", ())
        self._say("reader", session.tenant, asked)

    def withdraw(self, event_id: str) -> None:
        """Command that an entry is removed, as ``memsluice revoke --remove`` does for each that it finds."""
        tenant, content = self._contents[event_id]
        digest = content_digest(self._bed.store.keyring(), tenant, content)
        command = requests.command(
            self._id(), _now(), tenant, Action.WITHDRAW, event_id, _now() + COMMAND_VALID, digest=digest
        )
        self._say("operator", tenant, command)

    def settle(self) -> set[Place]:
        """Wait for the broker; return the places of what it acknowledged since the last time."""
        added = set()
        for payload, receipt in self._waiting:
            try:
                found = receipt.result(ACKNOWLEDGED_S)
            except (ProducerError, TimeoutError):
                self.unsure.append(payload)
                continue
            place = (found.topic, found.partition, found.offset)
            self.said[place] = payload
            added.add(place)
        self._waiting.clear()
        return added

    def close(self) -> None:
        """Leave the broker."""
        for publisher in self._publishers.values():
            publisher.close(5)

    def _id(self) -> str:
        return f"{self._run}.{next(self._numbers)}"

    def _say(self, source: str, tenant: str, payload: AnyPayload) -> None:
        publisher = self._publishers.get((tenant, source))
        if publisher is None:
            settings = self._bed.connection.confluent(USERS[source])
            publisher = Publisher(settings, self._bed.store.credential_path(kid_of(tenant, source)), OPTIONS)
            self._publishers[tenant, source] = publisher
        try:
            self._waiting.append((payload, publisher.publish(payload)))
        except BufferFull:
            self.settle()
            self._waiting.append((payload, publisher.publish(payload)))


def tenants_apart(prefix: str, number: int) -> list[str]:
    """Return names of so many tenants, each on a partition of its own (at most PARTITIONS)."""
    found: dict[int, str] = {}
    for attempt in range(TENANTS_TRIED_MAX):
        name = f"{prefix}-{attempt}"
        found.setdefault(partition_of(name, names.PARTITIONS), name)
        if len(found) >= number:
            break
    return list(found.values())[:number]


def _now() -> datetime:
    return datetime.now(UTC)
