"""One dead letter, put together from its records, and what its input claims. Pure.

Nothing in a dead letter is authenticated: who sent it, for whom and when are its own claims. Its position and reason
were written by the gate, in a header that nobody sealed: what may write to the topic is the broker's access rules' to
say.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from memsluice.envelope import codec, dsse
from memsluice.envelope.codec import from_json
from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Verdict
from memsluice.errors import InputError, LimitExceeded, MalformedEvent
from memsluice.events import cloudevent
from memsluice.events.cloudevent import PACKED
from memsluice.events.models import AnyPayload, Write, parse_payload
from memsluice.events.names import DEAD_LETTER_HEADER, EVERYBODY, EventType
from memsluice.events.records import Headers, Record
from memsluice.operations.held.entries import Ruled
from memsluice.stages.dead_letter import PARTS_MAX, Letter, original

PREVIEW_BYTES = 240
CLAIM_CHARS_MAX = 160
NOT_UNPACKED = "its batch unpacks to more than is read, so it is not unpacked here either"


class LetterState(StrEnum):
    """What became of a dead letter. ``decided``: the same event came again, was authentic, and has a verdict."""

    OPEN = "open"
    DECIDED = "decided"
    DISMISSED = "dismissed"


@dataclass(frozen=True, slots=True)
class Why:
    """What the gate's header says: why, where the input lies, when it was appended (Unix ms), and in how many parts."""

    reason: str
    field: str
    detail: str
    topic: str
    partition: int
    offset: int
    append_ms: int
    value_bytes: int | None
    kind: str
    part: int
    parts: int
    head_parts: int
    kept: bool = True
    digest: str = ""
    """Of a note, which stands for a letter whose bytes are not kept: the digest of what lies in the intake topic."""

    @property
    def packed(self) -> bool:
        """Whether its bytes lie in a batch that unpacks to more than is read: it was judged without them."""
        return (self.reason, self.field) == (LimitExceeded.code, PACKED)

    @property
    def place(self) -> tuple[str, int, int]:
        """Where the input lies: topic, partition and offset."""
        return self.topic, self.partition, self.offset

    @property
    def letter_id(self) -> str:
        """The letter's name: where its input lies."""
        return f"{self.topic}/{self.partition}/{self.offset}"


@dataclass(frozen=True, slots=True)
class Claims:
    """What an input says of itself; "" where it does not. **Nobody verified any of it.**"""

    tenant: str = ""
    type: str = ""
    event_id: str = ""
    kid: str = ""
    event: dict[str, Any] | None = None
    """What a verdict on it would say of it, where its payload is one of the schema."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """One dead letter. ``digest`` is over the input's bytes, under this home's digest key: commands are bound to it.

    ``bytes_digest`` leaves its partition and offset out: the same bytes that came again, as by a replay, have the same.

    ``original`` (key, value, headers) is None in a list, where the beginning of the value alone is kept, and of a note
    whose bytes the intake topic has no more, or in a batch that is not unpacked.
    """

    why: Why
    claims: Claims
    digest: str
    bytes_digest: str
    preview: bytes
    original: Letter | None = None

    @property
    def letter_id(self) -> str:
        """Its name: where its input lies, as ``memory.events.v1/3/17``."""
        return self.why.letter_id


@dataclass(frozen=True, slots=True)
class LetterVerdict:
    """A verdict on the very event that a letter claims to be, given after it. ``place`` is its intake position."""

    decision: str
    reasons: tuple[str, ...]
    place: tuple[str, int, int]
    at_ms: int


@dataclass(frozen=True, slots=True)
class LetterReview:
    """A letter and what became of it: the dismissal, or the verdict on the same event.

    ``attempts`` counts how often the very same bytes became a dead letter; this is the newest of them.
    """

    letter: DeadLetter
    dismissed: Ruled | None = None
    decided: LetterVerdict | None = None
    attempts: int = 1

    @property
    def state(self) -> LetterState:
        """What became of it."""
        if self.dismissed is not None:
            return LetterState.DISMISSED
        return LetterState.OPEN if self.decided is None else LetterState.DECIDED


Intake = Callable[[Why], Letter | None]
"""Returns key, value and headers of what a note stands for, from the intake topic; None where that has it no more, or
in a batch that is not unpacked."""
_LATER = {"kept", "digest"}
"""What letters do not say that were written before there were notes, nor those that are kept."""


def why_of(record: Record) -> Why | None:
    """Return what the gate's header says, or None where a record has none that can be read."""
    name, told = record.headers[-1] if record.headers else ("", None)
    if name != DEAD_LETTER_HEADER:
        return None
    try:
        value = from_json(told or b"")
        why = Why(**{name: value[name] for name in Why.__slots__ if name in value or name not in _LATER})
    except (MalformedEvent, KeyError, TypeError):
        return None
    numbers = (why.partition, why.offset, why.append_ms, why.part, why.parts, why.head_parts)
    texts = (why.reason, why.field, why.detail, why.topic, why.kind, why.digest)
    sound = all(type(one) is int and one >= 0 for one in numbers) and all(isinstance(one, str) for one in texts)
    sized = (why.value_bytes is None or type(why.value_bytes) is int) and type(why.kept) is bool
    return why if sound and sized and 1 <= why.part <= why.parts <= PARTS_MAX and why.head_parts <= PARTS_MAX else None


def put_together(
    why: Why, records: list[Letter], keyring: Keyring, whole: bool, intake: Intake | None = None
) -> DeadLetter:
    """Return the letter of all its records. Raises MalformedEvent where they do not fit together.

    Of a note the bytes are those that ``intake`` still has, where they are asked for.
    """
    if not why.kept:
        return _noted(why, keyring, intake(why) if whole and intake is not None else None)
    key, value, headers = original(records)
    digest, bytes_digest = (
        codec.digest(keyring, EVERYBODY, "dead-letter", _bytes_of(place, key, value, headers))
        for place in (why.letter_id, why.topic)
    )
    claims = claimed(key, value, headers, keyring)
    preview, whole_one = (value or b"")[:PREVIEW_BYTES], (key, value, headers) if whole else None
    return DeadLetter(why, claims, digest, bytes_digest, preview, whole_one)


def _noted(why: Why, keyring: Keyring, found: Letter | None) -> DeadLetter:
    """Return the letter of a note, with the bytes that were found in the intake topic, if any."""
    digest = codec.digest(keyring, EVERYBODY, "dead-letter", _bytes_of(why.letter_id, None, why.digest.encode(), ()))
    if found is None:
        return DeadLetter(why, Claims(), digest, why.digest, b"")
    return DeadLetter(why, claimed(*found, keyring), digest, why.digest, (found[1] or b"")[:PREVIEW_BYTES], found)


def _bytes_of(place: str, key: bytes | None, value: bytes | None, headers: Headers) -> bytes:
    """Return place, key, value and headers, each with its length before it: no two inputs give the same bytes."""
    parts = [place.encode(), key, value, *(part for name, data in headers for part in (name.encode(), data))]
    return b"".join(b"-" if part is None else b"%d:%s" % (len(part), part) for part in parts)


def claimed(key: bytes | None, value: bytes | None, headers: Headers, keyring: Keyring) -> Claims:
    """Return what an input says of itself, as far as it can be read. Never raises for what is in it."""
    fallback = (key or b"")[: 4 * CLAIM_CHARS_MAX].decode("utf-8", "replace")[:CLAIM_CHARS_MAX]
    try:
        received = cloudevent.read(key, value, headers)
    except InputError:
        return Claims(tenant=fallback)
    told = {"tenant": received.partition_key or "", "type": received.type.value, "event_id": received.id}
    kid, event = "", None
    try:
        envelope = dsse.parse(received.envelope)
        kid = envelope.signatures[0].kid
        payload = parse_payload(received.type, envelope.payload)
        told |= {"tenant": payload.tenant, "event_id": payload.id}
        event = _event(payload, received.type, kid, keyring)
    except InputError:
        pass
    return Claims(**{name: text[:CLAIM_CHARS_MAX] for name, text in told.items()}, kid=kid, event=event)


def _event(payload: AnyPayload, event_type: EventType, kid: str, keyring: Keyring) -> dict[str, Any]:
    """Return what a verdict on this payload would say of it."""
    text = payload.content if isinstance(payload, Write) else getattr(payload, "question", None)
    return {
        "tenant": payload.tenant,
        "event_id": payload.id,
        "type": event_type.value,
        "kid": kid,
        "occurred_ms": round(payload.time.timestamp() * 1_000),
        **({} if text is None else {"content_digest": codec.content_digest(keyring, payload.tenant, text)}),
        **{part: getattr(payload, part, "") for part in ("agent", "principal", "session")},
    }


def same_event(letter: DeadLetter, verdict: Verdict) -> LetterVerdict | None:
    """Return the verdict, if it is on the very event that the letter claims to be and was appended after it.

    Compared is what a verdict says: id, tenant, type, key, content or question, time, agent, principal and session.
    """
    event = letter.claims.event
    if event is None or any(getattr(verdict, name) != value for name, value in event.items()):
        return None
    decided = decided_of(verdict)
    if verdict.append_ms < letter.why.append_ms or decided.place == letter.why.place:
        return None
    return decided


def decided_of(verdict: Verdict) -> LetterVerdict:
    """Return what matters here of a verdict."""
    return LetterVerdict(verdict.decision, verdict.reasons, verdict.intake, verdict.decided_ms)
