"""Writers for the stack and the keys of one home directory, by role: what the CLI, the demo and the tests use."""

from pathlib import Path
from typing import TypeVar

from memsluice.client.publisher import Options, Publisher
from memsluice.deployment.connection import Connection
from memsluice.envelope.registry import COMMANDERS, Role
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


def open_local(
    kind: type[_P], role: Role, *, home: Path | None = None, tenant: str | None = None, options: Options | None = None
) -> _P:
    """Return a writer of this kind, connected to the home's stack, with the newest credential of the role.

    ``tenant`` asks for a credential that may speak for it. Raises ConfigError, which says what to run, where stack or
    credential are missing.
    """
    connection, store, chosen = Connection.load(home), KeyStore(home), options or Options()
    credential = store.find_credential(role, int(chosen.clock().timestamp() * 1000), tenant=tenant)
    path = store.credential_path(credential.kid)
    topic = COMMANDS if role in COMMANDERS else EVENTS
    return kind(connection.confluent(USERS[role]), path, chosen, topic=topic)
