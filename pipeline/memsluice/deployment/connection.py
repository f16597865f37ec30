"""How to reach the broker and the store, and as whom.

Three sources, first found: a file named by ``MEMSLUICE_CONNECTION`` (YAML or JSON, for a deployment with its own
broker and store), the environment (``MEMSLUICE_BOOTSTRAP`` …), the running local stack's ``stack.json``.
Passwords are :class:`~pydantic.SecretStr`: they appear neither in ``repr`` nor in logs.
"""

import json
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError

from memsluice.deployment.paths import (
    BOOTSTRAP_VARIABLE,
    FILE_VARIABLE,
    home_dir,
    in_words,
    stack_file,
    write_private,
)
from memsluice.errors import ConfigError

FILE_BYTES_MAX = 64 * 1024


class Connection(BaseModel):
    """Addresses and credentials of one deployment."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    bootstrap: str = Field(min_length=1)
    """Kafka's bootstrap servers, ``host:port[,host:port…]``."""
    security_protocol: Literal["SASL_PLAINTEXT", "SASL_SSL"] = "SASL_SSL"
    """SASL_PLAINTEXT belongs on loopback only, which is where the local stack uses it."""
    sasl_mechanism: Literal["SCRAM-SHA-512", "SCRAM-SHA-256", "PLAIN"] = "SCRAM-SHA-512"
    ca_file: str | None = None
    """PEM file of the authority that signed the broker's certificate; None: the system's."""
    users: dict[str, SecretStr] = Field(default_factory=dict)
    """Kafka password of each user."""
    weaviate_host: str = "127.0.0.1"
    weaviate_http_port: int = Field(ge=1, le=65535)
    weaviate_grpc_port: int = Field(ge=1, le=65535)
    weaviate_secure: bool = False
    """Whether the store is reached by TLS."""
    weaviate_keys: dict[str, SecretStr] = Field(default_factory=dict)
    """Weaviate API key of each user."""

    @classmethod
    def load(cls, home: Path | None = None, environment: Mapping[str, str] | None = None) -> "Connection":
        """Return the connection: of the stack at ``home`` if given, else from the first source that is there.

        Raises ConfigError, which says what to do, when there is none or it is not valid.
        """
        variables = os.environ if environment is None else environment
        if home is None:
            if file := variables.get(FILE_VARIABLE):
                return cls.from_file(Path(file).expanduser())
            if variables.get(BOOTSTRAP_VARIABLE):
                return cls.from_environment(variables)
        path = stack_file(home_dir(home))
        if not path.exists():
            raise ConfigError(
                f"There is no stack at {path.parent}: start one with `memsluice stack up`, or name a file with the "
                f"addresses of your own broker and store by {FILE_VARIABLE}=FILE"
            )
        return _validate(read_mapping(path).get("connection"), str(path))

    @classmethod
    def from_file(cls, path: Path) -> "Connection":
        """Read a YAML or JSON file with this model's fields. Raises ConfigError."""
        return _validate(read_mapping(path), str(path))

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> "Connection":
        """Build the connection from variables: ``MEMSLUICE_`` and the field's name in capitals.

        Secrets are one variable each: ``MEMSLUICE_KAFKA_PASSWORD_SEAL``, ``MEMSLUICE_WEAVIATE_KEY_LAND``.
        """
        raw: dict[str, Any] = {"users": {}, "weaviate_keys": {}}
        for name in cls.model_fields:
            if name not in raw and (value := environment.get(f"MEMSLUICE_{name.upper()}")):
                raw[name] = value
        for prefix, field in (("MEMSLUICE_KAFKA_PASSWORD_", "users"), ("MEMSLUICE_WEAVIATE_KEY_", "weaviate_keys")):
            for variable, value in environment.items():
                if variable.startswith(prefix):
                    raw[field][variable.removeprefix(prefix).lower()] = value
        return _validate(raw, "the environment (MEMSLUICE_…)")

    def save(self, path: Path) -> None:
        """Write the connection with its secrets to ``path`` (mode 0600), readable by :meth:`from_file`."""
        write_private(path, json.dumps(self.with_secrets(), indent=1) + "\n")

    def with_secrets(self) -> dict[str, Any]:
        """Return the fields as plain JSON types, secrets included: for a private file only."""
        plain = self.model_dump(mode="json")
        plain["users"] = {user: secret.get_secret_value() for user, secret in self.users.items()}
        plain["weaviate_keys"] = {user: secret.get_secret_value() for user, secret in self.weaviate_keys.items()}
        return plain

    def weaviate_url(self, path: str) -> str:
        """Return the address of a path below the store's ``/v1/``."""
        scheme = "https" if self.weaviate_secure else "http"
        return f"{scheme}://{self.weaviate_host}:{self.weaviate_http_port}/v1/{path}"

    @property
    def weaviate_ready_url(self) -> str:
        """Where the store says that it is ready; that takes no key and changes nothing."""
        return self.weaviate_url(".well-known/ready")

    def password(self, user: str) -> str:
        """Return a Kafka user's password. Raises ConfigError for a user that is not listed."""
        return _secret(self.users, user, "Kafka")

    def weaviate_key(self, user: str) -> str:
        """Return a Weaviate user's API key. Raises ConfigError for a user that is not listed."""
        return _secret(self.weaviate_keys, user, "Weaviate")

    def confluent(self, user: str) -> dict[str, Any]:
        """Return the librdkafka settings to connect as ``user``."""
        settings: dict[str, Any] = {
            "bootstrap.servers": self.bootstrap,
            "security.protocol": self.security_protocol,
            "sasl.mechanism": self.sasl_mechanism,
            "sasl.username": user,
            "sasl.password": self.password(user),
        }
        if self.ca_file:
            settings["ssl.ca.location"] = self.ca_file
        return settings

    def aiokafka(self, user: str) -> dict[str, Any]:
        """Return the keyword arguments of any aiokafka client to connect as ``user``."""
        settings: dict[str, Any] = {
            "bootstrap_servers": self.bootstrap,
            "security_protocol": self.security_protocol,
            "sasl_mechanism": self.sasl_mechanism,
            "sasl_plain_username": user,
            "sasl_plain_password": self.password(user),
        }
        if self.security_protocol == "SASL_SSL":
            settings["ssl_context"] = self._ssl_context()
        return settings

    def faust_credentials(self, user: str) -> Any:
        """Return ``faust.SASLCredentials`` for ``broker_credentials`` (Faust is imported here, not before)."""
        import faust

        secure = {"ssl_context": self._ssl_context()} if self.security_protocol == "SASL_SSL" else {}
        return faust.SASLCredentials(
            username=user, password=self.password(user), mechanism=self.sasl_mechanism, **secure
        )

    def faust_broker(self) -> list[str]:
        """Return the value of Faust's ``broker`` setting: one ``kafka://`` URL a bootstrap server."""
        return [f"kafka://{server.strip()}" for server in self.bootstrap.split(",")]

    def _ssl_context(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.ca_file)


def _secret(secrets: Mapping[str, SecretStr], user: str, what: str) -> str:
    if user not in secrets:
        known = ", ".join(sorted(secrets)) or "none"
        field, variable = ("users", "KAFKA_PASSWORD") if what == "Kafka" else ("weaviate_keys", "WEAVIATE_KEY")
        raise ConfigError(
            f"The connection has no credentials of {what} user {user!r} (it has those of: {known}): add them under "
            f"{field} in the connection file, or set MEMSLUICE_{variable}_{user.upper()}"
        )
    return secrets[user].get_secret_value()


def read_mapping(path: Path) -> dict[str, Any]:
    """Read a YAML or JSON file that holds a mapping. Raises ConfigError, which never quotes the content."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"the connection file {in_words(error, path)}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not a connection file: it is not UTF-8 text") from error
    if len(text) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} is larger than {FILE_BYTES_MAX} bytes, so it is not a connection file")
    try:
        raw = json.loads(text)
    except (ValueError, RecursionError):
        raw = _yaml(text, path)
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} is not a connection file: it must hold a mapping of settings")
    return raw


def _yaml(text: str, path: Path) -> Any:
    import yaml  # not every process reads one

    try:
        return yaml.safe_load(text)
    except Exception as error:  # PyYAML raises ValueError to RecursionError on what only looks like YAML
        raise ConfigError(f"{path} is neither YAML nor JSON") from error


def _validate(raw: Any, source: str) -> Connection:
    try:
        return Connection.model_validate(raw)
    except ValidationError as error:
        # Field and message only: pydantic's own text quotes the input, and the input holds passwords.
        problems = "; ".join(f"{'.'.join(map(str, item['loc'])) or 'file'}: {item['msg']}" for item in error.errors())
        raise ConfigError(f"Connection in {source} is not valid: {problems}") from None


def quiet(settings: dict[str, object]) -> dict[str, object]:
    """Return librdkafka settings that keep a refused connection off the terminal: the caller reports it."""
    return {**settings, "log_level": 0, "error_cb": lambda _error: None}
