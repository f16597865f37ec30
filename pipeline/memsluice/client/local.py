"""What one home directory gives to a writer: the stack's address, and the newest credential of a role."""

from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from memsluice.client.options import WriterOptions, options_of
from memsluice.client.publisher import Publisher
from memsluice.deployment.connection import Connection
from memsluice.envelope.registry import COMMANDERS, Role
from memsluice.events.models import Channel
from memsluice.keystore.store import KeyStore
from memsluice.topics.names import COMMANDS, EVENTS, USER_OPERATOR, USER_PRODUCER, USER_READER, USER_RUNTIME

USERS = {
    Role.PRODUCER: USER_PRODUCER,
    Role.USER_CHANNEL: USER_PRODUCER,
    Role.READER: USER_READER,
    Role.RUNTIME: USER_RUNTIME,
    Role.OPERATOR: USER_OPERATOR,
    Role.REVIEWER: USER_OPERATOR,
}
"""The broker's user for each role of credential."""
_P = TypeVar("_P", bound=Publisher)


class Local(NamedTuple):
    """How a writer of one role connects, with which credential file it signs, and which topic it checks."""

    settings: dict[str, Any]
    credential: Path
    topic: str


def local(
    role: Role, tenant: str | None, home: Path | None, options: WriterOptions, channel: Channel | None = None
) -> Local:
    """Return what a writer of this role needs, by the newest credential that may speak for the tenant on the channel.

    Raises ConfigError, which says what to run, where stack or credential are missing.
    """
    connection, store = Connection.load(home), KeyStore(home)
    credential = store.find_credential(role, int(options.clock().timestamp() * 1000), tenant=tenant, channel=channel)
    topic = COMMANDS if role in COMMANDERS else EVENTS
    return Local(connection.confluent(USERS[role]), store.credential_path(credential.kid), topic)


def open_local(
    kind: type[_P],
    role: Role,
    *,
    home: Path | None = None,
    tenant: str | None = None,
    options: WriterOptions | None = None,
) -> _P:
    """Deprecated: use the class's own method, such as ``MemoryWriter.open_local(tenant=...)``."""
    from memsluice import deprecations  # nobody else here needs it

    deprecations.warn("memsluice.open_local")
    chosen = options_of(options)
    found = local(role, tenant, home, chosen)
    return kind(found.settings, found.credential, chosen, topic=found.topic)
