"""Where a store and its log are: on a deployment, or in a home's embedded memory."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.errors import NotFound
from memsluice.escaping import visible
from memsluice.events.partition import partition_of
from memsluice.keystore.store import KeyStore
from memsluice.operations.target import opened
from memsluice.readers.base import TopicReader
from memsluice.readers.local import LocalTopic
from memsluice.runtimes.assembly import Assembly, OpenTopic
from memsluice.stages.reconcile import Reconciler
from memsluice.stores.base import VectorStore
from memsluice.stores.log_index import Ended, LogIndex
from memsluice.stores.opening import open_store
from memsluice.topics.names import PARTITIONS, STORE, USER_OPERATOR, WEAVIATE_LAND, WEAVIATE_RECALL


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A store, what its log says, and what compares the two."""

    name: str
    store: VectorStore
    log: LogIndex
    reconciler: Reconciler

    def tenants(self, tenant: str | None) -> list[str]:
        """Return the tenants that log or store know, or the one that is named. Raises NotFound for a strange one."""
        partitions = range(PARTITIONS) if tenant is None else (partition_of(tenant, PARTITIONS),)
        for partition in partitions:
            self.log.catch_up(partition)
        known = sorted({*self.log.tenants(partitions), *self.store.tenants()})
        if tenant is None:
            return known
        if tenant not in known:
            raise NotFound(f"There is no tenant {visible(tenant, 80)!r} in {self.name}, nor in its log")
        return [tenant]


@contextmanager
def open_place(home: Path | None, *, writing: bool) -> Iterator[StorePlace]:
    """Give the running stack's store, or the deployment's that the environment names, else the home's embedded one.

    Read with the readers' key unless ``writing``. Raises ConfigError where there is neither.
    """

    def on_kafka(_home: Path | None, closing: ExitStack) -> StorePlace:
        from memsluice.readers.kafka import KafkaTopic

        connection = Connection.load(home)
        store = open_store(connection, WEAVIATE_LAND if writing else WEAVIATE_RECALL)
        closing.callback(store.close)

        def reader(topic: str, ended: Ended) -> TopicReader:
            made = KafkaTopic.of(connection, USER_OPERATOR, topic, ended=ended)
            closing.callback(made.close)
            return made

        assembly = Assembly(Home.at(home), KeyStore(home))
        return _place(assembly, f"the stack at {connection.bootstrap}", store, reader)

    def embedded(place: Home, closing: ExitStack) -> StorePlace:
        assembly = Assembly(place, KeyStore(home))
        log = assembly.local_log()
        closing.callback(log.close)
        store = assembly.local_store()
        closing.callback(store.close)
        name = f"the embedded memory in {place.path}"
        return _place(assembly, name, store, lambda topic, _ended: LocalTopic(log, topic=topic))

    with opened(home, on_kafka, embedded) as found:
        yield found


def _place(assembly: Assembly, name: str, store: VectorStore, reader: OpenTopic) -> StorePlace:
    log = LogIndex(partial(reader, STORE), assembly.keys.keyring)
    return StorePlace(name, store, log, assembly.reconciler(store, log, reader))
