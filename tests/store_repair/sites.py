"""A store with its two logs, embedded and real, in which entries land as *land* lands them."""

import sqlite3
from contextlib import closing, suppress
from time import monotonic, sleep

from tests.patience import HANG_S
from tests.stores.build import PARTITIONS, RING, T0, accepted

from memsluice.deployment.home import Home
from memsluice.envelope.records import StoreRecord, stored_from_bytes
from memsluice.errors import StoreUnavailable
from memsluice.events.models import Zone
from memsluice.readers.kafka import KafkaTopic
from memsluice.readers.local import LocalTopic
from memsluice.runtimes.embedded import LocalLog
from memsluice.stages.land import LandStage
from memsluice.stages.reconcile import Reconciler
from memsluice.stages.store_sweep import StoreSweep
from memsluice.stores.base import StoreAnswer, UpsertResult
from memsluice.stores.faiss.store import FaissStore
from memsluice.stores.log_index import LogIndex
from memsluice.stores.weaviate.admin import client
from memsluice.stores.weaviate.rpc import Rpc
from memsluice.stores.weaviate.store import WeaviateStore, address_of
from memsluice.stores.weaviate.wire import COLLECTIONS, to_wire
from memsluice.topics.names import (
    ACCEPTED,
    STORE,
    USER_LAND,
    USER_OPERATOR,
    USER_SCREEN,
    WEAVIATE_ADMIN,
    WEAVIATE_LAND,
)

SETTLES_S = 60.0
"""How long a server may take to do what it said that it did; what is not so then is seen by the test itself."""


class Site:
    """One tenant's part of a store and its logs. ``now_ms`` may be moved."""

    def __init__(self, tenant: str) -> None:
        self.tenant, self.now_ms, self.counted = tenant, T0, {}
        self.index = LogIndex(lambda _ended: self.reader(STORE), lambda: RING)
        self.reconciler = Reconciler(
            self.store, self.index, lambda _ended: self.reader(ACCEPTED), lambda: RING, PARTITIONS, lambda: self.now_ms
        )
        self.sweep = StoreSweep(self.reconciler, self.store, self.index, PARTITIONS)
        self.stage = LandStage(lambda: RING, self.store, PARTITIONS, lambda: self.now_ms, log=self.index)

    def land(self, number: int, content: str, vector=None, **fields) -> StoreRecord:
        """Accept and land an entry; return what the store log says of it."""
        record = accepted(self.tenant, number, content, vector, **fields)
        return self.take(record)

    def take(self, record) -> StoreRecord:
        """Append a record to the accepted log, land it from there, and append what *land* says to the store log."""
        placed = self.append(ACCEPTED, record)
        (outputs,) = self.stage.process([placed])
        for output in outputs:
            self.append(STORE, output)
        return stored_from_bytes(RING, self.tenant, outputs[0].value)

    def count(self, name: str, amount: int) -> None:
        """Take what the sweep tells."""
        self.counted[name] = self.counted.get(name, 0) + amount

    def swept(self) -> dict[str, int]:
        """Sweep one round of this tenant; return what it counted. Other tests' tenants stay as they were left."""
        self.counted = {}
        self.sweep.owns(range(PARTITIONS))
        self.sweep.begin_round()
        places = [place for place in (self.sweep._at, *self.sweep._round) if place and place[0] == self.tenant]
        self.sweep._round, self.sweep._at = iter(places[1:]), places[0]
        while self.sweep.step(self.count):
            pass
        return {name: amount for name, amount in self.counted.items() if amount and name != "swept"}

    def differs(self, zone) -> dict[str, str]:
        """Compare the whole of a zone; return the kind of each difference."""
        return {
            one: kind.value for part in self.reconciler.walk(self.tenant, zone) for one, kind in part.differs.items()
        }


class Shut(FaissStore):
    """An embedded store that can be made to refuse some tenants, as a server does whose tenants are not active."""

    def __init__(self, path) -> None:
        super().__init__(path)
        self.shut: set[str] = set()
        self.read_only = False
        self.upserts: list[list[str]] = []

    def _check(self, tenant: str) -> None:
        if tenant in self.shut:
            raise StoreUnavailable("tenant not active")

    def upsert(self, objects, *, overwrite=False):
        """Write those of tenants that are not shut."""
        self.upserts.append([item.tenant for item in objects])
        if self.read_only:
            return [UpsertResult(one.object_id, StoreAnswer.UNAVAILABLE, "read-only") for one in objects]
        taken = iter(super().upsert([one for one in objects if one.tenant not in self.shut], overwrite=overwrite))
        return [
            UpsertResult(one.object_id, StoreAnswer.UNAVAILABLE, "tenant not active")
            if one.tenant in self.shut
            else next(taken)
            for one in objects
        ]

    def held(self, tenant, zone, ids):
        """Refuse, or answer."""
        self._check(tenant)
        return super().held(tenant, zone, ids)

    def page(self, tenant, zone, after, limit):
        """Refuse, or answer."""
        self._check(tenant)
        return super().page(tenant, zone, after, limit)

    def admissions(self, tenant, zone, ids):
        """Refuse, or answer."""
        self._check(tenant)
        return super().admissions(tenant, zone, ids)

    def delete(self, tenant, zone, ids, **options):
        """Refuse, or answer."""
        self._check(tenant)
        return super().delete(tenant, zone, ids, **options)


class EmbeddedSite(Site):
    """FAISS, SQLite and the local log."""

    def __init__(self, tenant: str, folder) -> None:
        place = Home(folder)
        self.folder, self.store_file = folder, place.store_file
        self.store, self.log = Shut(place.store_file), LocalLog(place.log_file)
        super().__init__(tenant)

    def reader(self, topic: str):
        """Return a reader of a topic."""
        return LocalTopic(self.log, topic=topic)

    def append(self, topic: str, record):
        """Append, and return what was appended as it is read."""
        where = self.log.append(topic, record.key, record.value, append_ms=T0, partition=record.partition)
        return next(iter(self.log.read(topic, where[1], partition=where[0])))

    def write_past(self, item) -> None:
        """Write an object past the gate."""
        self.store.upsert([item], overwrite=True)

    def shut(self, *tenants: str) -> None:
        """Let the store refuse these tenants from now on, and no other."""
        self.store.shut = set(tenants)

    def strip_vector(self, item) -> None:
        """Take an object's vector away."""
        with closing(sqlite3.connect(self.store_file)) as database:
            database.execute("UPDATE store_objects SET vector = x'' WHERE object_id = ?", (item.object_id,))
            database.commit()

    def close(self) -> None:
        """Close store and log."""
        self.store.close()
        self.log.close()


class StackSite(Site):
    """The real Weaviate and the real broker, each with the users that the product has for it."""

    def __init__(self, tenant: str, stack) -> None:
        from confluent_kafka import Producer

        self.stack, connection = stack, stack.connection
        self.store = WeaviateStore.of(connection, WEAVIATE_LAND)
        self._producers = {
            ACCEPTED: Producer({**connection.confluent(USER_SCREEN), "acks": "all"}),
            STORE: Producer({**connection.confluent(USER_LAND), "acks": "all"}),
        }
        self._readers: list[KafkaTopic] = []
        self._shut: tuple[str, ...] = ()
        super().__init__(tenant)

    def reader(self, topic: str):
        """Return a reader of a topic, as land."""
        made = KafkaTopic.of(self.stack.connection, USER_LAND, topic)
        self._readers.append(made)
        return made

    def append(self, topic: str, record):
        """Append, and return what was appended as it is read."""
        placed = []
        producer = self._producers[topic]
        producer.produce(
            topic, key=record.key, value=record.value, partition=record.partition,
            on_delivery=lambda error, message: placed.append(message.offset() if error is None else error),
        )  # fmt: skip
        assert producer.flush(HANG_S) == 0
        reader = KafkaTopic.of(self.stack.connection, USER_OPERATOR, topic)
        try:
            return next(iter(reader.read(record.partition, placed[0])))
        finally:
            reader.close()

    def write_past(self, item) -> None:
        """Write an object past the gate, with the store's admin key."""
        self._insert(to_wire(item))

    def shut(self, *tenants: str) -> None:
        """Let the store refuse these tenants from now on, and no other: the server has them inactive."""
        with client(address_of(self.stack.connection, WEAVIATE_ADMIN)) as admin:
            made = admin.collections.use(COLLECTIONS[Zone.GUIDANCE]).tenants
            if self._shut:
                made.activate(list(self._shut))
            if tenants:
                made.deactivate(list(tenants))
        until_s = monotonic() + SETTLES_S
        for tenant in {*self._shut, *tenants}:  # a shard is opened, or closed, a moment after the server said so
            while self._answers(tenant) is (tenant in tenants) and monotonic() < until_s:
                sleep(0.05)
        self._shut = tenants

    def _answers(self, tenant: str) -> bool:
        with suppress(StoreUnavailable):
            self.store.page(tenant, Zone.GUIDANCE, "", 1)
            return True
        return False

    def strip_vector(self, item) -> None:
        """Take an object's vector away."""
        wire = to_wire(item)
        wire.ClearField("vectors")
        self._insert(wire)

    def _insert(self, wire) -> None:
        rpc = Rpc(address_of(self.stack.connection, WEAVIATE_ADMIN))
        assert rpc.insert([wire]) == {}
        rpc.close()

    def close(self) -> None:
        """Leave store and broker."""
        for reader in self._readers:
            reader.close()
        self.store.close()
