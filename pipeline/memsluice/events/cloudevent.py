"""The CloudEvents 1.0 Kafka binding, both ways, on top of the ``cloudevents`` library.

Reading is strict where two readings would be possible: a repeated ``ce_*`` header is refused, other headers may repeat.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson
from cloudevents.core.bindings.kafka import KafkaMessage, from_kafka, to_binary, to_structured
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from memsluice.errors import LimitExceeded, MalformedEvent
from memsluice.events import limits
from memsluice.events.models import AnyPayload
from memsluice.events.names import DSSE_CONTENT_TYPE, EventType

Headers = tuple[tuple[str, bytes | None], ...]
_FORMAT = JSONFormat()


@dataclass(frozen=True, slots=True)
class Received:
    """A CloudEvent as received: its context attributes, not yet trusted, and its data (a DSSE envelope, decoded)."""

    id: str
    type: EventType
    source: str
    time: datetime | None
    partition_key: str | None
    envelope: dict[str, Any]


def _single_headers(headers: Headers) -> dict[str, bytes]:
    if len(headers) > limits.HEADERS_MAX:
        raise LimitExceeded(f"{len(headers)} headers, at most {limits.HEADERS_MAX} allowed", field="headers")
    if sum(len(name) + len(value or b"") for name, value in headers) > limits.HEADER_BYTES_MAX:
        raise LimitExceeded(f"headers take more than {limits.HEADER_BYTES_MAX} bytes", field="headers")
    single: dict[str, bytes] = {}
    for name, value in headers:
        lowered = name.lower()
        if not (lowered.startswith("ce_") or lowered == "content-type"):
            continue
        if value is None:
            raise MalformedEvent("header without a value", field=lowered)
        if single.setdefault(lowered, value) != value:
            raise MalformedEvent("header repeated with another value", field=lowered)
    return single


def read(key: bytes | None, value: bytes | None, headers: Headers) -> Received:
    """Read one Kafka message in binary or structured mode.

    Raises MalformedEvent or LimitExceeded. Nothing here says that the event is authentic.
    """
    if value is None:
        raise MalformedEvent("null value", field="value")
    if len(value) > limits.RECORD_BYTES_MAX:
        raise LimitExceeded(f"{len(value)} bytes, at most {limits.RECORD_BYTES_MAX} allowed", field="value")
    single = _single_headers(headers)
    try:
        event = from_kafka(KafkaMessage(headers=single, key=None, value=value), _FORMAT, CloudEvent)
        attributes, data = event.get_attributes(), event.get_data()
    except Exception as error:  # the library raises many kinds, ValueError to RecursionError, on hostile input
        raise MalformedEvent(f"not a CloudEvent 1.0 ({type(error).__name__})") from None
    if isinstance(data, bytes | str):
        try:
            data = orjson.loads(data)
        except orjson.JSONDecodeError:
            raise MalformedEvent("data is no JSON", field="data") from None
    if not isinstance(data, dict):
        raise MalformedEvent("data is no DSSE envelope", field="data")
    try:
        event_type = EventType(str(attributes.get("type")))
    except ValueError:
        raise MalformedEvent("unknown event type", field="type") from None
    moment = attributes.get("time")
    partition_key = attributes.get("partitionkey") or (key.decode("utf-8", "replace") if key else None)
    return Received(
        id=str(attributes.get("id")),
        type=event_type,
        source=str(attributes.get("source")),
        time=moment if isinstance(moment, datetime) else None,
        partition_key=partition_key if partition_key is None else str(partition_key),
        envelope=data,
    )


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
    """Return (key, value, headers) of a signed payload's Kafka message."""
    event = CloudEvent(
        attributes={
            "specversion": "1.0",
            "id": payload.id,
            "type": event_type.value,
            "source": source,
            "time": payload.time,
            "partitionkey": payload.tenant,
            "datacontenttype": DSSE_CONTENT_TYPE,
        },
        data=envelope,
    )
    message = (to_structured if structured else to_binary)(event, _FORMAT)
    headers = tuple((name, value) for name, value in message.headers.items())
    return payload.tenant.encode(), message.value, headers
