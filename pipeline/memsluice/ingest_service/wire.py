"""What the ingest service is asked and answers, as JSON."""

from pydantic import BaseModel, ConfigDict, Field

from memsluice.events.limits import PARENTS_MAX
from memsluice.events.models import (
    Content,
    Digest,
    Identifier,
    Kind,
    Moment,
    Name,
    Origin,
    SeenText,
    Tenant,
    Tier,
    Visibility,
)
from memsluice.memory.outcome import Status

EVENTS, WRITES, OBSERVATIONS = "/v1/events", "/v1/writes", "/v1/observations"
STATUS = "/v1/events/{event_id:path}"
WAIT_S_MAX = 30


class _Request(BaseModel):
    """Whose event it is. ``tenant`` may be left out by a credential of one tenant, ``id`` and ``time`` by everybody."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: Identifier | None = None
    tenant: Tenant | None = None
    time: Moment | None = None
    agent: Name
    principal: Name
    session: Name


class WriteRequest(_Request):
    """Something wants to be remembered: what the service is to sign as memory.write.v1."""

    namespace: Name = "default"
    key: Name | None = None
    visibility: Visibility = Visibility.PRINCIPAL
    content: Content
    kind: Kind = Kind.TEXT
    parents: tuple[Identifier, ...] = Field(default=(), max_length=PARENTS_MAX)
    origin: Name | None = None
    claimed_tier: Tier | None = None


class ObservationRequest(_Request):
    """A session was opened, or saw outside content: what the service is to sign as memory.observation.v1."""

    origin: Origin
    digest: Digest | None = None
    content: SeenText | None = None


class PlaceModel(BaseModel):
    """Where an event lies in the intake."""

    model_config = ConfigDict(frozen=True)

    topic: str
    partition: int
    offset: int


class Accepted(BaseModel):
    """The broker has the event. That says nothing of what the gate will decide: ``url`` does."""

    model_config = ConfigDict(frozen=True)

    id: str
    tenant: str
    place: PlaceModel
    url: str


class Reason(BaseModel):
    """A reason of a verdict, or of a dead letter: its stable code, and what that means."""

    model_config = ConfigDict(frozen=True)

    code: str
    words: str


class Later(BaseModel):
    """What was decided about an event since: an ``action`` of a reviewer, operator or appeal, or ``look_back``.

    ``landed`` says whether it put the entry into memory, ``decided_ms`` when it was decided (Unix ms).
    """

    model_config = ConfigDict(frozen=True)

    action: str
    decision: str
    landed: bool
    reasons: list[Reason]
    decided_ms: int


class EventStatus(BaseModel):
    """What became of an event when it came, and what was decided about it ``later``, oldest first.

    ``object_id`` and ``version`` are the entry's where there is one; ``then`` says what its writer can do.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    tenant: str
    status: Status
    reasons: list[Reason]
    words: str
    then: str
    place: PlaceModel | None
    object_id: str | None
    version: int | None
    later: list[Later]
