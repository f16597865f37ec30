"""Entries for tests of stores, landing and recall: really admitted and signed, small, with vectors given by hand."""

from dataclasses import replace
from typing import Any

import numpy as np

from memsluice.envelope import codec
from memsluice.envelope.keys import Algorithm, Key, Keyring, Purpose
from memsluice.envelope.records import accepted_from_bytes, accepted_to_bytes
from memsluice.envelope.seals import Admission, admission_sign
from memsluice.envelope.space import DEFAULT_MODEL
from memsluice.events.models import Tier, Visibility, Zone
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.keystore.store import public_half
from memsluice.stores.base import StoredObject, expected_id, from_accepted
from memsluice.topics.names import ACCEPTED

T0 = 1_780_000_000_000
DAY_MS = 86_400_000
PARTITIONS = 8
MODEL = DEFAULT_MODEL
TRACE = ("traceparent", b"00-" + b"a" * 32 + b"-" + b"b" * 16 + b"-01")


def _ring(letter: str) -> Keyring:
    seed = letter.encode() * 32
    return Keyring(
        [
            Key("seal-1", Purpose.SEAL, Algorithm.HMAC_SHA256, seed),
            Key("digest-1", Purpose.DIGEST, Algorithm.HMAC_SHA256, b"d" * 32),
            Key("admission-1", Purpose.ADMISSION, Algorithm.ED25519, seed, public_half(seed)),
        ]
    )


RING = _ring("s")
STRANGER = _ring("x")
"""A keyring with the gate's key ids and other keys: what a forger signs with."""


def axis(number: int, towards: int | None = None, cosine: float = 0.0) -> codec.Vector:
    """Return a unit vector, exact in float16 where ``cosine`` is: along an axis, or leaning to another one."""
    vector = np.zeros(codec.DIMENSIONS, dtype=np.float32)
    vector[number] = np.sqrt(1 - cosine**2)
    if towards is not None:
        vector[towards] += cosine
    return codec.vector_from_bytes(codec.vector_to_bytes(vector))


def admission_of(tenant: str, content: str, vector: codec.Vector, **fields: Any) -> Admission:
    """Return an admission with sensible defaults; its object id is worked out unless given."""
    known: dict[str, Any] = {
        "object_id": "",
        "version": 1,
        "event_id": "event-1",
        "tenant": tenant,
        "agent": "scribe",
        "principal": "ana",
        "session": "s-1",
        "namespace": "default",
        "visibility": Visibility.PRINCIPAL,
        "key": None,
        "zone": Zone.GUIDANCE,
        "tier": Tier.USER_OBSERVED,
        "taint": False,
        "parents": (),
        "content_digest": codec.content_digest(RING, tenant, content),
        "vector_digest": codec.vector_digest(RING, tenant, codec.vector_to_bytes(vector)),
        "model": MODEL,
        "written_ms": T0,
        "expires_ms": None,
        "decision": "accept",
        "policy": "p",
    }
    admission = Admission(**{**known, **fields})
    return admission if admission.object_id else replace(admission, object_id=expected_id(admission))


def accepted_value(admission: Admission, content: str, vector: codec.Vector, ring: Keyring = RING) -> bytes:
    """Return the value of an accepted record, signed by ``ring``."""
    envelope = admission_sign(ring, "seal-1", "admission-1", admission)
    return accepted_to_bytes(envelope, content, codec.vector_to_text(vector))


def entry(
    tenant: str, content: str = "note", vector: codec.Vector | None = None, *, ring: Keyring = RING, **fields: Any
) -> StoredObject:
    """Return an object as *land* would write it."""
    direction = axis(0) if vector is None else vector
    value = accepted_value(admission_of(tenant, content, direction, **fields), content, direction, ring)
    return from_accepted(accepted_from_bytes(ring, tenant, value))


def accepted(
    tenant: str,
    offset: int,
    content: str = "note",
    vector: codec.Vector | None = None,
    *,
    ring: Keyring = RING,
    **fields: Any,
) -> Record:
    """Return an accepted record at an offset of the tenant's partition; version and event id follow the offset."""
    direction = axis(0) if vector is None else vector
    known = {"version": offset, "event_id": f"event-{offset}", **fields}
    value = accepted_value(admission_of(tenant, content, direction, **known), content, direction, ring)
    partition = partition_of(tenant, PARTITIONS)
    return Record(ACCEPTED, partition, offset, tenant.encode(), value, (TRACE, ("x", b"1"), ("x", b"2")), T0 + offset)
