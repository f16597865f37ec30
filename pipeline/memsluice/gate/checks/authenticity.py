"""Authenticity, before anything touches a tenant's state: signature, registry, clock, partition.

What fails here becomes a dead letter and never reaches a tenant's rows, so nobody without a key can burn event ids or
fill a quarantine.
"""

from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from hashlib import sha256

from memsluice.envelope import dsse
from memsluice.envelope.keys import Algorithm, Keyring, Purpose
from memsluice.envelope.registry import (
    ANY,
    COMMANDERS,
    PUBLISHES,
    Credential,
    Registry,
    check_persons,
    check_signing_time,
    credential_of,
)
from memsluice.envelope.seals import Identity, Position, Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.errors import (
    ClockSkew,
    ForgedSignature,
    InputError,
    MalformedEvent,
    NotPermitted,
    Tampered,
    UnknownKey,
    WrongPartition,
)
from memsluice.events import cloudevent
from memsluice.events.models import Action, AnyPayload, Command, parse_payload, read_seen
from memsluice.events.names import EVERYBODY, EventType, payload_type
from memsluice.events.partition import partition_of

EVENT_WINDOW_MS = 7 * 86_400_000
"""Event ids are remembered this long after the broker appended them; older events are refused, so it is complete."""
FUTURE_SKEW_MS = 5 * 60_000
"""How far a producer's clock may run ahead of the broker's."""
SEEN = {payload_type(one.value): one for one in (EventType.RECALL, EventType.OBSERVATION)}
"""Types of event that say what a session saw, by the payload type that is signed."""
SEEN_BYTES_MAX = 2_621_440
"""A refused record beyond this is not searched for what a session saw: 2.5 MiB, the most that the intake topic takes
uncompressed."""


@dataclass(frozen=True, slots=True)
class Authentic:
    """An event whose sender is established. ``approvers`` are the kids of a command's signers, in order.

    ``problem`` is why a recall or an observation is refused that must taint its session nevertheless.
    """

    identity: Identity
    type: EventType
    payload: AnyPayload
    approvers: tuple[str, ...]
    problem: InputError | None = None


def _verified(envelope: dsse.Envelope, received: cloudevent.Received, keyring: Keyring) -> bytes:
    """Return the payload once every signature holds over it.

    Raises Tampered where they do not and the payload is not the one whose digest the event states, else
    ForgedSignature. Nobody signed that digest, so it is looked at only to say *why* an event is refused.
    """
    try:
        return dsse.verify(envelope, payload_type(received.type.value), keyring.direct)
    except ForgedSignature:
        if received.payload_digest in (None, sha256(envelope.payload).hexdigest()):
            raise
        raise Tampered("was changed after it was signed: its digest is another than stated", field="payload") from None


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

    ``commands`` says that it came over the command topic, which carries commands alone, Ed25519 signed alone. Among the
    events a producer's appeal is the only command. Raises a
    subclass of InputError with its own reason code.
    """
    if commands and received.type is not EventType.COMMAND:
        raise NotPermitted(f"{received.type.value} does not belong on this topic", field="type")
    envelope = dsse.parse(received.envelope)
    kids = tuple(signature.kid for signature in envelope.signatures)
    if len(set(kids)) != len(kids) or (len(kids) > 1 and not commands):
        raise MalformedEvent("needs exactly one signature" if not commands else "repeats a signer", field="signatures")
    credentials = [credential_of(kid, keyring, registry) for kid in kids]
    if len({credential.role for credential in credentials}) > 1:
        raise NotPermitted("approvers have different roles", field="signatures")
    check_persons(kids, keyring, registry)
    payload_bytes = _verified(envelope, received, keyring)
    payload = parse_payload(received.type, payload_bytes)
    if not commands and isinstance(payload, Command) and payload.action is not Action.APPEAL:
        raise NotPermitted(f"{payload.action.value} does not belong on this topic", field="action")
    cloudevent.check_agreement(received, payload)
    if payload.tenant != EVERYBODY and partition_of(payload.tenant, partitions) != position.partition:
        raise WrongPartition("record does not lie on its tenant's partition (murmur2)", field="partition")
    for credential in credentials:
        check_signing_time(keyring.get(credential.kid), position.append_ms)
        credential.check(received.type, payload, position.append_ms)
        if commands and credential.role not in COMMANDERS:
            raise NotPermitted(f"a {credential.role.value} credential may not use this topic", field="keyid")
        if commands and keyring.get(credential.kid).algorithm is not Algorithm.ED25519:
            raise NotPermitted("commands are signed with Ed25519 alone", field="keyid")
    _check_time(payload, position.append_ms)
    return Authentic(_identity(credentials[0], payload), received.type, payload, kids)


def _identity(credential: Credential, payload: AnyPayload) -> Identity:
    return Identity(credential.kid, credential.role, credential.channel, credential.effective_tier(payload))


def still_seen(
    value: bytes | None, position: Position, *, keyring: Keyring, registry: Registry, partitions: int
) -> Authentic | None:
    """Return what a record that is refused says of a session all the same, or None.

    The broker acknowledged it, so the content was handed to the agent: to forget that would be to fail open. Whoever
    signed it, and may publish such events for its tenant, is believed that far and no further: also with a key that
    has expired or was revoked since, and whatever else is wrong, in the event or around it. A signature that does not
    hold, or is by a key that is not known, proves nothing. Of what lies on a foreign partition *screen* has no rows.
    """
    envelope = _envelope_of(value)
    if envelope is None or (event_type := SEEN.get(envelope.payload_type)) is None:
        return None
    for signature in envelope.signatures:
        credential = _witness(replace(envelope, signatures=(signature,)), event_type, keyring, registry)
        if credential is None:
            continue
        unread = f"unread:{position.topic}:{position.partition}:{position.offset}"
        time = datetime.fromtimestamp(position.append_ms / 1_000, UTC)
        payload = read_seen(event_type, envelope.payload, unread, time)
        if payload is None or partition_of(payload.tenant, partitions) != position.partition:
            return None
        if ANY in credential.tenants or payload.tenant in credential.tenants:
            return Authentic(_identity(credential, payload), event_type, payload, (credential.kid,))
    return None


def may_be_known(value: bytes | None, keyring: Keyring, registry: Registry) -> bool:
    """Tell whether a record that is refused says what a session saw, by a key that is not known.

    The key may have been issued a moment ago, and then its session is tainted, whatever else is wrong with the record.
    """
    envelope = _envelope_of(value)
    if envelope is None or envelope.payload_type not in SEEN:
        return False
    return any(one.kid not in keyring or one.kid not in registry for one in envelope.signatures)


def signer(value: bytes | None, keyring: Keyring, registry: Registry) -> str:
    """Return the key whose signature over a refused record holds, "" where none does.

    That says who must answer for the record, and not that they may anything: a key that expired or was revoked counts
    for its holder all the same, and one that is only named counts for nobody.
    """
    envelope = _envelope_of(value)
    if envelope is None:
        return ""
    for signature in envelope.signatures:
        try:
            registry.get(signature.kid)
            if keyring.get(signature.kid).purpose is Purpose.CREDENTIAL:
                dsse.verify(replace(envelope, signatures=(signature,)), envelope.payload_type, keyring.once_held)
                return signature.kid
        except (UnknownKey, ForgedSignature):
            continue
    return ""


def check(sealed: Sealed) -> Finding | None:
    """Return why a recall or an observation is refused although its sender may publish such (``Sealed.problem``)."""
    return Finding(f"authenticity.{sealed.problem}", Decision.REJECT) if sealed.problem else None


def _envelope_of(value: bytes | None) -> dsse.Envelope | None:
    """Return the envelope of a record that was refused, or None where it has none that can be read."""
    if value is None or len(value) > SEEN_BYTES_MAX:
        return None
    with suppress(InputError):
        for document in cloudevent.possible_envelopes(value):
            with suppress(InputError):
                return dsse.parse(document)
    return None


def _witness(envelope: dsse.Envelope, event_type: EventType, keyring: Keyring, registry: Registry) -> Credential | None:
    """Return whose one signature it is, where it holds and such may publish what a session saw."""
    try:
        credential, key = registry.get(envelope.signatures[0].kid), keyring.get(envelope.signatures[0].kid)
        if key.purpose is not Purpose.CREDENTIAL or event_type not in PUBLISHES[credential.role]:
            return None
        dsse.verify(envelope, payload_type(event_type.value), keyring.once_held)
    except (UnknownKey, ForgedSignature):
        return None
    return credential
