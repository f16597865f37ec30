"""The records that *screen* and *land* write: accepted, held, stored. Verdicts: :mod:`memsluice.envelope.verdict`."""

import base64
import binascii
from dataclasses import dataclass, fields, replace
from typing import Any

import orjson

from memsluice.envelope import dsse
from memsluice.envelope.codec import Vector, canonical, content_digest, from_json, vector_digest, vector_from_text
from memsluice.envelope.keys import Keyring
from memsluice.envelope.plain import checked, shallow
from memsluice.envelope.seals import Admission, admission_verify_inside, close, open_, sealed_payload
from memsluice.envelope.verdict import Verdict
from memsluice.errors import InputError, MalformedEvent, SealError
from memsluice.events.models import Zone
from memsluice.events.names import HELD, STORED, VERDICT, WITHDRAWAL
from memsluice.events.records import Record


@dataclass(frozen=True, slots=True)
class Accepted:
    """One entry to land: its admission (verified), the admission's envelope as signed, the content and the vector."""

    admission: Admission
    envelope: dict[str, Any]
    content: str
    vector_text: str

    def vector(self) -> Vector:
        """Return the unit vector, shape (d,), float32."""
        return vector_from_text(self.vector_text)


def accepted_to_bytes(envelope: dict[str, Any], content: str, vector_text: str) -> bytes:
    """Return the value of a record of memory.accepted.v1. The admission's digests cover content and vector."""
    return canonical({"admission": envelope, "content": content, "vector": vector_text})


def check_digests(keyring: Keyring, admission: Admission, content: str, vector_bytes: bytes | None) -> None:
    """Raise SealError where content or vector are not what was admitted (``vector_bytes`` None: not looked at)."""
    if content_digest(keyring, admission.tenant, content) != admission.content_digest:
        raise SealError("content is not what was admitted")
    if vector_bytes is not None and vector_digest(keyring, admission.tenant, vector_bytes) != admission.vector_digest:
        raise SealError("vector is not what was admitted")


def accepted_from_bytes(keyring: Keyring, tenant: str, data: bytes) -> Accepted:
    """Read an accepted record and verify its admission (HMAC) and digests; ``tenant`` is the record's key.

    Raises SealError.
    """
    try:
        value = from_json(data)
        content, vector_text = str(value["content"]), str(value["vector"])
        admission = admission_verify_inside(keyring, tenant, value["admission"])
        check_digests(keyring, admission, content, vector_bytes_of(vector_text))
        return Accepted(admission, value["admission"], content, vector_text)
    except (KeyError, TypeError, MalformedEvent) as error:
        raise SealError(f"accepted record cannot be read: {error}") from None


def vector_bytes_of(vector_text: str) -> bytes:
    """Return the wire bytes of a base64 vector, two a component. Raises MalformedEvent."""
    try:
        return base64.b64decode(vector_text, validate=True)
    except (binascii.Error, ValueError):
        raise MalformedEvent("is not valid base64", field="vector") from None


@dataclass(frozen=True, slots=True)
class StoreRecord:
    """Record of memory.store.v1: an object's current version, or its withdrawal. Readers' freshness rests on it.

    ``scope`` (:func:`memsluice.events.ids.scope_tag`) says among which entries a live one is searched, ``place`` at
    which offset of its partition of memory.accepted.v1 the object itself stands. Withdrawals, and records of older
    versions, have neither.
    """

    object_id: str
    tenant: str
    version: int
    zone: Zone
    event_id: str
    content_digest: str
    expires_ms: int | None
    withdrawn: bool = False
    scope: str = ""
    place: int | None = None


_FIELDS = frozenset(field.name for field in fields(StoreRecord))


def _said(stored: StoreRecord) -> dict[str, Any]:
    """Return a store record as JSON values; what it does not know is left out, as in records of older versions."""
    value = shallow(stored)
    return {name: one for name, one in value.items() if (name, one) not in (("scope", ""), ("place", None))}


def stored_to_bytes(keyring: Keyring, kid: str, stored: StoreRecord) -> bytes:
    """Return the value of a record of memory.store.v1 (its key is the object id)."""
    return close(keyring, kid, stored.tenant, STORED, _said(stored))


def stored_from_bytes(keyring: Keyring, tenant: str, data: bytes) -> StoreRecord:
    """Read and verify a record of memory.store.v1. Raises SealError."""
    return _stored(open_(keyring, tenant, STORED, data), tenant)


def _stored(value: Any, tenant: str) -> StoreRecord:
    try:
        known = {name: one for name, one in value.items() if name in _FIELDS}  # a newer version may say more
        stored = StoreRecord(**{**checked(StoreRecord, known), "zone": Zone(value["zone"])})
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SealError(f"store record is not of this version ({type(error).__name__})") from None
    if stored.tenant != tenant:
        raise SealError("store record is of another tenant")
    return stored


def stored_of_any(keyring: Keyring, data: bytes) -> StoreRecord | None:
    """Return a store record once its seal holds under the key of the tenant it names; None where it does not."""
    try:
        envelope = dsse.parse(from_json(data))
        claimed = from_json(envelope.payload)
        tenant = str(claimed["tenant"])
        sealed_payload(keyring, tenant, STORED, envelope)
        return _stored(claimed, tenant)
    except (InputError, SealError, KeyError, TypeError):
        return None


def stored_of_record(keyring: Keyring, record: Record) -> StoreRecord | None:
    """Return what a record of memory.store.v1 says of the object that it is about, for whoever folds that log; None
    where its seal does not hold, or it lies under the key of another object."""
    stored = stored_of_any(keyring, record.value or b"")
    return stored if stored is not None and stored.object_id.encode() == record.key else None


def withdrawal_to_bytes(keyring: Keyring, kid: str, withdrawn: StoreRecord) -> bytes:
    """Return the value of a record of memory.accepted.v1 that takes an object out of the store."""
    return canonical({"withdrawal": orjson.loads(close(keyring, kid, withdrawn.tenant, WITHDRAWAL, _said(withdrawn)))})


def landing_from_bytes(keyring: Keyring, tenant: str, data: bytes) -> Accepted | StoreRecord:
    """Read what memory.accepted.v1 asks for, an entry to land or a withdrawal (verified). Raises SealError."""
    try:
        value = from_json(data)
        if not (isinstance(value, dict) and "withdrawal" in value):
            return accepted_from_bytes(keyring, tenant, data)
        stored = StoreRecord(**checked(StoreRecord, open_(keyring, tenant, WITHDRAWAL, canonical(value["withdrawal"]))))
        stored = replace(stored, zone=Zone(stored.zone))
    except (MalformedEvent, KeyError, TypeError, ValueError) as error:
        raise SealError(f"withdrawal cannot be read ({type(error).__name__})") from None
    if stored.tenant != tenant or not stored.withdrawn:
        raise SealError("withdrawal is of another tenant, or none")
    return stored


def verdict_to_bytes(keyring: Keyring, tenant: str, verdict: Verdict) -> bytes:
    """Return the value of a record of memory.audit.v1: the verdict, sealed by the key that it names."""
    return close(keyring, verdict.seal_kid, tenant, VERDICT, verdict.to_json())


def verdict_from_bytes(keyring: Keyring, tenant: str, data: bytes) -> Verdict:
    """Return the verdict of :func:`verdict_to_bytes`. Raises SealError."""
    verdict = Verdict.from_json(open_(keyring, tenant, VERDICT, data))
    if verdict.tenant != tenant:
        raise SealError("verdict is about another tenant")
    return verdict


def held_to_bytes(keyring: Keyring, kid: str, tenant: str, *, sealed: bytes, verdict: Verdict) -> bytes:
    """Return the value of a record of memory.quarantine.v1: the sealed event as it was, and why it is held."""
    return close(keyring, kid, tenant, HELD, {"sealed": orjson.loads(sealed), "verdict": verdict.to_json()})


def held_from_bytes(keyring: Keyring, tenant: str, data: bytes) -> tuple[bytes, Verdict]:
    """Return (sealed event's record value, verdict). Raises SealError."""
    value = open_(keyring, tenant, HELD, data)
    try:
        return canonical(value["sealed"]), Verdict.from_json(value["verdict"])
    except (KeyError, TypeError) as error:
        raise SealError(f"held record is not of this version ({type(error).__name__})") from None
