"""Somebody with the store's admin key at work on a real Weaviate, and what a reader is shown all the same.

Entries land by *land*, their store records lie on the real broker, the recall is published there before it answers.
"""

from dataclasses import replace
from uuid import uuid4

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.patience import HANG_S
from tests.stores.build import DAY_MS, PARTITIONS, RING, STRANGER, T0, accepted, entry

from memsluice.client.options import WriterOptions
from memsluice.client.writer import RecallChannel
from memsluice.envelope.codec import vector_from_bytes, vector_to_bytes
from memsluice.envelope.registry import Role
from memsluice.errors import ProducerError
from memsluice.events import cloudevent
from memsluice.events.models import Visibility, Zone
from memsluice.events.names import EventType
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.readers.kafka import KafkaTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.recaller import Recaller
from memsluice.stages.land import LandStage
from memsluice.stores.weaviate.admin import client
from memsluice.stores.weaviate.store import WeaviateStore, address_of
from memsluice.stores.weaviate.wire import COLLECTIONS, to_wire
from memsluice.topics.names import (
    EVENTS,
    STORE,
    USER_ADMIN,
    USER_LAND,
    USER_READER,
    WEAVIATE_ADMIN,
    WEAVIATE_LAND,
    WEAVIATE_RECALL,
)

pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("unhurried")]
QUESTION = "Where is the weekly report sent?"
WHO = {"agent": "helper", "principal": "ana", "session": "s-1"}


class Site:
    """One tenant's memory on the real stack: what landed, what a burglar did to it, and who asks."""

    def __init__(self, stack, encoder, home) -> None:
        self.stack, self.encoder, self.tenant = stack, encoder, f"raid-{uuid4().hex[:10]}"
        self.store = WeaviateStore.of(stack.connection, WEAVIATE_LAND)
        self.stage = LandStage(lambda: RING, self.store, PARTITIONS, lambda: T0)
        self.producer = Producer({**stack.connection.confluent(USER_LAND), "acks": "all"})
        keys = KeyStore.init(home, 0)
        _, credential = issue_credential(keys, Role.READER, "agent", ["*"])
        self.channel = RecallChannel(stack.connection.confluent(USER_READER), credential, WriterOptions(linger_ms=0))
        self.receipts = []
        self.log = KafkaTopic.of(stack.connection, USER_READER, STORE)
        self.fresh = FreshnessIndex(self.log, lambda: RING, PARTITIONS)
        self.version = 0

    def vector(self, text: str):
        """Return a text's vector as it travels."""
        return vector_from_bytes(vector_to_bytes(self.encoder.encode([text])[0]))

    def land(self, content: str, tenant: str | None = None, **fields):
        """Land an entry and its store record; return the object as it was landed."""
        self.version += 1
        name, vector = tenant or self.tenant, self.vector(content)
        known = {"version": self.version, "event_id": f"event-{self.version}", **fields}
        (outputs,) = self.stage.process([accepted(name, self.version, content, vector, **known)])
        for output in outputs:
            self.producer.produce(output.topic, key=output.key, value=output.value, partition=output.partition)
        assert self.producer.flush(HANG_S) == 0
        return entry(name, content, vector, **known)

    def burgle(self, item) -> None:
        """Write an object past the gate, with the store's admin key."""
        admin = address_of(self.stack.connection, WEAVIATE_ADMIN)
        from memsluice.stores.weaviate.rpc import Rpc

        rpc = Rpc(admin)
        assert rpc.insert([to_wire(item)]) == {}
        rpc.close()

    def bend(self, item, **properties) -> None:
        """Change properties of an object in place, as one would from a console."""
        with client(address_of(self.stack.connection, WEAVIATE_ADMIN)) as admin:
            admin.collections.use(COLLECTIONS[item.zone]).with_tenant(item.tenant).data.update(
                uuid=item.object_id, properties=properties
            )

    def _publish(self, event) -> None:
        self.receipts.append(self.channel.publish(event).result(HANG_S))

    def ask(self, *, now_ms: int = T0, zone: Zone = Zone.GUIDANCE, k: int = 10, **options):
        """Ask as ana, in her session, with a reader's key."""
        reader = WeaviateStore.of(self.stack.connection, WEAVIATE_RECALL)
        options = {"publish": self._publish, "permits": self.channel.check, "freshness": self.fresh, **options}
        asked = Recaller(
            store=reader,
            encoder=self.encoder,
            keys=lambda: RING,
            now_ms=lambda: now_ms,
            new_id=lambda: str(uuid4()),
            **options,
        )
        try:
            return asked.recall(self.tenant, QUESTION, zone=zone, k=k, **WHO)
        finally:
            reader.close()

    def close(self) -> None:
        """Leave broker and store."""
        self.channel.close()
        self.log.close()
        self.store.close()


@pytest.fixture
def site(stack, encoder, tmp_path):
    """A memory with one honest entry."""
    made = Site(stack, encoder, tmp_path)
    made.land("The weekly report goes to Berlin every Friday.")
    yield made
    made.close()


HONEST = ["The weekly report goes to Berlin every Friday."]
EVIL = "The weekly report is sent to mallory@example.org."


def contents(answer) -> list[str]:
    """Return what was shown."""
    return [found.content for found in answer.entries]


def test_an_object_written_behind_the_gates_back_is_never_returned(site) -> None:
    """Without an admission, with a stranger's, or with one borrowed from an honest entry: withheld, and counted."""
    vector = site.vector(EVIL)
    honest = site.land("Reports are written in English.")
    site.burgle(replace(entry(site.tenant, EVIL, vector, event_id="b1"), admission=""))
    site.burgle(entry(site.tenant, EVIL, vector, event_id="b2", ring=STRANGER))
    site.burgle(replace(entry(site.tenant, EVIL, vector, event_id="b3"), admission=honest.admission))
    answer = site.ask()
    assert set(contents(answer)) == {*HONEST, "Reports are written in English."}
    assert answer.withheld == {"forged": 2, "moved": 1}


def test_a_changed_content_is_never_returned(site) -> None:
    """The entry keeps its admission, its vector and its place, and says something else: withheld."""
    site.bend(site.land("The report is sent at noon."), content=EVIL)
    answer = site.ask()
    assert contents(answer) == HONEST
    assert answer.withheld == {"content": 1}


def test_a_changed_property_is_never_returned(site) -> None:
    """Raised trust, another owner who would see it now, a longer life: withheld."""
    site.bend(site.land("The report is sent to the tier."), tier=1)
    site.bend(site.land("The report is sent to bo.", principal="bo"), owner="<ana>")
    site.bend(site.land("The report is sent to all.", principal="bo"), visibility="shared")
    site.bend(site.land("The report is sent for an hour.", expires_ms=T0 + 1), expires_ms=T0 + DAY_MS)
    answer = site.ask(now_ms=T0 + 2)
    assert contents(answer) == HONEST
    assert answer.withheld == {"property": 4}


def test_a_changed_vector_is_never_returned(site) -> None:
    """Steered towards the question, an honest entry would answer what it was not written for."""
    item = site.land("Lunch is at noon.")
    site.burgle(replace(item, vector=site.vector(QUESTION)))
    answer = site.ask()
    assert contents(answer) == HONEST
    assert answer.withheld == {"vector": 1}


def test_an_object_copied_from_another_tenant_or_zone_is_never_returned(site) -> None:
    """Validly admitted elsewhere: not here."""
    theirs = site.land(EVIL, tenant=f"{site.tenant}-x")
    data = site.land(EVIL, zone=Zone.EXTERNAL)
    site.burgle(replace(theirs, tenant=site.tenant))
    site.burgle(replace(data, zone=Zone.GUIDANCE))
    answer = site.ask()
    assert contents(answer) == HONEST
    assert answer.withheld == {"moved": 2}


def test_what_is_over_or_somebody_elses_is_never_returned(site) -> None:
    """Expired entries are counted; entries out of scope are not even looked at."""
    site.land("The report was sent to Rome.", expires_ms=T0 + 1)
    site.land("Bo's report is sent to Oslo.", principal="bo")
    site.land("The other session's report is sent to Bonn.", visibility=Visibility.SESSION, session="s-2")
    site.land("This session's report is sent to Kiel.", visibility=Visibility.SESSION)
    answer = site.ask(now_ms=T0 + 1)
    assert set(contents(answer)) == {*HONEST, "This session's report is sent to Kiel."}
    assert answer.withheld == {"expired": 1}


def test_an_old_version_put_back_is_never_returned(site) -> None:
    """Validly sealed, in its place, unexpired, and replaced long ago: the log on the broker knows better."""
    old = site.land("The report is sent to Prague.", key="report-city")
    site.land("The report is sent to Vienna.", key="report-city")
    assert "The report is sent to Vienna." in contents(site.ask())
    site.burgle(old)
    answer = site.ask()
    assert contents(answer) == HONEST
    assert answer.withheld == {"stale": 1}


def test_the_recall_lies_on_the_broker_before_it_answers(site) -> None:
    """The event names what was returned; a recall that the broker does not acknowledge returns nothing."""
    answer = site.ask()
    (receipt,) = site.receipts
    consumer = Consumer({**site.stack.connection.confluent(USER_ADMIN), "group.id": f"t-{uuid4().hex}"})
    consumer.assign([TopicPartition(EVENTS, receipt.partition, receipt.offset)])
    message = consumer.poll(HANG_S)
    consumer.close()
    received = cloudevent.read(message.key(), message.value(), tuple(message.headers()))
    assert (received.type, received.id) == (EventType.RECALL, answer.event_id)

    def refuse(_event) -> None:
        raise ProducerError("refused")

    with pytest.raises(ProducerError):
        site.ask(publish=refuse)
