"""What the recall service is asked and answers, as JSON: the same on both sides."""

from collections import Counter
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from memsluice.envelope.seals import Admission
from memsluice.events.limits import RETURNED_MAX
from memsluice.events.models import Name, Question, Tenant, Tier, Visibility, Zone
from memsluice.recall.reader import VerifiedEntry
from memsluice.recall.recaller import Question as Asked
from memsluice.recall.recaller import Recalled
from memsluice.recall.withheld import Flag, Withheld

PATH = "/v1/recall"
ENTRIES_PATH = "/v1/entries"
LINES = "application/x-ndjson"
"""Asked for in ``Accept``: one line an entry as it is written, and the rest of the answer in the last line."""
NAMED_MAX = 1_000
"""Entries that may be asked for by their ids at once: as many as a recaller can name."""
TOO_MANY = "too_many_entries"
"""The problem's code where more lie in a scope than can be listed."""
ObjectId = Annotated[str, Field(pattern=r"^[0-9a-f-]{36}$")]


class RecallRequest(BaseModel):
    """Who asks what. Strings as in a recall's event (memory.recall.v1)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    tenant: Tenant
    question: Question
    agent: Name
    principal: Name
    session: Name
    namespace: Name = "default"
    k: Annotated[int, Field(ge=1, le=RETURNED_MAX)] = 5
    zone: Zone = Zone.GUIDANCE
    tier_max: Annotated[int, Field(ge=1, le=5)] = 5

    def asked(self) -> Asked:
        """Return it as a recaller takes it."""
        return Asked(
            self.tenant, self.question, self.agent, self.principal, self.session, self.namespace, self.zone, self.k,
            Tier(self.tier_max),
        )  # fmt: skip


class EntriesRequest(BaseModel):
    """Whose entries, by their object ids, or with None all of the scope; ``question`` is only told.

    Strings as in a recall's event.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    tenant: Tenant
    agent: Name
    principal: Name
    session: Name
    namespace: Name = "default"
    zone: Zone = Zone.GUIDANCE
    question: Question
    ids: Annotated[tuple[ObjectId, ...], Field(max_length=NAMED_MAX)] | None = None

    def asked(self) -> Asked:
        """Return it as a recaller takes it."""
        return Asked(self.tenant, self.question, self.agent, self.principal, self.session, self.namespace, self.zone)


class AdmissionModel(BaseModel):
    """What the gate admitted (memsluice.admission.v1), as its signature holds for it."""

    model_config = ConfigDict(frozen=True)

    object_id: str
    version: int
    event_id: str
    tenant: str
    agent: str
    principal: str
    session: str
    namespace: str
    visibility: Visibility
    key: str | None
    zone: Zone
    tier: int
    taint: bool
    parents: tuple[str, ...]
    content_digest: str
    vector_digest: str
    model: str
    written_ms: int
    expires_ms: int | None
    decision: str
    policy: str
    kid: str
    channel: str
    vector_dtype: str


class Entry(BaseModel):
    """One verified entry. ``similarity`` is the cosine to the question, -1 to 1; ``flags`` say what it reads like."""

    model_config = ConfigDict(frozen=True)

    content: str
    similarity: float
    admission: AdmissionModel
    flags: tuple[Flag, ...] = ()

    @staticmethod
    def of(entry: VerifiedEntry) -> "Entry":
        """Return an entry as it travels."""
        return Entry(
            content=entry.content,
            similarity=entry.similarity,
            admission=AdmissionModel(**_plain(entry.admission)),
            flags=entry.flags,
        )

    def entry(self) -> VerifiedEntry:
        """Return the entry as a recaller gives it."""
        said = {**self.admission.model_dump(), "tier": Tier(self.admission.tier)}
        return VerifiedEntry(Admission(**said), self.content, self.similarity, self.flags)


class RestOfAnswer(BaseModel):
    """What an answer says besides its entries. ``withheld`` counts by reason; ``entries_given`` are so many lines."""

    model_config = ConfigDict(frozen=True)

    event_id: str
    as_data: bool
    incomplete: bool
    withheld: dict[str, int]
    entries_given: int


class RecallAnswer(BaseModel):
    """The nearest verified entries, better tiers first. The recall's event ``event_id`` was acknowledged before."""

    model_config = ConfigDict(frozen=True)

    entries: list[Entry]
    event_id: str
    as_data: bool
    incomplete: bool
    withheld: dict[str, int]

    @staticmethod
    def of(answer: Recalled) -> "RecallAnswer":
        """Return an answer as it travels."""
        return RecallAnswer(entries=[Entry.of(entry) for entry in answer.entries], **_rest(answer))

    def answer(self) -> Recalled:
        """Return the answer as a recaller gives it."""
        entries = tuple(entry.entry() for entry in self.entries)
        return Recalled(entries, Counter(self.withheld), self.event_id, self.as_data, self.incomplete)


class Problem(BaseModel):
    """Why a request failed (RFC 9457). ``code`` is the stable reason code, ``field`` what it is about."""

    model_config = ConfigDict(frozen=True)

    type: str = "about:blank"
    title: str
    status: int
    detail: str
    code: str
    field: str = ""


def rest_of(answer: Recalled) -> RestOfAnswer:
    """Return the last line of an answer in lines."""
    return RestOfAnswer(entries_given=len(answer.entries), **_rest(answer))


def _rest(answer: Recalled) -> dict[str, Any]:
    return {
        "event_id": answer.event_id,
        "as_data": answer.as_data,
        "incomplete": answer.incomplete,
        # Another's entry, found in a session of the same name, say: the event counts it; the asker learns nothing of
        # what he may not see.
        "withheld": {reason: count for reason, count in answer.withheld.items() if reason != Withheld.SCOPE},
    }


def _plain(admission: Admission) -> dict[str, Any]:
    return {**asdict(admission), "tier": int(admission.tier)}
