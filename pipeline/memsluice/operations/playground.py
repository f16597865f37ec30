"""Questions that an operator tries: the memory answers as the recall service would, and nothing is published.

So the gate learns nothing of it, and no entry holds longer for it. What is shown may be given to no agent: an agent's
recall is published before it is answered.
"""

import uuid
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.envelope.keys import Keyring
from memsluice.envelope.registry import Credential, Registry, Role, check_signing_time, credential_of
from memsluice.errors import InvalidArgument
from memsluice.escaping import visible
from memsluice.gate.policy.model import PolicySet, load_or_default
from memsluice.keystore.store import KeyStore
from memsluice.recall.missing import Freshness
from memsluice.recall.recaller import Recalled
from memsluice.recall.wire import RecallRequest
from memsluice.stores.base import VectorStore

if TYPE_CHECKING:
    from memsluice.encoder import Encoder

SHOWN_CHARS = 130


@dataclass(frozen=True, slots=True)
class PlaygroundDesk:
    """A memory that may be asked: its store, what the log says is current there, and whose rules hold."""

    name: str
    store: VectorStore
    freshness: Freshness
    keys: KeyStore
    policies: PolicySet

    def ask(self, asked: RecallRequest, kid: str, encoder: "Encoder", now_ms: int) -> Recalled:
        """Return what the recall service would answer to whoever has this credential; its event id names no event.

        Raises InvalidArgument for a key that is no reader's, RevokedKey and ExpiredKey for one that signs nothing any
        more, NotPermitted and CrossTenant for what it may not ask, MalformedEvent and LimitExceeded for what no recall
        can carry, BrokerUnavailable and StoreUnavailable.
        """
        from memsluice.recall.instructions.detectors import DetectorCheck, of_gate
        from memsluice.recall.recaller import Recaller
        from memsluice.recall_service.requests import check

        self.keys.refresh()
        check(asked, reader(self.keys.keyring(), self.keys.registry(), kid, now_ms), now_ms)
        recaller = Recaller(
            store=self.store, encoder=encoder, keys=self.keys.keyring, permits=lambda draft: None,
            publish=lambda event: None, now_ms=wall_ms, new_id=lambda: str(uuid.uuid4()), freshness=self.freshness,
            instructions=DetectorCheck(encoder, lambda tenant: of_gate(self.policies.of(tenant))),
        )  # fmt: skip
        return recaller.ask(asked.asked())


def readers(registry: Registry) -> list[Credential]:
    """Return the credentials that may ask."""
    return [one for one in registry.all() if one.role is Role.READER]


def reader(keyring: Keyring, registry: Registry, kid: str, now_ms: int) -> Credential:
    """Return a reader's credential whose key holds now (Unix ms).

    Raises InvalidArgument where the key is none, RevokedKey or ExpiredKey where it holds no more.
    """
    if all(one.kid != kid for one in readers(registry)):
        raise InvalidArgument(f"as: {visible(kid, SHOWN_CHARS)} is no reader's key: choose one of the list")
    credential = credential_of(kid, keyring, registry)
    check_signing_time(keyring.get(kid), now_ms)
    return credential


def on_kafka(home: Path | None, closing: ExitStack) -> PlaygroundDesk:
    """Return the memory of a running stack, or of the deployment that the environment names. Raises ConfigError."""
    from memsluice.deployment.connection import Connection
    from memsluice.readers.apart import ApartTopic
    from memsluice.recall.freshness import FreshnessIndex
    from memsluice.stores.opening import open_store
    from memsluice.topics.names import PARTITIONS, STORE, USER_READER, WEAVIATE_RECALL

    connection, keys = Connection.load(home), KeyStore(home)
    store = open_store(connection, WEAVIATE_RECALL)
    closing.callback(store.close)
    log = ApartTopic(connection, USER_READER, STORE)
    closing.callback(log.close)
    index = FreshnessIndex(log, keys.keyring, PARTITIONS)
    policies = load_or_default(Home.at(home).policy_file)
    return PlaygroundDesk(f"the stack at {connection.bootstrap}", store, index, keys, policies)


def embedded(place: Home, closing: ExitStack) -> PlaygroundDesk:
    """Return the memory of a home's embedded log. Raises ConfigError where its store is lost."""
    from memsluice.operations.store import lost
    from memsluice.runtimes.assembly import Assembly

    lost.check(place)
    assembly = Assembly(place, KeyStore(place.path))
    log = assembly.local_log()
    closing.callback(log.close)
    store = assembly.local_store()
    closing.callback(store.close)
    policies = load_or_default(place.policy_file)
    freshness = assembly.local_freshness(log)
    return PlaygroundDesk(f"the embedded memory in {place.path}", store, freshness, assembly.keys, policies)
