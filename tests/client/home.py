"""A home with keys, and messages read back from the real broker."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, TopicPartition
from tests.patience import HANG_S

from memsluice.client.publisher import Receipt
from memsluice.client.requests import Session
from memsluice.deployment.connection import Connection
from memsluice.envelope.registry import Role
from memsluice.events.models import Channel
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.topics.names import USER_ADMIN

NOW_MS = 1_780_000_000_000
SECRET_TEXT = "the-launch-code-is-00000000"


def session(tenant: str = "acme") -> Session:
    """Return a session of a tenant."""
    return Session(tenant, "assistant", "ada", "s-1")


def keys(home: Path, role: Role = Role.PRODUCER, channel: Channel = "agent", **more: Any) -> tuple[KeyStore, Path]:
    """Return a key store with one credential for every tenant, and the credential's file."""
    store = KeyStore.init(home, 0)
    _, path = issue_credential(store, role, channel, ["*"], **more)
    return store, path


@contextmanager
def reading(connection: Connection) -> Iterator[Any]:
    """Give a consumer that reads any record by its position, as the super user."""
    settings = {**connection.confluent(USER_ADMIN), "group.id": "memsluice-test", "enable.auto.commit": False}
    consumer = Consumer(settings)
    try:
        yield consumer
    finally:
        consumer.close()


def read_at(consumer: Any, receipt: Receipt) -> Any:
    """Return the message that lies where a receipt says."""
    consumer.assign([TopicPartition(receipt.topic, receipt.partition, receipt.offset)])
    message = consumer.poll(HANG_S)
    assert message is not None
    assert message.error() is None
    return message
