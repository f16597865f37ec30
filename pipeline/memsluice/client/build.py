"""From a payload to a signed Kafka message: pure, the same for the broker and for the embedded log."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from pydantic import BaseModel, ValidationError

from memsluice.envelope import dsse
from memsluice.errors import LimitExceeded
from memsluice.events import cloudevent, limits
from memsluice.events.cloudevent import Headers
from memsluice.events.models import MODELS, Action, AnyPayload, Command, input_error
from memsluice.events.names import TRACEPARENT, EventType, payload_type
from memsluice.topics.names import COMMANDS, EVENTS

_TYPES: dict[type[Any], EventType] = {model: event_type for event_type, model in MODELS.items()}
_Model = TypeVar("_Model", bound=BaseModel)


class Message(NamedTuple):
    """A Kafka message: key (the tenant's UTF-8 bytes), value and headers."""

    key: bytes
    value: bytes
    headers: Headers


def make(model: Callable[..., _Model], **fields: Any) -> _Model:
    """Return a payload of these fields. Raises MalformedEvent or LimitExceeded, which quote no content."""
    try:
        return model(**fields)
    except ValidationError as error:
        refused = input_error(error)
    raise refused  # out here, so that pydantic's error, which holds the content, is not its context


def event_type_of(payload: AnyPayload) -> EventType:
    """Return the event type of a payload."""
    return _TYPES[type(payload)]


def topic_of(payload: AnyPayload) -> str:
    """Return the intake topic of a payload: commands have their own, but a producer's appeal goes with the events."""
    return COMMANDS if isinstance(payload, Command) and payload.action is not Action.APPEAL else EVENTS


def build(
    payload: AnyPayload,
    signers: Sequence[dsse.Signer],
    *,
    source: str,
    traceparent: str | None = None,
    structured: bool = False,
) -> Message:
    """Return the message of a payload, signed by every signer over its exact bytes.

    ``source`` is the CloudEvents source, at most 256 characters. ``traceparent`` is W3C's (see
    :mod:`memsluice.client.tracing`). ``structured`` puts attributes and data into the value. Raises LimitExceeded
    where the gate would refuse the message for its size.
    """
    return wrap(payload, envelope_of(payload, signers), source=source, traceparent=traceparent, structured=structured)


def envelope_of(payload: AnyPayload, signers: Sequence[dsse.Signer]) -> dict[str, Any]:
    """Return the envelope of a payload, signed by every signer over its exact bytes."""
    return dsse.sign(payload_type(event_type_of(payload).value), payload.model_dump_json().encode(), signers)


def wrap(
    payload: AnyPayload,
    envelope: dict[str, Any],
    *,
    source: str,
    traceparent: str | None = None,
    structured: bool = False,
) -> Message:
    """Return the message of a payload that is signed already; the arguments and errors are those of :func:`build`."""
    event_type = event_type_of(payload)
    if not 1 <= len(source) <= limits.SOURCE_CHARS_MAX:
        raise LimitExceeded(f"1 to {limits.SOURCE_CHARS_MAX} characters allowed", field="source")
    key, value, headers = cloudevent.write(event_type, payload, envelope, source=source, structured=structured)
    if len(value) > limits.RECORD_BYTES_MAX:
        raise LimitExceeded(f"{len(value)} bytes, at most {limits.RECORD_BYTES_MAX} allowed", field="value")
    if traceparent is not None:
        headers = (*headers, (TRACEPARENT, traceparent.encode()))
    return Message(key, value, headers)
