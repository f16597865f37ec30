"""``stack.json``: what one local stack keeps over its restarts."""

import base64
import json
import secrets
import uuid
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, SecretStr, ValidationError

from memsluice.deployment.connection import Connection, read_mapping
from memsluice.deployment.layout import Layout
from memsluice.deployment.paths import write_private
from memsluice.devstack import kafka, ports, versions, weaviate
from memsluice.errors import ConfigError, StackError
from memsluice.topics.names import KAFKA_USERS, WEAVIATE_USERS

TOKEN_BYTES = 24
"""Entropy of each password and key; 32 URL-safe characters, which need no quoting anywhere."""


class StackFile(BaseModel):
    """Versions, ports and credentials of one stack."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: int = 1
    kafka_version: str = versions.KAFKA
    weaviate_version: str = versions.WEAVIATE
    cluster_id: str
    ports: dict[str, int]
    cluster_password: SecretStr
    """Guards Weaviate's node-to-node interface; no client uses it."""
    connection: Connection

    @classmethod
    def read(cls, layout: Layout) -> "StackFile | None":
        """Return the file's content, None where there is no file. Raises StackError when it is damaged."""
        if not layout.stack_file.exists():
            return None
        try:
            return cls.model_validate(read_mapping(layout.stack_file))
        except ConfigError as error:
            trouble = str(error)
        except ValidationError as error:
            fields = ", ".join(sorted({str(item["loc"][0]) for item in error.errors() if item["loc"]}))
            trouble = f"{layout.stack_file} is damaged or of another version: {fields}"
        raise StackError(
            f"{trouble}. It holds the passwords that the stack's data was made with: restore a copy, or start over "
            "with `memsluice stack down --wipe`"
        )

    def write(self, layout: Layout) -> None:
        """Save with mode 0600."""
        plain: dict[str, Any] = self.model_dump(mode="json", exclude={"connection", "cluster_password"})
        plain["cluster_password"] = self.cluster_password.get_secret_value()
        plain["connection"] = self.connection.with_secrets()
        write_private(layout.stack_file, json.dumps(plain, indent=1) + "\n")


def next_start(previous: StackFile | None, token: Callable[[int], str] = secrets.token_urlsafe) -> StackFile:
    """Return the content for the coming start: the previous one's ports where still free, and all its credentials.

    Raises StackError if the data belongs to versions other than the pinned ones.
    """
    if previous is not None and (previous.kafka_version, previous.weaviate_version) != (
        versions.KAFKA,
        versions.WEAVIATE,
    ):
        raise StackError(
            f"This stack's data is of Kafka {previous.kafka_version} and Weaviate {previous.weaviate_version}, but "
            f"this version runs {versions.KAFKA} and {versions.WEAVIATE}. Start over with "
            "`memsluice stack down --wipe`, or use another home with MEMSLUICE_HOME=DIR"
        )
    free = ports.pick([*kafka.PORTS, *weaviate.PORTS], previous.ports if previous else {})
    if previous is not None:
        users = {user: SecretStr(token(TOKEN_BYTES)) for user in KAFKA_USERS} | previous.connection.users
        known = previous.connection.model_copy(update={"users": users})  # a version may bring users of its own
        return previous.model_copy(update={"ports": free, "connection": _connect(free, known)})
    first = Connection(
        bootstrap="unset",
        security_protocol="SASL_PLAINTEXT",
        users={user: SecretStr(token(TOKEN_BYTES)) for user in KAFKA_USERS},
        weaviate_http_port=free["weaviate"],
        weaviate_grpc_port=free["weaviate-grpc"],
        weaviate_keys={user: SecretStr(token(TOKEN_BYTES)) for user in WEAVIATE_USERS},
    )
    return StackFile(
        cluster_id=base64.b64encode(uuid.uuid4().bytes, altchars=b"Ab").decode().rstrip("="),  # no leading dash
        ports=free,
        cluster_password=SecretStr(token(TOKEN_BYTES)),
        connection=_connect(free, first),
    )


def _connect(free: Mapping[str, int], connection: Connection) -> Connection:
    return connection.model_copy(
        update={
            "bootstrap": f"{ports.LOOPBACK}:{free['kafka']}",
            "weaviate_http_port": free["weaviate"],
            "weaviate_grpc_port": free["weaviate-grpc"],
        }
    )
