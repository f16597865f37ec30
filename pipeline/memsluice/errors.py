"""Every exception memsluice raises, as one tree.

MemsluiceError
├── InputError                 bad input; carries a reason code, the field and why; becomes a dead letter
│   ├── MalformedEvent         not a CloudEvent, not the envelope, not the schema
│   ├── LimitExceeded          a field, header or record is larger than its stated limit
│   ├── Unreadable             the gate failed to read it: a defect of the gate, which its sender may have looked for
│   ├── WrongPartition         the record lies on a partition that is not its tenant's
│   └── AuthenticityError      who sent it could not be established, or may not do this
│       ├── UnknownKey
│       ├── ForgedSignature    no signature of the named key over these bytes
│       │   └── Tampered       … and the bytes are not those that the sender said it signed
│       ├── ExpiredKey
│       ├── RevokedKey
│       ├── NotPermitted       a known credential, outside of what its registry entry allows
│       │   └── CrossTenant    … because it is not of the event's tenant
│       └── ClockSkew          produced outside of the window in which event ids are remembered
├── SealError                  a seal inside the gate or on a stored object does not verify
├── StateError                 state rows and log disagree; the worker stops and re-reads
│   ├── GapError               an offset was skipped
│   └── OutputTooLarge         a record that a partition's records led to is larger than its topic takes
├── BeginAnew                  what a stage had in work counts for nothing; it begins anew in the same process
│   ├── Fenced                 the broker refuses a worker whose partition another took over
│   ├── RowsDamaged            local rows are damaged: they are made anew from the changelog
│   └── NotCommitted           the broker went away in a transaction, or broke it off
│       └── Overtaken          an event would overtake those of its tenant that wait
├── PolicyError                a policy file is not valid; names the field and the reason
├── ConfigError                configuration is missing or not valid
│   ├── MissingExtra           a package is not installed that an extra brings; names the extra
│   ├── InvalidArgument        an argument of a command or a call is not valid, or does not go with another
│   └── NotFound               what a command names does not exist, or several have the name
├── StackError                 the local stack could not be brought up; says what to do
├── TopicsError                topics on the broker differ from the files in a way that is refused
├── ProducerError              an event was not published; saying it again with the same event id is safe
│   ├── BufferFull             the local buffer is full; nothing was queued
│   ├── NotDelivered           the broker did not acknowledge in time, or refused
│   ├── EarlierFailed          an earlier event of the same session was not published, so this one was held back
│   └── WriterClosed           the writer was closed before, or while, the event was on its way
├── NotRemembered              a memory's write did not become an entry that its writer can read
│   ├── WriteHeld              it waits in quarantine for a person, or lies outside as data; nothing is lost
│   ├── WriteRefused           it was rejected, or is a dead letter
│   ├── LandedElsewhere        it landed under another key, from which a secret was taken out
│   ├── LandingUnknown         nothing was heard of it in time: it may still land
│   └── BatchNotRemembered     some of several were not; has every one's result
├── ExtractionFailed           no facts were made of an outside text: it was observed, and nothing of it was written
├── RequestRefused             an HTTP service refuses a request: what its answer says
├── RecallFailed               a service over HTTP answered with nothing that can be used
│   └── OverQuota              the credential asks too often; the same request may succeed later
├── NotSent                    whoever is told of held writes did not take a notice; it is tried again
├── ChatFailed                 a model's chat endpoint did not answer, or not as one does
├── BrokerError                the broker, or the embedded log in its place, refused or failed
│   └── BrokerUnavailable      it did not answer, or not this user; the same request may succeed later
└── StoreError                 the vector store refused or failed
    ├── ScopeTooLarge          more lies in a scope than can be listed: search it, or name some
    └── StoreUnavailable       it did not answer; the same request may succeed later
        └── AnswerTooLarge     what it found fits into no answer; ask for fewer
"""

from collections.abc import Sequence


class MemsluiceError(Exception):
    """Root of the tree: catching it catches everything memsluice raises on purpose."""


class InputError(MemsluiceError):
    """Bad input from outside.

    ``code`` is the stable reason code that dead letters and metrics carry; ``field`` names the offending field,
    header or part of the record ("" when it is the whole record).
    """

    code = "input"

    def __init__(self, reason: str, *, field: str = "", code: str | None = None) -> None:
        self.field = field
        self.reason = reason
        if code is not None:
            self.code = code
        super().__init__(f"{self.code}: {field + ': ' if field else ''}{reason}")


class MalformedEvent(InputError):
    """Not a CloudEvent, not the signed envelope, or not the schema of its type."""

    code = "malformed"


class LimitExceeded(InputError):
    """A field, a header or the record is larger than its stated limit."""

    code = "limit_exceeded"


class Unreadable(InputError):
    """The gate failed to read it: a defect of the gate. Once it is mended the dead letter can be replayed."""

    code = "unreadable"


class WrongPartition(InputError):
    """The record lies on a partition that murmur2 of its tenant does not give."""

    code = "wrong_partition"


class AuthenticityError(InputError):
    """Who sent the event could not be established, or is not allowed to send it."""

    code = "authenticity"


class UnknownKey(AuthenticityError):
    """The key id is not in the registry."""

    code = "unknown_key"


class ForgedSignature(AuthenticityError):
    """No signature over exactly these bytes by the named key."""

    code = "forged_signature"


class Tampered(ForgedSignature):
    """The signature does not hold, and the payload is not the one whose digest the sender stated: it was changed."""

    code = "tampered"


class ExpiredKey(AuthenticityError):
    """The key was outside its signing period when the event was produced."""

    code = "expired_key"


class RevokedKey(AuthenticityError):
    """The key was revoked: it neither signs nor verifies."""

    code = "revoked_key"


class NotPermitted(AuthenticityError):
    """The credential is known and the signature right, but the registry does not allow this to it."""

    code = "not_permitted"


class CrossTenant(NotPermitted):
    """The credential is known and the signature right, but it is not of the tenant that the event names."""

    code = "cross_tenant"


class ClockSkew(AuthenticityError):
    """The event's own time is outside of the window in which event ids are remembered."""

    code = "clock_skew"


class SealError(MemsluiceError):
    """A seal inside the gate, or on a stored object, does not verify."""


class StateError(MemsluiceError):
    """State rows and log disagree. The partition is parked until a person says how to go on."""


class GapError(StateError):
    """An offset was skipped: a record would have been lost silently.

    ``topic``, ``first`` and ``last`` are the records that are missing; "" where it cannot be told which.
    """

    def __init__(self, reason: str, *, topic: str = "", first: int = 0, last: int = 0) -> None:
        self.topic = topic
        self.first = first
        self.last = last
        super().__init__(reason)


class OutputTooLarge(StateError):
    """What a record led to is larger than its topic takes: to send it again would end the same way."""


class BeginAnew(MemsluiceError):
    """What a stage had in work counts for nothing: it begins anew, in the same process, from what is committed."""


class Fenced(BeginAnew):
    """The broker refuses what this worker sends for a partition: another worker took it over, or this one was away for
    longer than a transaction may last. Nothing of it was written."""


class RowsDamaged(BeginAnew):
    """A partition's local rows are damaged. They are a copy: beginning anew makes them again from the changelog."""


class NotCommitted(BeginAnew):
    """The broker broke a transaction off, or went away in it. What was committed is found out by beginning anew."""


class Overtaken(NotCommitted):
    """An event was let go on as nobody's, and is its tenant's after all: it would overtake those that wait."""


class PolicyError(MemsluiceError):
    """A policy file is not valid."""


class ConfigError(MemsluiceError):
    """Configuration is missing or not valid."""


class MissingExtra(ConfigError, ImportError):
    """A part was asked for whose packages are not installed: an extra of the distribution brings them."""


class InvalidArgument(ConfigError):
    """An argument of a command or of a call is not valid, or does not go with another; the message names it."""


class NotFound(ConfigError):
    """What a command names does not exist, or several have the name."""


class StackError(MemsluiceError):
    """The local stack could not be brought up, or a part of it died."""


class TopicsError(MemsluiceError):
    """The topics on the broker differ from the files in a way that may not be applied."""


class ProducerError(MemsluiceError):
    """An event was not published, or not known to be.

    ``event_id`` names it ("" where no event is concerned). ``maybe_written`` says that the broker may have it all the
    same: publish it again with the same id, and the gate knows it for a duplicate.
    """

    def __init__(self, reason: str, *, event_id: str = "", maybe_written: bool = False) -> None:
        self.event_id = event_id
        self.reason = reason
        self.maybe_written = maybe_written
        super().__init__(f"{event_id + ': ' if event_id else ''}{reason}")


class BufferFull(ProducerError):
    """The local buffer is full; nothing was queued, nothing waited."""


class NotDelivered(ProducerError):
    """The broker did not acknowledge in time, or refused."""


class EarlierFailed(ProducerError):
    """An earlier event of the same session was not published, so this one was held back to keep their order."""


class WriterClosed(ProducerError):
    """The writer was closed."""


class NotRemembered(MemsluiceError):
    """A memory's write did not become an entry that its writer can read. The message quotes nothing of it.

    ``event_id`` names the write, ``reasons`` are the verdict's codes, ``place`` is where its intake lies, ``became``
    is what became of it in one word, as an Outcome's status has it; "" where that was not heard.
    """

    def __init__(
        self,
        message: str,
        *,
        event_id: str,
        reasons: tuple[str, ...] = (),
        place: tuple[str, int, int] | None = None,
        became: str = "",
    ) -> None:
        super().__init__(message)
        self.became = became
        self.event_id = event_id
        self.reasons = reasons
        self.place = place


class WriteHeld(NotRemembered):
    """It waits in quarantine for a person, or was kept outside of guidance as data: nothing of it is lost."""


class WriteRefused(NotRemembered):
    """It was rejected, or it is a dead letter. A later policy may let it in (``replay``)."""


class LandedElsewhere(NotRemembered):
    """It landed, but under another key than its own: that held what looks like a secret, which was taken out."""


class LandingUnknown(NotRemembered):
    """Nothing was heard of it in time: it may still land. Saying it again under the same event id is safe."""


class BatchNotRemembered(NotRemembered):
    """Some of several writes were not; ``results`` has, in their order, the Outcome of each or what it raised."""

    def __init__(self, results: Sequence[object]) -> None:
        failed = [one for one in results if isinstance(one, MemsluiceError)]
        super().__init__(
            f"{len(failed)} of {len(results)} writes were not remembered; the first: {failed[0]}",
            event_id=str(getattr(failed[0], "event_id", "")),
            reasons=tuple(getattr(failed[0], "reasons", ())),
            place=getattr(failed[0], "place", None),
        )
        self.results = tuple(results)


class RequestRefused(MemsluiceError):
    """A request to an HTTP service that ends with an HTTP status, a stable reason code and a field."""

    def __init__(self, status: int, code: str, detail: str, *, field: str = "") -> None:
        self.status, self.code, self.detail, self.field = status, code, detail, field
        super().__init__(detail)


class RecallFailed(MemsluiceError):
    """A service over HTTP answered, and with nothing that can be used; the message says which, and with what."""


class OverQuota(RecallFailed):
    """The credential asked a service over HTTP more often than its quota allows; ask again a second later."""


class NotSent(MemsluiceError):
    """Whoever is told of held writes did not take a notice; it is tried again. Quotes nothing that a receiver said."""


class ChatFailed(MemsluiceError):
    """A model's chat endpoint did not answer in time, or with nothing that a chat completion is.

    The message says what was wrong and quotes neither what was asked nor what was answered.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"the model was asked and gave no answer: {reason}")


class ExtractionFailed(MemsluiceError):
    """An extractor raised, or returned what is no short list of facts: the text was observed, nothing was written.

    The message says what was wrong and quotes neither the text nor the facts.
    """

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"nothing was extracted from the outside text, and nothing was written: {reason}")


class BrokerError(MemsluiceError):
    """The broker, or the embedded log that stands in its place, refused a request or failed."""


class BrokerUnavailable(BrokerError):
    """The broker did not answer, or does not let this user in; the same request may succeed later."""


class StoreError(MemsluiceError):
    """The vector store refused a request."""


class ScopeTooLarge(StoreError):
    """More entries lie in a scope than can be listed at once: search it, or ask for some by their ids."""


class StoreUnavailable(StoreError):
    """The vector store did not answer; the same request may succeed later."""


class AnswerTooLarge(StoreUnavailable):
    """What the vector store found does not fit into one answer: no entry is so large, somebody planted it. Ask for
    fewer."""
