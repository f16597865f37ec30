"""The settings of notices: a few lines of YAML in the home, or in a file that is named. No secret stands in them."""

import os
import stat
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator, model_validator

from memsluice.clock import duration_ms
from memsluice.deployment.paths import using
from memsluice.errors import ConfigError
from memsluice.escaping import visible
from memsluice.gate.policy import strictyaml

FILE = "notices.yaml"
FILE_BYTES_MAX = 64 * 1024
SECRET_BYTES_MAX = 4_096
SECRET_BYTES_MIN = 16
"""Shortest secret that a webhook is signed with."""
RECIPIENTS_MAX = 10
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
CONSOLE = "http://127.0.0.1:8714"
"""Where the console listens unless it is told otherwise."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


def _span_ms(value: Any) -> int:
    found = duration_ms(value) if isinstance(value, str) else None
    if not found:
        raise ValueError("is not a duration: write it like 90s, 10m, 4h or 1d")
    return found


class Secret(_Part):
    """Where a secret lies: a file that its owner alone can read, or an environment variable."""

    file: Path | None = None
    environment: str | None = Field(default=None, min_length=1)

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.file is None) == (self.environment is None):
            raise ValueError("name either a file or an environment variable")
        return self

    def read(self) -> SecretStr:
        """Return the secret, without the line break at its end. Raises ConfigError, which does not quote it."""
        if self.environment is not None:
            text = os.environ.get(self.environment, "")
            where = f"the environment variable {visible(self.environment, 80)}"
        else:
            assert self.file is not None
            where = visible(str(self.file))
            with using(self.file):
                if self.file.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
                    raise ConfigError(f"{where} can be read by others: run chmod 600 {where}")
                text = self.file.read_bytes()[: SECRET_BYTES_MAX + 1].decode("utf-8", "replace")
        secret = text.rstrip("\r\n")
        if not secret or len(secret) > SECRET_BYTES_MAX:
            raise ConfigError(f"{where} has no secret in it, or one of more than {SECRET_BYTES_MAX} characters")
        return SecretStr(secret)


class Webhook(_Part):
    """An address that is told by an HTTP POST, signed with a secret that its receiver knows, too."""

    url: str = Field(max_length=2_000)
    secret: Secret
    ca_file: Path | None = None

    @field_validator("url")
    @classmethod
    def _encrypted(cls, url: str) -> str:
        parts = urlsplit(url)
        if parts.hostname is None or not url.isascii() or not url.isprintable() or " " in url:
            raise ValueError("is not an address: write https://HOST/PATH")
        if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in LOOPBACK):
            raise ValueError("must begin with https:// (http:// is for this machine alone)")
        if parts.username is not None or parts.password is not None or parts.fragment:
            raise ValueError("must have no user, password or fragment in it: the notice is signed instead")
        parts.port  # noqa: B018 - raises ValueError for one that is none
        return url

    @property
    def host(self) -> str:
        """The host, which is all of the address that a log may have: a path may be a secret."""
        return urlsplit(self.url).hostname or ""


class Mail(_Part):
    """A mail server, and who is written to. Each recipient gets a mail of their own."""

    host: str = Field(min_length=1, max_length=253, pattern=r"^[A-Za-z0-9.:-]+$")
    port: int = Field(default=587, ge=1, le=65_535)
    tls: Literal["starttls", "tls", "none"] = "starttls"
    sender: str = Field(alias="from", max_length=254, pattern=r"^[^\s@<>,;]+@[^\s@<>,;]+$")
    to: tuple[str, ...] = Field(min_length=1, max_length=RECIPIENTS_MAX)
    user: str | None = Field(default=None, min_length=1, max_length=254)
    password: Secret | None = None
    ca_file: Path | None = None

    @field_validator("to")
    @classmethod
    def _addresses(cls, to: tuple[str, ...]) -> tuple[str, ...]:
        for one in to:
            name, at, domain = one.partition("@")
            if not (name and at and domain) or not one.isascii() or not one.isprintable() or set(one) & set(" <>,;"):
                raise ValueError(f"{visible(one, 80)!r} is not an address: write NAME@DOMAIN")
        return tuple(dict.fromkeys(to))

    @model_validator(mode="after")
    def _encrypted(self) -> Self:
        if self.tls == "none" and self.host not in LOOPBACK:
            raise ValueError("tls: none is for a mail server on this machine alone; write starttls or tls")
        if (self.user is None) != (self.password is None):
            raise ValueError("user and password go together")
        return self


class Growth(_Part):
    """A group is told of once it grew by so many within so long, and again when it grew by as many since."""

    by: int = Field(default=20, ge=1, le=100_000)
    within_ms: int = Field(default=600_000, alias="within")

    _within = field_validator("within_ms", mode="before")(_span_ms)


class Rules(_Part):
    """What is told. A rule that is null is off."""

    group_grew: Growth | None = Growth()
    pending_over_ms: int | None = Field(default=4 * 3_600_000, alias="pending_over")
    appeal: bool = True

    @field_validator("pending_over_ms", mode="before")
    @classmethod
    def _span(cls, value: Any) -> int | None:
        return None if value is None else _span_ms(value)


class NoticeSettings(_Part):
    """All settings. ``console`` is the address by which people reach the console: what links begin with."""

    console: str = Field(default=CONSOLE, max_length=500)
    tenants: tuple[str, ...] | None = Field(default=None, min_length=1, max_length=1_000)
    rules: Rules = Rules()
    webhook: Webhook | None = None
    mail: Mail | None = None

    @field_validator("console")
    @classmethod
    def _address(cls, url: str) -> str:
        parts = urlsplit(url)
        plain = url.isascii() and url.isprintable() and not set(url) & set(' <>"')
        if parts.scheme not in ("http", "https") or parts.hostname is None or not plain or parts.query:
            raise ValueError("is not an address: write https://HOST")
        return url.rstrip("/")

    @model_validator(mode="after")
    def _somebody(self) -> Self:
        if self.webhook is None and self.mail is None:
            raise ValueError("nobody would be told: write a webhook, a mail, or both")
        return self

    @property
    def visible_tenants(self) -> frozenset[str] | None:
        """The tenants that are told of; None is all of them."""
        return None if self.tenants is None else frozenset(self.tenants)


def load(path: Path) -> NoticeSettings:
    """Read the settings. Raises ConfigError, which names the field and the reason, and quotes no value."""
    name = visible(str(path))
    if not path.exists():
        raise ConfigError(f"there are no settings of notices at {name}: docs/notices.md shows what to write there")
    with using(path):
        data = path.read_bytes()
    if len(data) > FILE_BYTES_MAX:
        raise ConfigError(f"{name} is longer than {FILE_BYTES_MAX} bytes")
    try:
        value = strictyaml.load(data.decode("utf-8"))
        if not isinstance(value, dict):
            raise ConfigError(f"{name} is empty or no mapping: docs/notices.md shows what to write there")
        return NoticeSettings.model_validate(value)
    except UnicodeDecodeError:
        raise ConfigError(f"{name} is not UTF-8 text") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise ConfigError(f"{name}{line} is no YAML: correct the line") from None
    except ValidationError as error:
        wrong = [
            f"{'.'.join(map(str, one['loc'])) or 'file'}: {one['msg'].removeprefix('Value error, ')}"
            for one in error.errors(include_url=False, include_input=False)
        ]
        raise ConfigError(f"{name}: {visible('; '.join(wrong), 1_000)}") from None
