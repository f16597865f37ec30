"""Settings of a console: ``console.toml`` in its home, all of them optional."""

import ipaddress
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from memsluice.deployment.paths import using
from memsluice.errors import ConfigError

FILE = "console.toml"


class Part(BaseModel):
    """A part of the settings: a field that it does not know is an error."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Person(Part):
    """Whom a claim of the identity provider lets in, and as what. ``tenants`` ["*"] are all."""

    claim: str
    value: str
    role: Literal["reader", "reviewer", "operator"]
    tenants: tuple[str, ...] = Field(min_length=1)


class Oidc(Part):
    """An OpenID Connect provider. ``secret_file`` has the client's secret, where the provider gave one."""

    issuer: str
    client_id: str
    secret_file: Path | None = None
    scopes: str = "openid profile email"
    name_claim: str = "email"
    people: tuple[Person, ...] = Field(min_length=1)


class Settings(Part):
    """What a console is told. ``url`` is how browsers reach it, where that is not how it listens.

    ``trusted_proxies`` are addresses and networks of proxies in front of it: whom one of these names in
    ``X-Forwarded-For`` counts as who asks, and whom nobody else names. Without any, a proxy on this machine is trusted.
    """

    url: str | None = Field(default=None, pattern=r"^https?://[^/?#\s]+$")
    idle_minutes: int = Field(default=30, ge=1, le=480)
    life_hours: int = Field(default=8, ge=1, le=24)
    requests_per_s: int = Field(default=20, ge=1, le=10_000)
    requests_at_once: int = Field(default=100, ge=1, le=100_000)
    trusted_proxies: tuple[str, ...] = Field(default=(), max_length=100)
    step_up: Literal["always", "bulk", "never"] = "never"
    oidc: Oidc | None = None

    @field_validator("trusted_proxies")
    @classmethod
    def _addresses(cls, named: tuple[str, ...]) -> tuple[str, ...]:
        """Refuse what is no address and no network: whoever is trusted says who asks, so that a slip trusts nobody."""
        for one in named:
            try:
                ipaddress.ip_network(one)
            except ValueError:
                raise ValueError("name addresses, such as 10.1.2.3, and networks, such as 10.1.0.0/16") from None
        return named

    @classmethod
    def read(cls, home: Path) -> "Settings":
        """Return the settings of a home, the defaults where it has no file. Raises ConfigError, naming the field."""
        file = home / FILE
        if not file.exists():
            return cls()
        try:
            with using(file):
                values = tomllib.loads(file.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file} is no TOML: {error}") from None
        return cls.checked(values, str(file))

    @classmethod
    def checked(cls, values: Mapping[str, Any], where: str) -> "Settings":
        """Return the settings of these values. Raises ConfigError, which names the field."""
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            first = error.errors(include_input=False, include_url=False)[0]
            field = ".".join(str(part) for part in first["loc"])
            raise ConfigError(f"{where}: {field}: {first['msg']}") from None
