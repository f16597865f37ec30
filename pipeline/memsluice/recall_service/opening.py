"""A recall service on a deployment: its store, its log, its keys, and the credential that it publishes recalls with."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from memsluice.client.options import WriterOptions
from memsluice.client.writer import RecallChannel
from memsluice.clock import wall_ms
from memsluice.deployment.connection import Connection
from memsluice.deployment.home import Home
from memsluice.encoder import load_encoder
from memsluice.envelope.registry import ANY, Role
from memsluice.errors import ConfigError
from memsluice.events.models import Recall
from memsluice.gate.policy.model import load_or_default
from memsluice.http_service.readiness import Missing, asks_broker
from memsluice.keystore.files import SigningCredential
from memsluice.keystore.store import KeyStore
from memsluice.readers.apart import ApartTopic
from memsluice.recall.freshness import FreshnessIndex
from memsluice.recall.instructions.detectors import DetectorCheck, of_gate
from memsluice.recall.recaller import Recaller
from memsluice.recall.renewing import Renewals
from memsluice.recall_service.app import Serving
from memsluice.stages.quota import Quota
from memsluice.stores.opening import open_store
from memsluice.telemetry.meters import Meters
from memsluice.telemetry.surroundings import asks_store
from memsluice.topics.names import EVENTS, PARTITIONS, STORE, USER_READER, WEAVIATE_RECALL

PUBLISH_S = 15.0


@contextmanager
def opened(home: Path | None, quota: Quota, meters: Meters) -> Iterator[Serving]:
    """Give what a service of this home's deployment stands on, and close it afterwards.

    Raises ConfigError, which says what to run, where a stack, keys or the service's credential are missing,
    PolicyError for a policy file that is not valid, BrokerUnavailable and StoreUnavailable.
    """
    connection, keys = Connection.load(home), KeyStore(home)
    policies = load_or_default(Home.at(home).policy_file)
    credential = _own(keys)
    settings = connection.confluent(USER_READER)
    options = WriterOptions(delivery_seconds=PUBLISH_S, linger_ms=0)
    with ExitStack() as closing:
        channel = closing.enter_context(
            RecallChannel(settings, keys.credential_path(credential.kid), options, topic=EVENTS)
        )
        store = open_store(connection, WEAVIATE_RECALL)
        closing.callback(store.close)
        log = ApartTopic(connection, USER_READER, STORE)
        closing.callback(log.close)

        def publish(event: Recall) -> None:
            channel.publish(event).result(PUBLISH_S + 1)

        encoder = load_encoder()
        recaller = Recaller(
            store=store, encoder=encoder, keys=keys.keyring, permits=channel.check, publish=publish,
            now_ms=wall_ms, new_id=channel.new_id, freshness=FreshnessIndex(log, keys.keyring, PARTITIONS),
            instructions=DetectorCheck(encoder, lambda tenant: of_gate(policies.of(tenant))),
            renewals=Renewals(store, policies.of),
        )  # fmt: skip
        closing.callback(recaller.close)
        missing = Missing(
            {
                "the broker does not answer": asks_broker(connection, USER_READER, STORE),
                "the store does not answer": asks_store(connection),
            }
        )
        yield Serving(recaller, keys.keyring, keys.registry, meters, wall_ms, quota, missing)


def _own(keys: KeyStore) -> SigningCredential:
    """Return the newest reader's credential for all tenants. Raises ConfigError: how to make one."""
    for held in keys.find_credentials(Role.READER, wall_ms()):
        if ANY in held.tenants:
            return held
    raise ConfigError(
        "the recall service needs a reader's credential for all tenants: run memsluice keys new reader --tenant '*'"
    )
