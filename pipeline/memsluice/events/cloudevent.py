"""The CloudEvents 1.0 Kafka binding, both ways: written here, read on top of the ``cloudevents`` library.

A producer only writes, so the library is imported by the first message that is read. Reading is strict where two
readings would be possible: a ``ce_*`` header repeated with another value, a message in both modes at once, a repeated
JSON key and a required attribute that is missing (the library would make one up) are refused. Other headers may repeat.
"""

import base64
import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from memsluice.errors import LimitExceeded, MalformedEvent
from memsluice.events import limits, strictjson
from memsluice.events.models import AnyPayload
from memsluice.events.names import DSSE_CONTENT_TYPE, NOT_UNPACKED_HEADER, PAYLOAD_DIGEST, EventType

if TYPE_CHECKING:
    from cloudevents.core.base import BaseCloudEvent

Headers = tuple[tuple[str, bytes | None], ...]
REQUIRED = ("specversion", "id", "source", "type")
PACKED = "batch"
"""Field of the refusal of a record whose batch is not unpacked."""
STRUCTURED = b"application/cloudevents"
STRUCTURED_JSON = b"application/cloudevents+json"


@dataclass(frozen=True, slots=True)
class Received:
    """A CloudEvent as received: its context attributes, not yet trusted, and its data (a DSSE envelope, decoded).

    ``payload_digest`` is the stated SHA-256 of the payload's exact bytes; None where none, or no text, was stated.
    """

    id: str
    type: EventType
    source: str
    time: datetime | None
    partition_key: str | None
    payload_digest: str | None
    envelope: dict[str, Any]


def _single_headers(headers: Headers) -> dict[str, bytes]:
    if len(headers) > limits.HEADERS_MAX:
        raise LimitExceeded(f"there are {len(headers)}, at most {limits.HEADERS_MAX} are allowed", field="headers")
    if (
        sum(len(name.encode("utf-8", "replace")) + len(value or b"") for name, value in headers)
        > limits.HEADER_BYTES_MAX
    ):
        raise LimitExceeded(f"take more than {limits.HEADER_BYTES_MAX} bytes", field="headers")
    if any("\0" in name for name, _ in headers):  # Kafka's C clients read such a name only up to there
        raise MalformedEvent("a header's name has a NUL", field="headers")
    single: dict[str, bytes] = {}
    for name, value in headers:
        lowered = name.lower()
        if not (lowered.startswith("ce_") or lowered == "content-type"):
            continue
        if value is None:
            raise MalformedEvent("has no value", field=_header_field(lowered))
        if single.setdefault(lowered, value) != value:
            raise MalformedEvent("is repeated with another value", field=_header_field(lowered))
    return single


def _header_field(name: str) -> str:
    known = (*(f"ce_{attribute}" for attribute in (*REQUIRED, "time", "partitionkey", PAYLOAD_DIGEST)), "content-type")
    return name if name in known else "ce_*"  # a field becomes a label: the sender must not choose it


def read(key: bytes | None, value: bytes | None, headers: Headers) -> Received:
    """Read one Kafka message in binary or structured mode.

    Raises MalformedEvent or LimitExceeded. Nothing here says that the event is authentic.
    """
    if value is None and any(name == NOT_UNPACKED_HEADER for name, _ in headers):
        raise LimitExceeded("its batch unpacks to more bytes than are read", field=PACKED)
    if value is None:
        raise MalformedEvent("the record has no value", field="value")
    if len(value) > limits.RECORD_BYTES_MAX:
        raise LimitExceeded(f"has {len(value)} bytes, at most {limits.RECORD_BYTES_MAX} are allowed", field="value")
    attributes, data = _attributes_and_data(_single_headers(headers), value)
    if not isinstance(data, dict):
        raise MalformedEvent("is not a DSSE envelope", field="data")
    try:
        event_type = EventType(attributes["type"])
    except ValueError:
        raise MalformedEvent("is not a known event type", field="type") from None
    if len(attributes["source"]) > limits.SOURCE_CHARS_MAX:
        raise LimitExceeded(f"has more than the {limits.SOURCE_CHARS_MAX} characters that are allowed", field="source")
    if not attributes["source"].isprintable():  # control characters, lone surrogates
        raise MalformedEvent("contains characters that cannot be printed", field="source")
    return Received(
        id=attributes["id"],
        type=event_type,
        source=attributes["source"],
        time=attributes.get("time"),
        partition_key=_partition_key(key, attributes.get("partitionkey")),
        payload_digest=stated if isinstance(stated := attributes.get(PAYLOAD_DIGEST), str) else None,
        envelope=data,
    )


def possible_envelopes(value: bytes) -> Iterator[Any]:
    """Yield what could be the envelope in a record's value, in either mode, whatever its headers say.

    For a record that could not be read as an event; in any other :func:`read` alone says what its envelope is. Raises
    MalformedEvent.
    """
    document = strictjson.loads(value, "value")
    yield document
    if not isinstance(document, dict):
        return
    data, encoded = document.get("data"), document.get("data_base64")
    if data is None and isinstance(encoded, str):
        try:
            data = strictjson.loads(base64.b64decode(encoded), "data")
        except ValueError:
            raise MalformedEvent("is not valid base64", field="data") from None
    yield data


def _attributes_and_data(single: dict[str, bytes], value: bytes) -> tuple[dict[str, Any], Any]:
    binary = any(name.startswith("ce_") for name in single)
    structured = single.get("content-type", b"").strip().lower().startswith(STRUCTURED)
    if binary and structured:
        raise MalformedEvent(
            "announces structured mode, but there are ce_ headers of binary mode", field="content-type"
        )
    if not binary and not structured:
        raise MalformedEvent("is not a CloudEvents type, and there is no ce_ header", field="content-type")
    content = strictjson.loads(value, "value")
    present = {name.removeprefix("ce_") for name in single} if binary else content
    if not isinstance(present, set | dict):
        raise MalformedEvent("is not a JSON object", field="value")
    for attribute in REQUIRED:
        if attribute not in present:
            raise MalformedEvent("is missing", field=attribute)
    event = _event(single, value, binary=binary)
    attributes = dict(event.get_attributes())
    if "time" not in present:
        del attributes["time"]  # the library puts the current time
    data = content if binary else event.get_data()
    return attributes, strictjson.loads(data, "data") if isinstance(data, bytes) else data


def _event(single: dict[str, bytes], value: bytes, *, binary: bool) -> "BaseCloudEvent":
    from cloudevents.core.bindings.kafka import KafkaMessage, from_binary, from_structured
    from cloudevents.core.exceptions import CloudEventValidationError
    from cloudevents.core.formats.json import JSONFormat
    from cloudevents.core.v1.event import CloudEvent

    try:
        if binary:
            return from_binary(KafkaMessage(headers=single, key=None, value=b""), JSONFormat(), CloudEvent)
        return from_structured(KafkaMessage(headers=single, key=None, value=value), JSONFormat(), CloudEvent)
    except CloudEventValidationError as error:
        wrong = [name for name in (*REQUIRED, "time") if name in error.errors]
        raise MalformedEvent("does not conform to CloudEvents 1.0", field=wrong[0] if wrong else "attributes") from None
    except Exception as error:  # the library raises many kinds, ValueError to OverflowError, on hostile input
        raise MalformedEvent(
            f"are not those of a CloudEvent 1.0 ({type(error).__name__})", field="attributes"
        ) from None


def _partition_key(key: bytes | None, attribute: Any) -> str | None:
    stated = key.decode("utf-8", "replace") if key else None
    if attribute is None:
        return stated
    if not isinstance(attribute, str):
        raise MalformedEvent("is not text", field="partitionkey")
    if stated is not None and stated != attribute:
        raise MalformedEvent("differs from the partitionkey attribute", field="key")
    return attribute


def check_agreement(received: Received, payload: AnyPayload) -> None:
    """Raise MalformedEvent where an unsigned attribute contradicts the signed payload."""
    if received.id != payload.id:
        raise MalformedEvent("differs from the signed payload", field="id")
    if received.partition_key is not None and received.partition_key != payload.tenant:
        raise MalformedEvent("is not the signed payload's tenant", field="partitionkey")
    if received.time is not None:
        stated = received.time if received.time.tzinfo else received.time.replace(tzinfo=UTC)
        if abs((stated - payload.time).total_seconds()) >= 0.001:
            raise MalformedEvent("differs from the signed payload", field="time")


def write(
    event_type: EventType, payload: AnyPayload, envelope: dict[str, Any], *, source: str, structured: bool = False
) -> tuple[bytes, bytes, Headers]:
    """Return (key, value, headers) of a signed payload's Kafka message, which states the payload's digest."""
    attributes = {
        "specversion": "1.0",
        "id": payload.id,
        "type": event_type.value,
        "source": source,
        "time": _rfc3339(payload.time),
        "partitionkey": payload.tenant,
        PAYLOAD_DIGEST: sha256(base64.b64decode(envelope["payload"])).hexdigest(),
    }
    key = payload.tenant.encode()
    if structured:
        document = {**attributes, "datacontenttype": DSSE_CONTENT_TYPE, "data": envelope}
        return key, json.dumps(document).encode(), (("content-type", STRUCTURED_JSON),)
    headers = tuple((f"ce_{name}", text.encode()) for name, text in attributes.items())
    return key, json.dumps(envelope).encode(), (*headers, ("content-type", DSSE_CONTENT_TYPE.encode()))


def _rfc3339(time: datetime) -> str:
    text = time.isoformat()
    return f"{text.removesuffix('+00:00')}Z" if text.endswith("+00:00") else text
