"""Keyring, registry and credentials as files: their formats, and reading and writing them safely.

``keyring.json`` and ``credentials/*.json`` hold secrets and are refused when anybody but their owner can read them;
``registry.yaml`` holds none and is refused when anybody but its owner can change it. Every write is atomic: a reader
sees the old file or the new one, also after a crash.
"""

import base64
import binascii
import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, SecretBytes, ValidationError, field_validator

from memsluice.deployment.paths import in_words
from memsluice.envelope.codec import from_json
from memsluice.envelope.keys import HMAC_KEY_BYTES, Algorithm, Ed25519Key, HmacKey, Key, Keyring, KeyState, Purpose
from memsluice.envelope.registry import ANY, Credential, Registry, Role
from memsluice.errors import ConfigError, MalformedEvent
from memsluice.events.limits import OFFSET_MAX
from memsluice.events.models import AnyTenant, Channel, Name

FILE_BYTES_MAX = 16 * 1024 * 1024
FORMAT = 1
RESTORE = "restore it from your backup, and the other key files of the home with it"
KID_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$"


class SigningCredential(BaseModel):
    """What one producer, reader, runtime, user channel or operator process holds: its key and what it is for.

    The gate trusts nothing here but the key: role, channel and grants count as the registry has them. Times are Unix
    milliseconds. ``successor`` names the credential that took over at a rotation; its file lies beside this one.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    format: int = Field(default=FORMAT, ge=FORMAT, le=FORMAT)
    kid: str = Field(pattern=KID_PATTERN)
    role: Role
    channel: Channel
    algorithm: Algorithm
    secret: SecretBytes
    tenants: tuple[AnyTenant, ...]
    agents: tuple[Name, ...] = (ANY,)
    principals: tuple[Name, ...] = (ANY,)
    not_before_ms: int = 0
    not_after_ms: int | None = None
    successor: str | None = Field(default=None, pattern=KID_PATTERN)

    @field_validator("secret")
    @classmethod
    def _length(cls, secret: SecretBytes) -> SecretBytes:
        if len(secret.get_secret_value()) != HMAC_KEY_BYTES:
            raise ValueError(f"must be {HMAC_KEY_BYTES} bytes")
        return secret

    def signer(self) -> HmacKey | Ed25519Key:
        """Return the key as a signer."""
        secret = self.secret.get_secret_value()
        if self.algorithm is Algorithm.HMAC_SHA256:
            return HmacKey(self.kid, secret)
        return Ed25519Key(self.kid, secret=secret, public=None)

    def signs_at(self, now_ms: int) -> bool:
        """Whether the credential may sign at this time."""
        return self.not_before_ms <= now_ms and (self.not_after_ms is None or now_ms < self.not_after_ms)

    def speaks_for(self, tenant: str) -> bool:
        """Whether its grants, as the file has them, include the tenant."""
        return ANY in self.tenants or tenant in self.tenants


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _data(text: Any, what: str) -> bytes | None:
    if text is None:
        return None
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError, TypeError):
        raise ConfigError(f"{what} is not base64 text") from None
    if len(data) != HMAC_KEY_BYTES:
        raise ConfigError(f"{what} has {len(data)} bytes, and must have {HMAC_KEY_BYTES}")
    return data


def keyring_to_bytes(keys: Iterable[Key]) -> bytes:
    """Return the JSON of a keyring file, secrets included."""
    rows = [
        {
            "kid": key.kid,
            "purpose": key.purpose.value,
            "algorithm": key.algorithm.value,
            "secret": _text(key.secret),
            "public": _text(key.public),
            "not_before_ms": key.not_before_ms,
            "not_after_ms": key.not_after_ms,
            "state": key.state.value,
            **({} if key.tenant is None else {"tenant": key.tenant}),
        }
        for key in sorted(keys, key=lambda key: key.kid)
    ]
    return orjson.dumps({"format": FORMAT, "keys": rows}, option=orjson.OPT_INDENT_2) + b"\n"


def keyring_from_bytes(data: bytes, source: str) -> Keyring:
    """Read a keyring file. Raises ConfigError naming the key and the field, never quoting a secret."""
    try:
        raw = from_json(data)
    except MalformedEvent:
        raise ConfigError(f"{source} is not JSON, so it is damaged: {RESTORE}") from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT or not isinstance(raw.get("keys"), list):
        raise ConfigError(f"{source} is not a keyring of format {FORMAT}: {RESTORE}")
    keys: dict[str, Key] = {}
    for number, row in enumerate(raw["keys"]):
        key = _key(row, f"{source}: keys.{number}")
        if key.kid in keys:
            raise ConfigError(f"{source}: key id {key.kid} is listed twice")
        keys[key.kid] = key
    return Keyring(keys.values())


def _moment(value: Any) -> int:
    """Return Unix milliseconds that can be written again. Raises ValueError."""
    if type(value) is not int or not 0 <= value <= OFFSET_MAX:
        raise ValueError
    return value


def _word(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _key(row: Any, where: str) -> Key:
    try:
        return Key(
            kid=_word(row["kid"]),
            purpose=Purpose(row["purpose"]),
            algorithm=Algorithm(row["algorithm"]),
            secret=_data(row["secret"], f"{where}.secret"),
            public=_data(row["public"], f"{where}.public"),
            not_before_ms=_moment(row["not_before_ms"]),
            not_after_ms=None if row["not_after_ms"] is None else _moment(row["not_after_ms"]),
            state=KeyState(row["state"]),
            tenant=None if row.get("tenant") is None else _word(row["tenant"]),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        name = f" ({error})" if isinstance(error, KeyError) else ""
        raise ConfigError(f"{where}: a field is missing or not valid{name}") from None


def registry_to_bytes(credentials: Iterable[Credential]) -> bytes:
    """Return the YAML of a registry file; fields at their default are left out."""
    import yaml  # a process that only publishes reads and writes no YAML

    rows = [
        credential.model_dump(mode="json", exclude_defaults=True)
        for credential in sorted(credentials, key=lambda credential: credential.kid)
    ]
    head = "# Which credential may publish what. Edit by `memsluice keys`; processes re-read it within a second.\n"

    body: str = yaml.safe_dump({"format": FORMAT, "credentials": rows}, sort_keys=False)
    return (head + body).encode()


def registry_from_bytes(data: bytes, source: str) -> Registry:
    """Read a registry file. Raises ConfigError naming the credential and the field."""
    import yaml

    try:
        raw = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 - safe, in C
    except Exception:  # PyYAML raises ValueError to RecursionError on what only looks like YAML
        raise ConfigError(f"{source} is not YAML, so it is damaged: {RESTORE}") from None
    if not isinstance(raw, dict) or raw.get("format") != FORMAT or not isinstance(raw.get("credentials"), list):
        raise ConfigError(f"{source} is not a registry of format {FORMAT}: {RESTORE}")
    credentials: dict[str, Credential] = {}
    for number, row in enumerate(raw["credentials"]):
        try:
            credential = Credential.model_validate(row)
        except ValidationError as error:
            raise ConfigError(f"{source}: credentials.{number}: {problems(error)}") from None
        if credential.kid in credentials:
            raise ConfigError(f"{source}: key id {credential.kid} is listed twice")
        credentials[credential.kid] = credential
    return Registry(list(credentials.values()))


def credential_to_bytes(credential: SigningCredential) -> bytes:
    """Return the JSON of a credential file, its secret included."""
    value = credential.model_dump(mode="json", exclude={"secret"})
    value["secret"] = _text(credential.secret.get_secret_value())
    return orjson.dumps(value, option=orjson.OPT_INDENT_2) + b"\n"


def credential_from_bytes(data: bytes, source: str) -> SigningCredential:
    """Read a credential file. Raises ConfigError naming the field, never quoting the secret."""
    try:
        raw = from_json(data)
    except MalformedEvent:
        raise ConfigError(f"{source} is not JSON") from None
    if not isinstance(raw, dict):
        raise ConfigError(f"{source} is not a credential")
    try:
        return SigningCredential.model_validate({**raw, "secret": _data(raw.get("secret"), f"{source}: secret")})
    except ValidationError as error:
        raise ConfigError(f"{source}: {problems(error)}") from None


def problems(error: ValidationError) -> str:
    """Return a validation error's fields and messages, without the input it quotes.

    A rule over several fields has no place of its own: its message names them.
    """
    # The input may hold a secret.
    found = ((".".join(map(str, item["loc"])), item["msg"].removeprefix("Value error, ")) for item in error.errors())
    return "; ".join(f"{place}: {what}" if place else what for place, what in found)


def read_guarded(path: Path, *, secret: bool, remedy: str) -> bytes:
    """Return a file's bytes, having checked who else could have read (``secret``) or changed it.

    ``remedy`` says what to do where the file is missing. Raises ConfigError.
    """
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            if secret and mode & 0o077:
                raise ConfigError(f"{path} can be read by other users (mode {mode:04o}); run: chmod 600 {path}")
            if mode & 0o022:
                raise ConfigError(f"{path} can be changed by other users (mode {mode:04o}); run: chmod go-w {path}")
            data = file.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise ConfigError(f"{path} is missing; {remedy}") from None
    except OSError as error:
        raise ConfigError(in_words(error, path)) from None
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{path} is larger than {FILE_BYTES_MAX} bytes")
    return data


def write_atomic(path: Path, data: bytes, fsync: Callable[[int], None] = os.fsync) -> None:
    """Write a file of mode 0600: to a draft beside it, flushed to the disk, then renamed over it.

    The directory is flushed too, so that the rename survives a power loss.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), 0o600)
            file.write(data)
            file.flush()
            fsync(file.fileno())
        draft.replace(path)
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise ConfigError(in_words(error, path)) from None
