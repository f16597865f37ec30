"""Settings of a console: ``console.toml`` in its home, all of them optional."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

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
    """What a console is told. ``url`` is how browsers reach it, where that is not how it listens."""

    url: str | None = Field(default=None, pattern=r"^https?://[^/?#\s]+$")
    idle_minutes: int = Field(default=30, ge=1, le=480)
    life_hours: int = Field(default=8, ge=1, le=24)
    requests_per_s: int = Field(default=20, ge=1, le=10_000)
    requests_at_once: int = Field(default=100, ge=1, le=100_000)
    step_up: Literal["always", "bulk", "never"] = "never"
    oidc: Oidc | None = None

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
