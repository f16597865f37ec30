"""Authenticity, before anything touches a tenant's state: signature, registry, clock, partition (DESIGN, section 3).

What fails here becomes a dead letter and never reaches a tenant's rows, so nobody without a key can burn event ids or
fill a quarantine.
"""

from dataclasses import dataclass

from memsluice.envelope import dsse
from memsluice.envelope.keys import Algorithm, Keyring, KeyState, Purpose
from memsluice.envelope.registry import Credential, Registry, Role
from memsluice.envelope.seals import Identity, Position
from memsluice.errors import ClockSkew, ExpiredKey, MalformedEvent, NotPermitted, RevokedKey, UnknownKey, WrongPartition
from memsluice.events import cloudevent
from memsluice.events.models import AnyPayload, parse_payload
from memsluice.events.names import EventType, payload_type
from memsluice.events.partition import partition_of

EVENT_WINDOW_MS = 7 * 86_400_000
"""Event ids are remembered this long after the broker appended them; older events are refused, so it is complete."""
FUTURE_SKEW_MS = 5 * 60_000
"""How far a producer's clock may run ahead of the broker's."""


@dataclass(frozen=True, slots=True)
class Authentic:
    """An event whose sender is established. ``approvers`` are a command's signers, in order."""

    identity: Identity
    type: EventType
    payload: AnyPayload
    approvers: tuple[str, ...]


def _credential(kid: str, keyring: Keyring, registry: Registry, position: Position) -> Credential:
    credential, key = registry.get(kid), keyring.get(kid)
    if key.purpose is not Purpose.CREDENTIAL:
        raise UnknownKey("key id is no credential", field="keyid")
    if key.state is KeyState.REVOKED:
        raise RevokedKey("key was revoked", field="keyid")
    if position.append_ms < key.not_before_ms or (
        key.not_after_ms is not None and position.append_ms >= key.not_after_ms
    ):
        raise ExpiredKey("key was outside of its signing period", field="keyid")
    return credential


def _check_time(payload: AnyPayload, append_ms: int) -> None:
    produced_ms = int(payload.time.timestamp() * 1000)
    if produced_ms > append_ms + FUTURE_SKEW_MS:
        raise ClockSkew(f"lies more than {FUTURE_SKEW_MS // 1000} s ahead of the broker's clock", field="time")
    if produced_ms < append_ms - EVENT_WINDOW_MS:
        raise ClockSkew("is older than the window in which event ids are remembered", field="time")


def authenticate(
    received: cloudevent.Received,
    position: Position,
    *,
    keyring: Keyring,
    registry: Registry,
    partitions: int,
    commands: bool,
) -> Authentic:
    """Establish who sent an event and that they may.

    ``commands`` says that it came over the command topic, which carries commands alone, Ed25519 signed alone. Raises a
    subclass of InputError with its own reason code.
    """
    if commands != (received.type is EventType.COMMAND):
        raise NotPermitted(f"{received.type.value} does not belong on this topic", field="type")
    envelope = dsse.parse(received.envelope)
    kids = tuple(signature.kid for signature in envelope.signatures)
    if len(set(kids)) != len(kids) or (len(kids) > 1 and not commands):
        raise MalformedEvent("needs exactly one signature" if not commands else "repeats a signer", field="signatures")
    credentials = [_credential(kid, keyring, registry, position) for kid in kids]
    payload_bytes = dsse.verify(envelope, payload_type(received.type.value), keyring.direct)
    payload = parse_payload(received.type, payload_bytes)
    cloudevent.check_agreement(received, payload)
    for credential in credentials:
        credential.check(received.type, payload, position.append_ms)
        if commands and keyring.get(credential.kid).algorithm is not Algorithm.ED25519:
            raise NotPermitted("commands are signed with Ed25519 alone", field="keyid")
    if partition_of(payload.tenant, partitions) != position.partition:
        raise WrongPartition("record does not lie on its tenant's partition (murmur2)", field="partition")
    _check_time(payload, position.append_ms)
    first = credentials[0]
    role = Role.OPERATOR if commands else first.role
    return Authentic(
        Identity(first.kid, role, first.channel, first.effective_tier(payload)), received.type, payload, kids
    )
