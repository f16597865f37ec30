"""The payloads that producers sign, as pydantic models; the JSON Schemas in ``schemas/`` are generated from them.

A payload says what happened and for whom. It says nothing that trust could rest on: channel, tier and permissions come
from the registry entry of the key that signed it. ``claimed_tier`` may lower a tier, never raise
it.
"""

import re
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    TypeAdapter,
    ValidationError,
    model_serializer,
)

from memsluice.errors import LimitExceeded, MalformedEvent
from memsluice.events import limits, strictjson
from memsluice.events.names import EventType


class Tier(IntEnum):
    """Trust tiers (seed 002), the most trusted first. The reference monitor trusts 1 to 3 and distrusts 4 and 5."""

    OPERATOR = 1
    USER_VERIFIED = 2
    USER_OBSERVED = 3
    EXTERNAL_TOOL = 4
    EXTERNAL_WEB = 5

    @property
    def trusted(self) -> bool:
        """Whether the reference monitor's provenance label of this tier is TRUSTED."""
        return self <= Tier.USER_OBSERVED


class Visibility(StrEnum):
    """Who can be given an entry: its session, its principal, or everybody of the tenant."""

    SESSION = "session"
    PRINCIPAL = "principal"
    SHARED = "shared"


class Kind(StrEnum):
    """What a write's content is: free text, or extracted facts (seed 002, pattern 3; :mod:`memsluice.events.facts`)."""

    TEXT = "text"
    FACTS = "facts"


class Zone(StrEnum):
    """Where an entry lands: what agents may follow, or outside content kept as data."""

    GUIDANCE = "guidance"
    EXTERNAL = "external"


class Origin(StrEnum):
    """What a session saw. ``open`` says that the platform opened the session and nothing was seen yet."""

    OPEN = "open"
    WEB = "web"
    TOOL = "tool"
    SKILL = "skill"
    UPLOAD = "upload"


class Action(StrEnum):
    """What a command does."""

    RELEASE = "release"
    REJECT = "reject"
    APPEAL = "appeal"
    DECLASSIFY = "declassify"
    PROMOTE = "promote"
    PROTECT = "protect"
    REVOKE = "revoke"
    WITHDRAW = "withdraw"
    RENEW = "renew"
    REPLAY = "replay"
    ACTIVATE = "activate"
    DISMISS = "dismiss"
    REOPEN = "reopen"
    NOTE = "note"
    ERASE = "erase"


_RFC3339 = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|[+-][0-9]{2}:[0-9]{2})")
_LIMIT = "Value error, limit: "  # as pydantic words a ValueError("limit: …")


def _bytes_at_most(maximum: int) -> AfterValidator:
    def check(text: str) -> str:
        size = len(text.encode("utf-8", "surrogatepass"))
        if size > maximum:
            raise ValueError(f"limit: {size} bytes of UTF-8, at most {maximum} allowed")
        return text

    return AfterValidator(check)


def _encodable(text: str) -> str:
    text.encode("utf-8")  # a lone surrogate would fail later, in the middle of a batch
    return text


def _rfc3339(moment: object) -> object:
    if isinstance(moment, datetime):
        return moment
    if isinstance(moment, str) and _RFC3339.fullmatch(moment):  # pydantic would also read a number of seconds
        return datetime.fromisoformat(moment)
    raise ValueError("is no RFC 3339 date and time")


def _aware(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("needs a time zone offset (RFC 3339)")
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("lies outside of the calendar") from None


Identifier = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:~/@+-]*$", max_length=limits.ID_CHARS_MAX)]
Name = Annotated[
    str, Field(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=limits.NAME_CHARS_MAX), AfterValidator(_encodable)
]
TENANT_PATTERN = r"^[a-z0-9][a-z0-9_-]*$"
Tenant = Annotated[str, Field(pattern=TENANT_PATTERN, max_length=limits.TENANT_CHARS_MAX)]
AnyTenant = Annotated[str, Field(pattern=r"^(\*|[a-z0-9][a-z0-9_-]*)$", max_length=limits.TENANT_CHARS_MAX)]
"""A tenant, or ``*`` for all."""
Digest = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Moment = Annotated[
    datetime,
    BeforeValidator(_rfc3339),
    AfterValidator(_aware),
    Field(json_schema_extra={"pattern": f"^{_RFC3339.pattern}$"}),
]
Reason = Annotated[str, Field(pattern=r"^[a-z_]{1,32}$")]
Count = Annotated[int, Field(ge=1, le=limits.OFFSET_MAX)]
Base64 = Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$", max_length=8_192)]
Content = Annotated[  # at most so many characters as bytes: the JSON Schemas can say only that
    str,
    Field(min_length=1, max_length=limits.CONTENT_BYTES_MAX),
    AfterValidator(_encodable),
    _bytes_at_most(limits.CONTENT_BYTES_MAX),
]
Question = Annotated[
    str,
    Field(min_length=1, max_length=limits.QUESTION_BYTES_MAX),
    AfterValidator(_encodable),
    _bytes_at_most(limits.QUESTION_BYTES_MAX),
]
PolicyText = Annotated[str, Field(min_length=2, max_length=limits.POLICY_CHARS_MAX), AfterValidator(_encodable)]
HeldRecord = Annotated[str, Field(min_length=2, max_length=limits.HELD_CHARS_MAX), AfterValidator(_encodable)]
RenewedRecord = Annotated[
    str,
    Field(min_length=2, max_length=limits.RENEWS_BYTES_MAX),
    AfterValidator(_encodable),
    _bytes_at_most(limits.RENEWS_BYTES_MAX),
]
SeenText = Annotated[
    str,
    Field(max_length=limits.CONTENT_BYTES_MAX),
    AfterValidator(_encodable),
    _bytes_at_most(limits.CONTENT_BYTES_MAX),
]


class Payload(BaseModel):
    """Fields common to all events. ``time`` is when it happened, as the producer says (RFC 3339)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Identifier
    tenant: Tenant
    time: Moment


class SessionPayload(Payload):
    """An event inside an agent's session, on behalf of a principal (the person)."""

    agent: Name
    principal: Name
    session: Name


class Write(SessionPayload):
    """Something wants to be remembered."""

    namespace: Name = "default"
    key: Name | None = None
    visibility: Visibility = Visibility.PRINCIPAL
    content: Content
    kind: Kind = Kind.TEXT
    parents: Annotated[tuple[Identifier, ...], Field(max_length=limits.PARENTS_MAX)] = ()
    origin: Name | None = None
    claimed_tier: Tier | None = None


class Returned(BaseModel):
    """One entry that a recall gave to the agent."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    object_id: Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$")]
    version: Annotated[int, Field(ge=0, le=limits.OFFSET_MAX)]
    event_id: Identifier
    tier: Tier
    taint: bool


class Recall(SessionPayload):
    """An agent asked its memory. Published and acknowledged before what it returned is shown to the agent.

    ``vector`` is the question's embedding as the reader searched with it: base64 of little-endian float16, at
    most 3,072 of them, of the deployment's encoder. ``withheld`` says how many entries were found and not returned, by
    reason. ``named`` says that entries were asked for by their names: nothing was searched, and no detector learns from
    the question. ``renews`` is one entry of ``returned``, as its record of memory.accepted.v1 (JSON text): its use
    may let it hold longer. Where they say nothing, the event has none of them.
    """

    namespace: Name = "default"
    question: Question
    zone: Zone = Zone.GUIDANCE
    returned: Annotated[tuple[Returned, ...], Field(max_length=limits.RETURNED_MAX)] = ()
    vector: Base64 | None = None
    withheld: Annotated[dict[Reason, Count], Field(max_length=limits.REASONS_MAX)] = Field(default_factory=dict)
    named: bool = False
    renews: RenewedRecord | None = None

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out what says nothing and was added later: such an event has the bytes that it always had."""
        value: dict[str, Any] = handler(self)
        for name in ("withheld", "named", "renews"):
            if not getattr(self, name):
                value.pop(name, None)
        return value


class Observation(SessionPayload):
    """A session saw outside content (or was opened). Published by the platform, never by the model."""

    origin: Origin
    digest: Digest | None = None
    content: SeenText | None = None


class Command(Payload):
    """A command, bound to a digest, with an expiry time. ``tenant`` is the one it concerns, or ``*`` for all.

    A command for all tenants is published once to every partition. One that lets content land carries it in ``held``
    (JSON text), since the gate's state keeps none: a release the sealed write, as memory.quarantine.v1 has it, a
    command about a landed entry that entry's record of memory.accepted.v1.
    """

    tenant: AnyTenant
    action: Action
    target: Name
    digest: Digest | None = None
    expires_at: Moment
    reason: Annotated[str, Field(max_length=limits.REASON_CHARS_MAX), AfterValidator(_encodable)] = ""
    parameters: Annotated[dict[Name, Name], Field(max_length=limits.PARAMETERS_MAX)] = Field(default_factory=dict)
    held: HeldRecord | None = None
    policy: PolicyText | None = None


AnyPayload = Write | Recall | Observation | Command
MODELS: dict[EventType, type[Write] | type[Recall] | type[Observation] | type[Command]] = {
    EventType.WRITE: Write,
    EventType.RECALL: Recall,
    EventType.OBSERVATION: Observation,
    EventType.COMMAND: Command,
}
Channel = Literal["user", "agent", "tool", "web", "skill", "upload", "operator"]


_TENANT: TypeAdapter[str] = TypeAdapter(Tenant)


def is_tenant(name: object) -> bool:
    """Return whether an event could name this tenant."""
    try:
        _TENANT.validate_python(name, strict=True)
    except ValidationError:
        return False
    return True


_FIELDS = {name for model in (*MODELS.values(), Returned) for name in model.model_fields}


def input_error(error: ValidationError) -> LimitExceeded | MalformedEvent:
    """Return what a failed validation means: the first offending field and why.

    Quotes neither the content nor a name that the sender chose.
    """
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    field = ".".join(str(part) if isinstance(part, int) or part in _FIELDS else "*" for part in first["loc"])
    too_large = first["type"] in ("too_long", "string_too_long") or first["msg"].startswith(_LIMIT)
    return (LimitExceeded if too_large else MalformedEvent)(first["msg"], field=field or "payload")


def parse_payload(event_type: EventType, payload: bytes) -> AnyPayload:
    """Read a signed payload's exact bytes: strict types, no repeated key, nothing after the object.

    Raises MalformedEvent or LimitExceeded; see :func:`input_error`.
    """
    try:
        parsed = MODELS[event_type].model_validate_json(payload, strict=True)
    except ValidationError as error:
        refused = input_error(error)
    else:
        strictjson.loads(payload, "payload", containers_max=None)
        return parsed
    raise refused  # out here, so that pydantic's error, which holds the input, is not its context


STAND_INS = {"agent": "unread", "principal": "unread", "question": "unread", "origin": Origin.WEB.value}
"""What a refused event must have and does not say. An origin that the gate does not know is outside content."""


def read_seen(event_type: EventType, payload: bytes, event_id: str, time: datetime) -> AnyPayload | None:
    """Return what a recall or an observation says that is not as its schema wants it; None without tenant or session.

    What breaks a rule or a limit is left out; ``event_id``, ``time`` and STAND_INS take the place of what must be
    there. Names that break their own limits are no session's: no write could be in it either.
    """
    try:
        said = strictjson.loads(payload, "payload", containers_max=None)
        return MODELS[event_type].model_validate(said)
    except MalformedEvent:  # no JSON, or with two readings
        return None
    except ValidationError as error:
        wrong = {str(one["loc"][0]) for one in error.errors(include_url=False, include_input=False) if one["loc"]}
    if not isinstance(said, dict):
        return None
    instead = {**STAND_INS, "id": event_id, "time": time}
    kept = {name: value for name, value in said.items() if name not in wrong}
    try:
        return MODELS[event_type].model_validate(kept | {name: instead[name] for name in wrong & instead.keys()})
    except ValidationError:
        return None
