"""The registry: which credential may publish what, for whom, over which channel, and with which trust at best.

Tier and channel of an event come from here and never from its payload.
"""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import BaseModel, ConfigDict, Field, model_validator

from memsluice.envelope.keys import Key, Keyring, KeyState, Purpose
from memsluice.errors import CrossTenant, ExpiredKey, NotPermitted, RevokedKey, UnknownKey
from memsluice.events.models import Action, AnyPayload, AnyTenant, Channel, Command, Name, SessionPayload, Tier, Write
from memsluice.events.names import EventType

ANY = "*"


class Role(StrEnum):
    """What a credential is for. A process that runs an agent may hold a producer's, never a user channel's."""

    PRODUCER = "producer"
    READER = "reader"
    RUNTIME = "runtime"
    USER_CHANNEL = "user_channel"
    OPERATOR = "operator"
    REVIEWER = "reviewer"


PUBLISHES: dict[Role, frozenset[EventType]] = {
    Role.PRODUCER: frozenset({EventType.WRITE, EventType.COMMAND}),
    Role.READER: frozenset({EventType.RECALL}),
    Role.RUNTIME: frozenset({EventType.OBSERVATION}),
    Role.USER_CHANNEL: frozenset({EventType.WRITE, EventType.COMMAND}),
    Role.OPERATOR: frozenset({EventType.COMMAND, EventType.WRITE}),
    Role.REVIEWER: frozenset({EventType.COMMAND}),
}
COMMANDERS = frozenset({Role.OPERATOR, Role.REVIEWER})
"""Who may use the command topic, with Ed25519 keys alone. See :mod:`memsluice.gate.commands.dispatch`."""
BEST_TIER: dict[Channel, Tier] = {
    "operator": Tier.OPERATOR,
    "user": Tier.USER_VERIFIED,
    "agent": Tier.USER_OBSERVED,
    "tool": Tier.EXTERNAL_TOOL,
    "skill": Tier.EXTERNAL_TOOL,
    "upload": Tier.EXTERNAL_WEB,
    "web": Tier.EXTERNAL_WEB,
}
DEFAULT_TIER: dict[Channel, Tier] = {**BEST_TIER, "user": Tier.USER_OBSERVED}
"""What a credential gets that asks for none: what a person typed is observed, until that person confirms it."""
CHANNELS: dict[Role, frozenset[Channel]] = {
    Role.PRODUCER: frozenset({"agent", "tool", "web", "skill", "upload"}),
    Role.READER: frozenset({"agent"}),
    Role.RUNTIME: frozenset({"agent"}),
    Role.USER_CHANNEL: frozenset({"user"}),
    Role.OPERATOR: frozenset({"operator"}),
    Role.REVIEWER: frozenset({"operator"}),
}


def may_publish(role: Role, event_type: EventType, payload: AnyPayload) -> bool:
    """Whether a role may publish this. The only command of who is no commander is to appeal."""
    foreign = isinstance(payload, Command) and role not in COMMANDERS and payload.action is not Action.APPEAL
    return event_type in PUBLISHES[role] and not foreign


class Credential(BaseModel):
    """What one key may do. The key itself lies in the keyring under the same ``kid``.

    ``tenants``, ``agents`` and ``principals`` list whom it may speak for, each as an event can name it; ``["*"]`` is
    everybody. ``tier`` is the best tier it can give an event. ``not_after_ms`` (Unix ms) ends what it may publish.
    ``enrolled``: its private half was made by its holder and was never here.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kid: str = Field(min_length=1, max_length=128)
    role: Role
    channel: Channel = "agent"
    tier: Tier = Tier.USER_OBSERVED
    tenants: tuple[AnyTenant, ...] = Field(min_length=1, max_length=1_024)
    agents: tuple[Name, ...] = (ANY,)
    principals: tuple[Name, ...] = (ANY,)
    not_before_ms: int = 0
    not_after_ms: int | None = None
    note: str = Field(default="", max_length=200)
    enrolled: bool = False

    @property
    def person(self) -> str | None:
        """Who holds it, where it names one principal alone; None where it names several, or anybody."""
        return self.principals[0] if len(self.principals) == 1 and self.principals[0] != ANY else None

    @model_validator(mode="after")
    def _consistent(self) -> "Credential":
        if self.channel not in CHANNELS[self.role]:
            raise ValueError(f"channel: a {self.role.value} credential may not use channel {self.channel}")
        if self.tier < BEST_TIER[self.channel]:
            raise ValueError(f"tier: channel {self.channel} gives tier {BEST_TIER[self.channel].value} at best")
        return self

    def check(self, event_type: EventType, payload: AnyPayload, produced_ms: int) -> None:
        """Raise ExpiredKey, NotPermitted or CrossTenant where this credential may not have published this.

        ``produced_ms`` is the broker's append time: the producer's own clock could be set back.
        """
        self.check_time(produced_ms)
        if not may_publish(self.role, event_type, payload):
            raise NotPermitted(f"a {self.role.value} credential may not publish {event_type.value}", field="type")
        if ANY not in self.tenants and payload.tenant not in self.tenants:
            raise CrossTenant("the credential is not of this tenant", field="tenant")
        if isinstance(payload, SessionPayload):
            if ANY not in self.agents and payload.agent not in self.agents:
                raise NotPermitted("the credential may not speak for this agent", field="agent")
            if ANY not in self.principals and payload.principal not in self.principals:
                raise NotPermitted("the credential may not speak for this principal", field="principal")

    def check_time(self, produced_ms: int) -> None:
        """Raise ExpiredKey where it was not valid at that time of the broker's (Unix ms)."""
        if produced_ms < self.not_before_ms:
            raise ExpiredKey("the credential is not valid yet", field="keyid")
        if self.not_after_ms is not None and produced_ms >= self.not_after_ms:
            raise ExpiredKey("the credential has expired; rotate it or issue a new one", field="keyid")

    def effective_tier(self, payload: AnyPayload) -> Tier:
        """Return the tier of an event: the registry's, or a lower one (larger number) that the payload asks for."""
        claimed = payload.claimed_tier if isinstance(payload, Write) else None
        return self.tier if claimed is None else max(self.tier, claimed)


class Registry:
    """Credentials by ``kid``."""

    def __init__(self, credentials: tuple[Credential, ...] | list[Credential]) -> None:
        self._credentials = {credential.kid: credential for credential in credentials}

    def __contains__(self, kid: object) -> bool:
        return kid in self._credentials

    def get(self, kid: str) -> Credential:
        """Return the credential. Raises UnknownKey."""
        try:
            return self._credentials[kid]
        except KeyError:
            raise UnknownKey("key id is not in the registry", field="keyid") from None

    def all(self) -> list[Credential]:
        """Return all credentials, by kid."""
        return [self._credentials[kid] for kid in sorted(self._credentials)]

    def with_credential(self, credential: Credential) -> "Registry":
        """Return a registry with this credential added or replaced."""
        return Registry([*(c for c in self.all() if c.kid != credential.kid), credential])


def credential_of(kid: str, keyring: Keyring, registry: Registry) -> Credential:
    """Return what a key that signed something may do. Raises UnknownKey, RevokedKey."""
    credential, key = registry.get(kid), keyring.get(kid)
    if key.purpose is not Purpose.CREDENTIAL:
        raise UnknownKey("key id is no credential", field="keyid")
    if key.state is KeyState.REVOKED:
        raise RevokedKey("key was revoked", field="keyid")
    return credential


def check_persons(kids: Sequence[str], keyring: Keyring, registry: Registry) -> None:
    """Raise NotPermitted where two of a command's signers are one person, or one key under two ids; UnknownKey."""
    if len(kids) < 2:
        return
    persons = [person for kid in kids if (person := registry.get(kid).person) is not None]
    publics = [public for kid in kids if (public := keyring.get(kid).public) is not None]
    if len(set(persons)) != len(persons) or len(set(publics)) != len(publics):
        raise NotPermitted("two of them are one person's, and every approval is another person's", field="signatures")


def check_signing_time(key: Key, append_ms: int) -> None:
    """Raise ExpiredKey where a key may not have signed what the broker appended then (Unix ms)."""
    if append_ms < key.not_before_ms or (key.not_after_ms is not None and append_ms >= key.not_after_ms):
        raise ExpiredKey("key was outside of its signing period", field="keyid")
