"""From a request to an event that the gate would take: read and checked by the gate's own rules, and its bytes kept.

What *seal* will decide is asked here by *seal*'s own function, so that whoever sent it is told at once what is wrong.
Nothing rests on it: *seal* decides again, by the broker's clock and the keys of then.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import unquote_to_bytes

from memsluice.client.build import Message
from memsluice.envelope import dsse
from memsluice.envelope.keys import Keyring
from memsluice.envelope.registry import Credential, Registry, Role
from memsluice.envelope.seals import Position
from memsluice.errors import MalformedEvent, NotPermitted
from memsluice.events import cloudevent
from memsluice.events.headers import TRACEPARENT_BYTES
from memsluice.events.models import AnyPayload, parse_payload
from memsluice.events.names import TRACEPARENT, EventType
from memsluice.events.partition import partition_of
from memsluice.events.records import Headers
from memsluice.gate.checks.authenticity import authenticate
from memsluice.topics.names import EVENTS, PARTITIONS

PUBLISHERS = (Role.PRODUCER, Role.USER_CHANNEL, Role.RUNTIME)
"""Who may publish here. Recalls are the recall service's; commands of operators go with their own client."""
_ROOM_FOR_TRACE = (TRACEPARENT, b"0" * TRACEPARENT_BYTES)


@dataclass(frozen=True, slots=True)
class Event:
    """An event to publish: what is signed, its type, and its Kafka message but for its trace context."""

    payload: AnyPayload
    type: EventType
    message: Message
    partition: int

    @property
    def said(self) -> str:
        """What tells it from another event of its id, as the gate tells them: a retry may have another time."""
        return sha256(f"{self.type.value} {self.payload.model_dump_json(exclude={'time'})}".encode()).hexdigest()

    def traced(self, traceparent: str) -> Message:
        """Return the message in a trace."""
        headers = (*self.message.headers, (TRACEPARENT, traceparent.encode()))
        return Message(self.message.key, self.message.value, headers)


def kafka_headers(raw: Iterable[tuple[bytes, bytes]]) -> Headers:
    """Return the CloudEvents headers of an HTTP request as the Kafka binding has them; no other header goes on.

    The HTTP binding has ``ce-id: …`` in ASCII, anything else percent-encoded; Kafka has ``ce_id`` in UTF-8.
    """
    headers = []
    for name, value in raw:
        lowered = name.decode("latin-1").lower()
        if lowered.startswith("ce-"):
            headers.append((f"ce_{lowered[3:]}", unquote_to_bytes(_unquoted(value))))
        elif lowered == "content-type":
            headers.append((lowered, value))
    return tuple(headers)


def _unquoted(value: bytes) -> bytes:
    """Return what a header says that may be a quoted string (RFC 9110)."""
    quoted = len(value) > 1 and value.startswith(b'"') and value.endswith(b'"')
    return re.sub(rb"\\(.)", rb"\1", value[1:-1]) if quoted else value


def check_role(caller: Credential) -> None:
    """Raise NotPermitted where a credential publishes nothing over HTTP."""
    if caller.role not in PUBLISHERS:
        raise NotPermitted(f"a {caller.role.value} credential publishes no events here", field="authorization")


def read(
    value: bytes, headers: Headers, caller: Credential, keyring: Keyring, registry: Registry, now_ms: int
) -> Event:
    """Return the event of a body and its headers, which the caller's own key signed.

    Raises what :func:`memsluice.gate.checks.authenticity.authenticate` does, and NotPermitted for another's event.
    """
    received = cloudevent.read(None, value, (*headers, _ROOM_FOR_TRACE))
    envelope = dsse.parse(received.envelope)
    if [signature.kid for signature in envelope.signatures] != [caller.kid]:
        raise NotPermitted("the event must be signed by the key that signed the bearer token, alone", field="keyid")
    tenant = _tenant_of(received.type, envelope.payload)
    partition = partition_of(tenant, PARTITIONS)
    authentic = authenticate(
        received, Position(EVENTS, partition, 0, now_ms), keyring=keyring, registry=registry, partitions=PARTITIONS,
        commands=False,
    )  # fmt: skip
    return Event(authentic.payload, authentic.type, Message(tenant.encode(), value, headers), partition)


def _tenant_of(event_type: EventType, payload: bytes) -> str:
    """Return whose the event says it is: where it would lie, nothing more."""
    tenant = parse_payload(event_type, payload).tenant
    if tenant == "*":
        raise MalformedEvent("an event is of one tenant", field="tenant")
    return tenant
