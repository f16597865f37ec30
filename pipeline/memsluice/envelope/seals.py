"""What the gate signs: sealed events (by *seal*), admissions (by *screen*), and the other records between stages.

Inside the gate HMAC-SHA256 under a tenant key; admissions carry an Ed25519 signature besides, because whoever can
verify an HMAC can forge it, and readers verify in agent processes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import Field

from memsluice.envelope import dsse
from memsluice.envelope.codec import VECTOR_DTYPE, Vector, canonical, digest, from_json, vector_from_text
from memsluice.envelope.keys import Keyring, KeyState, Purpose
from memsluice.envelope.plain import checked, shallow
from memsluice.envelope.registry import Role
from memsluice.errors import InputError, SealError
from memsluice.events.models import MODELS, AnyPayload, Channel, Tier, Visibility, Zone
from memsluice.events.names import ADMISSION, SEALED, EventType

GLOBAL = ""
"""Tenant under whose key records are sealed that belong to none (dead-letter markers)."""


@dataclass(frozen=True, slots=True)
class Position:
    """Where an event lies in its intake topic, and when the broker appended it (Unix ms): screen's clock."""

    topic: str
    partition: int
    offset: int
    append_ms: int


@dataclass(frozen=True, slots=True)
class Waited:
    """That an event waited in the overflow: until when (the broker's append time there, Unix ms: the clock that goes on
    with it), and the intake offset of the event that was moved before it, where that is known."""

    append_ms: int
    after: int | None


@dataclass(frozen=True, slots=True)
class Identity:
    """Who signed an event, as the registry has it."""

    kid: str
    role: Role
    channel: Channel
    tier: Tier


class Wording(NamedTuple):
    """What the encoder's head read in a text: the log-odds that its worst unit gives an order, that unit's characters,
    and how many characters were read.
    """

    logit: float
    first: int
    end: int
    read: int


@dataclass(frozen=True, slots=True)
class Sensitive:
    """One secret or personal datum that *seal* found: in which field of the payload, of what kind, and where.

    ``start`` and ``end`` are a half-open range of characters of the field as it was signed.
    """

    field: str
    kind: Annotated[str, Field(description="What it is, such as password or card.")]
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Sealed:
    """One authenticated event, labelled, with its vector: screen's only input.

    A ``marker`` stands for an intake record that became a dead letter: every intake offset has one sealed record.
    ``vector_text`` is base64 of numbers of ``vector_dtype``, little-endian, made by the encoder ``model``, a name with
    its revision ("": the default one). ``payload_digest`` and ``content_digest`` are HMACs of the payload, its time
    left out, and of its content or question. ``approvers`` are the key ids of all who signed a command. ``problem`` is
    the reason code of a recall or an observation that was signed by somebody who may publish such, and is wrong
    otherwise: what the session saw it has seen, so it taints. ``sketch`` is that of an observation's content and of a
    write's (:func:`memsluice.envelope.codec.sketch`).
    ``sensitive`` is what was found of secrets and personal data (of many the first); with ``redacted`` the payload,
    its digests and its vector are without them. ``wording`` is a write's; None where its encoder has no head, and in
    what was sealed before there was one. ``waited`` is of an event that came by the overflow: its position is its place
    in the intake topic all the same, where a marker stands for it. It is left out where there is none.
    """

    position: Position
    type: EventType | Literal["marker"]
    identity: Identity | None = None
    payload: AnyPayload | None = None
    payload_digest: str = ""
    content_digest: str = ""
    vector_text: str | None = None
    vector_digest: str = ""
    vector_dtype: str = VECTOR_DTYPE
    model: str = ""
    approvers: tuple[str, ...] = ()
    problem: str = ""
    sketch: str = ""
    sensitive: tuple[Sensitive, ...] = ()
    redacted: bool = False
    marker_reason: str = ""
    wording: Annotated[Wording | None, Field(description="What the encoder read in a write; null: nothing.")] = None
    waited: Waited | None = None

    @property
    def tenant(self) -> str:
        """The tenant, or GLOBAL for a marker."""
        return self.payload.tenant if self.payload is not None else GLOBAL

    def vector(self) -> Vector | None:
        """Return the unit vector, shape (d,), float32, or None."""
        return None if self.vector_text is None else vector_from_text(self.vector_text)


def close(keyring: Keyring, kid: str, tenant: str, payload_type: str, value: Any) -> bytes:
    """Return the JSON bytes of ``value`` in a DSSE envelope under the tenant's HMAC key derived from ``kid``."""
    return canonical(dsse.sign(payload_type, canonical(value), [keyring.tenant_key(kid, tenant)]))


def open_(keyring: Keyring, tenant: str, payload_type: str, data: bytes) -> Any:
    """Return the value of :func:`close`. Raises SealError."""
    try:
        return from_json(sealed_payload(keyring, tenant, payload_type, dsse.parse(from_json(data))))
    except InputError as error:
        raise SealError(f"record between stages does not verify: {error}") from None


def sealed_payload(keyring: Keyring, tenant: str, payload_type: str, envelope: dsse.Envelope) -> bytes:
    """Return the payload of an envelope once its seal holds. Raises SealError, or InputError where it does not."""
    for signature in envelope.signatures:
        if keyring.get(signature.kid).purpose is not Purpose.SEAL:
            raise SealError("sealed with a key of another purpose")
    return dsse.verify(envelope, payload_type, lambda kid: keyring.tenant_key(kid, tenant))


def payload_digest(keyring: Keyring, payload: AnyPayload) -> str:
    """Return the digest that says whether two events of one id are the same; a retry may stamp another time."""
    return digest(keyring, payload.tenant, "payload", canonical(payload.model_dump(mode="json", exclude={"time"})))


def sealed_to_bytes(keyring: Keyring, kid: str, sealed: Sealed) -> bytes:
    """Return a sealed event's record value."""
    value = shallow(sealed)
    value["position"] = shallow(sealed.position)
    value["identity"] = None if sealed.identity is None else shallow(sealed.identity)
    value["sensitive"] = [shallow(one) for one in sealed.sensitive]
    value["payload"] = sealed.payload.model_dump(mode="json") if sealed.payload is not None else None
    value["wording"] = None if sealed.wording is None else [*sealed.wording]
    if sealed.waited is None:
        del value["waited"]
    return close(keyring, kid, sealed.tenant, SEALED, value)


def sealed_from_bytes(keyring: Keyring, tenant: str, data: bytes) -> Sealed:
    """Read and verify a sealed event; ``tenant`` comes from the record's key. Raises SealError."""
    value = open_(keyring, tenant, SEALED, data)
    try:
        position = Position(**checked(Position, value.pop("position")))
        late = value.pop("waited", None)
        waited = None if late is None else Waited(**checked(Waited, late))
        checked(Sealed, value)
        if value["type"] == "marker":
            return Sealed(position=position, type="marker", marker_reason=value["marker_reason"], waited=waited)
        event_type = EventType(value.pop("type"))
        who = value.pop("identity")
        identity = Identity(checked(Identity, who)["kid"], Role(who["role"]), who["channel"], Tier(who["tier"]))
        payload = MODELS[event_type].model_validate(value.pop("payload"))
        approvers = tuple(value.pop("approvers"))
        sensitive = tuple(Sensitive(**checked(Sensitive, one)) for one in value.pop("sensitive", ()))
        wording = value.pop("wording", None)
        sealed = Sealed(
            position=position,
            type=event_type,
            identity=identity,
            payload=payload,
            approvers=approvers,
            sensitive=sensitive,
            wording=None if wording is None else Wording(*wording),
            waited=waited,
            **value,
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:  # sealed by another version of the gate
        raise SealError(f"sealed event is not of this version ({type(error).__name__})") from None
    if payload.tenant != tenant:
        raise SealError("sealed event of another tenant than its record's key")
    return sealed


RELEASED = "release"
"""The decision in the admission of what a person let in though the gate had found that it reads like an instruction; no
later command undoes it."""


@dataclass(frozen=True, slots=True)
class Admission:
    """What *screen* admits: everything about a stored entry that may not change unseen.

    ``version`` is the offset of the sealed record that decided it: a lower one never overwrites a higher.
    ``expires_ms`` (Unix ms) is None for entries that never expire; ``kid`` and ``channel`` are the writer's.
    ``decision`` is the verdict's, or RELEASED.
    """

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
    tier: Tier
    taint: bool
    parents: tuple[str, ...]
    content_digest: str
    vector_digest: str
    model: str
    written_ms: int
    expires_ms: int | None
    decision: str
    policy: str
    kid: str = ""
    channel: str = ""
    vector_dtype: str = VECTOR_DTYPE


def admission_sign(keyring: Keyring, seal_kid: str, admission_kid: str, admission: Admission) -> dict[str, Any]:
    """Return the admission's envelope with the gate's HMAC and the readers' Ed25519 signature."""
    signers = [keyring.tenant_key(seal_kid, admission.tenant), keyring.direct(admission_kid)]
    return dsse.sign(ADMISSION, canonical(shallow(admission)), signers)


def _admission(envelope: dict[str, Any], verifier: Callable[[str], dsse.Verifier | None]) -> Admission:
    try:
        value = from_json(dsse.verify_known(dsse.parse(envelope), ADMISSION, verifier))
        return Admission(
            **{
                **checked(Admission, value),
                "visibility": Visibility(value["visibility"]),
                "zone": Zone(value["zone"]),
                "tier": Tier(value["tier"]),
                "parents": tuple(value["parents"]),
            }
        )
    except (InputError, TypeError, KeyError, ValueError) as error:
        raise SealError(f"admission does not verify: {error}") from None


def admission_verify_inside(keyring: Keyring, tenant: str, envelope: dict[str, Any]) -> Admission:
    """Verify by the gate's HMAC (at landing). Raises SealError."""

    def verifier(kid: str) -> dsse.Verifier | None:
        return keyring.tenant_key(kid, tenant) if kid in keyring and keyring.get(kid).purpose is Purpose.SEAL else None

    return _check_tenant(_admission(envelope, verifier), tenant)


def admission_verify_outside(keyring: Keyring, tenant: str, envelope: dict[str, Any]) -> Admission:
    """Verify by the Ed25519 signature (readers; the keyring needs only public admission keys). Raises SealError."""
    return _check_tenant(admission_of_anybody(keyring, envelope), tenant)


def admission_of_anybody(keyring: Keyring, envelope: dict[str, Any]) -> Admission:
    """Verify as :func:`admission_verify_outside`, for whatever tenant it was signed. Raises SealError."""

    def verifier(kid: str) -> dsse.Verifier | None:
        return keyring.direct(kid) if kid in keyring and keyring.get(kid).purpose is Purpose.ADMISSION else None

    return _admission(envelope, verifier)


def admission_may_hold(keyring: Keyring, tenant: str, envelope: dict[str, Any]) -> bool:
    """Whether the gate may have signed what does not verify inside: it verifies outside, or no key that it names is
    held here and valid. Raises SealError where a key that is held says no, InputError for what is no envelope."""
    signed = dsse.parse(envelope).signatures
    if any(one.kid in keyring and keyring.get(one.kid).state is not KeyState.REVOKED for one in signed):
        admission_verify_outside(keyring, tenant, envelope)
    return True


def _check_tenant(admission: Admission, tenant: str) -> Admission:
    if admission.tenant != tenant:
        raise SealError("admission is of another tenant")
    return admission
