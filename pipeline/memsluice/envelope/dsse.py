"""DSSE, the Dead Simple Signing Envelope v1: pre-authentication encoding over a payload type and exact bytes."""

import base64
import binascii
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from memsluice.errors import ForgedSignature, LimitExceeded, MalformedEvent
from memsluice.events.limits import APPROVALS_MAX, ID_CHARS_MAX


class Signer(Protocol):
    """Signs bytes with one key; the small door through which a KMS would come in."""

    kid: str

    def sign(self, message: bytes) -> bytes:
        """Return the signature of ``message``."""


class Verifier(Protocol):
    """Verifies with one key."""

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Return whether ``signature`` is this key's over ``message``."""


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature of an envelope: the key id it names and its raw bytes."""

    kid: str
    value: bytes


@dataclass(frozen=True, slots=True)
class Envelope:
    """A parsed, not yet verified envelope."""

    payload_type: str
    payload: bytes
    signatures: tuple[Signature, ...]


def pae(payload_type: str, payload: bytes) -> bytes:
    """Return DSSE's pre-authentication encoding: what is really signed."""
    name = payload_type.encode()
    return b"DSSEv1 %d %s %d %s" % (len(name), name, len(payload), payload)


def sign(payload_type: str, payload: bytes, signers: Sequence[Signer]) -> dict[str, Any]:
    """Return the envelope, ready for JSON, of ``payload`` signed by every signer."""
    message = pae(payload_type, payload)
    return {
        "payload": base64.b64encode(payload).decode(),
        "payloadType": payload_type,
        "signatures": [
            {"keyid": signer.kid, "sig": base64.b64encode(signer.sign(message)).decode()} for signer in signers
        ],
    }


def _decode(text: object, field: str) -> bytes:
    if not isinstance(text, str):
        raise MalformedEvent("is not valid base64", field=field)
    try:  # the specification lets a signer choose the standard or the URL-safe alphabet
        return base64.b64decode(text.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        raise MalformedEvent("is not valid base64", field=field) from None


def parse(data: Any) -> Envelope:
    """Read an envelope decoded from JSON. Raises MalformedEvent naming the field.

    No key signs twice: two approvals are two keys'.
    """
    if not isinstance(data, dict):
        raise MalformedEvent("is not a DSSE envelope", field="data")
    payload_type = data.get("payloadType")
    if not isinstance(payload_type, str):
        raise MalformedEvent("is missing", field="payloadType")
    if not payload_type.isascii():  # half a surrogate pair could not be encoded, and so not be verified
        raise MalformedEvent("is no media type", field="payloadType")
    raw = data.get("signatures")
    if not isinstance(raw, list) or not 1 <= len(raw) <= APPROVALS_MAX:
        raise MalformedEvent(f"must contain 1 to {APPROVALS_MAX} signatures", field="signatures")
    signatures: list[Signature] = []
    for number, item in enumerate(raw):
        if not isinstance(item, dict) or not isinstance(item.get("keyid"), str):
            raise MalformedEvent("is missing or is not text", field=f"signatures.{number}.keyid")
        if len(item["keyid"]) > ID_CHARS_MAX:
            raise LimitExceeded(
                f"has more than the {ID_CHARS_MAX} characters that are allowed", field=f"signatures.{number}.keyid"
            )
        if any(item["keyid"] == other.kid for other in signatures):
            raise MalformedEvent(
                "is the key of an earlier signature; each key may sign only once", field=f"signatures.{number}.keyid"
            )
        signatures.append(Signature(item["keyid"], _decode(item.get("sig"), f"signatures.{number}.sig")))
    return Envelope(payload_type, _decode(data.get("payload"), "payload"), tuple(signatures))


def verify(envelope: Envelope, payload_type: str, verifier_of: Callable[[str], Verifier]) -> bytes:
    """Return the payload once **every** signature holds over it for ``payload_type``.

    ``verifier_of`` looks a key id up and raises UnknownKey. Raises ForgedSignature otherwise.
    """
    if envelope.payload_type != payload_type:
        raise ForgedSignature(f"was signed as another type than {payload_type}", field="payloadType")
    if not envelope.signatures:
        raise ForgedSignature("is not signed", field="signatures")
    message = pae(payload_type, envelope.payload)
    for signature in envelope.signatures:
        if not verifier_of(signature.kid).verify(message, signature.value):
            raise ForgedSignature("signature does not match the bytes", field=f"signatures[{signature.kid}]")
    return envelope.payload


def verify_known(envelope: Envelope, payload_type: str, verifier_of: Callable[[str], Verifier | None]) -> bytes:
    """Return the payload once every signature by a key that is known here holds, and at least one does.

    An admission carries an HMAC for inside the gate and an Ed25519 signature for readers; each side knows its own key.
    ``verifier_of`` returns None for an unknown key id. Raises ForgedSignature.
    """
    if envelope.payload_type != payload_type:
        raise ForgedSignature(f"was signed as another type than {payload_type}", field="payloadType")
    message, held = pae(payload_type, envelope.payload), 0
    for signature in envelope.signatures:
        verifier = verifier_of(signature.kid)
        if verifier is None:
            continue
        if not verifier.verify(message, signature.value):
            raise ForgedSignature("signature does not match the bytes", field=f"signatures[{signature.kid}]")
        held += 1
    if not held:
        raise ForgedSignature("no signature by a known key", field="signatures")
    return envelope.payload
