"""What the gate seals between its stages: tamper-evident, per tenant, per purpose."""

import base64
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.envelope.made import made
from tests.envelope.ring import RING
from tests.gate.build import RING as GATE_RING
from tests.gate.build import TENANT, sealed

from memsluice.envelope import codec, dsse, records, seals
from memsluice.envelope.keys import Algorithm, Key, KeyState, Purpose
from memsluice.errors import MalformedEvent, SealError
from memsluice.events.models import Tier, Visibility, Zone
from memsluice.events.names import ADMISSION, HELD, SEALED, STORED, EventType
from memsluice.keystore.store import public_keyring

VECTOR = np.zeros(codec.DIMENSIONS, dtype=np.float32)
VECTOR[0] = 1.0
ADMISSION_ = seals.Admission(
    object_id="00000000-0000-5000-8000-000000000000", version=7, event_id="e-1", tenant="acme", agent="a",
    principal="p", session="s", namespace="default", visibility=Visibility.PRINCIPAL, key=None, zone=Zone.GUIDANCE,
    tier=Tier.USER_OBSERVED, taint=False, parents=("e-0",), content_digest=codec.content_digest(RING, "acme", "tea"),
    vector_digest=codec.vector_digest(RING, "acme", codec.vector_to_bytes(VECTOR)), model="m", written_ms=1,
    expires_ms=None, decision="accept", policy="p",
)  # fmt: skip
STORED_ = records.StoreRecord("o", "acme", 7, Zone.EXTERNAL, "e-1", "ab", None)
SEALED_BYTES = seals.sealed_to_bytes(
    RING, "seal-1", seals.Sealed(seals.Position("t", 1, 2, 3), "marker", marker_reason="x")
)


def accepted(content: str = "tea", **changes: Any) -> bytes:
    """Return an accepted record."""
    envelope = seals.admission_sign(RING, "seal-1", "admission-1", replace(ADMISSION_, **changes))
    return records.accepted_to_bytes(envelope, content, codec.vector_to_text(VECTOR))


def test_an_accepted_record_is_read_back() -> None:
    """Admission, content and vector come back as they were admitted."""
    read = records.accepted_from_bytes(RING, "acme", accepted())
    assert read.admission == ADMISSION_
    assert read.content == "tea"
    assert np.array_equal(read.vector(), VECTOR)


def test_what_the_wording_showed_is_read_back_and_missed_by_nothing_older() -> None:
    """A sealed write has it; one that was sealed before there was such a field, or shows nothing, has none."""
    base = sealed("user", EventType.WRITE, 0, content="tea", vector=VECTOR)
    for shown in (None, seals.Wording(-1.25, 0, 3, 3)):
        event = replace(base, wording=shown)
        assert seals.sealed_from_bytes(GATE_RING, TENANT, seals.sealed_to_bytes(GATE_RING, "seal-1", event)) == event
    value = seals.open_(GATE_RING, TENANT, SEALED, seals.sealed_to_bytes(GATE_RING, "seal-1", base))
    del value["wording"]
    old = seals.close(GATE_RING, "seal-1", TENANT, SEALED, value)
    assert seals.sealed_from_bytes(GATE_RING, TENANT, old).wording is None


def test_readers_verify_without_a_secret() -> None:
    """The public keyring verifies an admission and cannot sign one; the gate's HMAC alone does not satisfy a reader."""
    envelope = orjson.loads(accepted())["admission"]
    outside = public_keyring(RING)
    assert seals.admission_verify_outside(outside, "acme", envelope) == ADMISSION_
    assert all(key.secret is None for key in outside)
    inside_only = {**envelope, "signatures": [s for s in envelope["signatures"] if s["keyid"] == "seal-1"]}
    with pytest.raises(SealError):
        seals.admission_verify_outside(outside, "acme", inside_only)
    assert seals.admission_verify_inside(RING, "acme", inside_only) == ADMISSION_


@pytest.mark.parametrize("kid", ["producer-1", "digest-1"])
def test_a_key_of_another_purpose_seals_nothing(kid: str) -> None:
    """A credential or the digest root cannot stand in for a seal key."""
    with pytest.raises(SealError):
        seals.open_(RING, "acme", STORED, seals.close(RING, kid, "acme", STORED, {}))
    admission = dsse.sign(ADMISSION, codec.canonical({}), [RING.direct("producer-1")])
    with pytest.raises(SealError):
        seals.admission_verify_outside(RING, "acme", admission)


def test_content_or_vector_that_was_not_admitted_is_found() -> None:
    """The admission's digests cover both."""
    with pytest.raises(SealError, match="content"):
        records.accepted_from_bytes(RING, "acme", accepted("coffee"))
    with pytest.raises(SealError, match="vector"):
        records.accepted_from_bytes(RING, "acme", accepted(vector_digest="00"))


def test_no_record_is_read_as_another_tenant_s() -> None:
    """A record moved under another tenant's key does not verify: its seal is under a tenant's derived key."""
    stored = records.stored_to_bytes(RING, "seal-1", STORED_)
    assert records.stored_from_bytes(RING, "acme", stored) == STORED_
    for read in (
        lambda: records.stored_from_bytes(RING, "globex", stored),
        lambda: records.accepted_from_bytes(RING, "globex", accepted()),
        lambda: seals.sealed_from_bytes(RING, "globex", SEALED_BYTES),
        lambda: records.stored_from_bytes(RING, "globex", seals.close(RING, "seal-1", "globex", STORED, orjson.loads(
            base64.b64decode(orjson.loads(stored)["payload"])))),
    ):  # fmt: skip
        with pytest.raises(SealError):
            read()


def test_no_record_is_read_as_another_kind() -> None:
    """A seal for one purpose does not open as another."""
    held = records.held_to_bytes(RING, "seal-1", "acme", sealed=SEALED_BYTES, verdict=made())
    assert records.held_from_bytes(RING, "acme", held) == (SEALED_BYTES, made())
    with pytest.raises(SealError):
        records.stored_from_bytes(RING, "acme", held)
    with pytest.raises(SealError):
        seals.sealed_from_bytes(RING, "acme", held)


@pytest.mark.parametrize("payload_type", [SEALED, STORED, HELD])
@pytest.mark.parametrize("value", [[], {}, 7, None, {"position": {}}, {"position": None, "type": "marker"}])
def test_a_record_of_another_version_is_a_seal_error(payload_type: str, value: Any) -> None:
    """Well sealed but unreadable (another version's) records are refused by type, not by a stray KeyError."""
    data = seals.close(RING, "seal-1", "acme", payload_type, value)
    reader: Any = {
        SEALED: seals.sealed_from_bytes,
        STORED: records.stored_from_bytes,
        HELD: records.held_from_bytes,
    }[payload_type]
    with pytest.raises(SealError):
        reader(RING, "acme", data)


@given(st.binary(max_size=300))
@settings(max_examples=300, deadline=None)
def test_arbitrary_bytes_are_a_seal_error(data: bytes) -> None:
    """Whatever lies on an internal topic is opened or refused."""
    for read in (
        seals.sealed_from_bytes,
        records.stored_from_bytes,
        records.held_from_bytes,
        records.accepted_from_bytes,
    ):
        with pytest.raises(SealError):
            read(RING, "acme", data)


@given(st.integers(0, 10_000), st.integers(1, 255))
@settings(max_examples=400, deadline=None)
def test_any_changed_byte_is_found(at: int, by: int) -> None:
    """One byte of an accepted record changed: refused, or it was read as exactly the same."""
    data = bytearray(accepted())
    data[at % len(data)] ^= by
    try:
        read = records.accepted_from_bytes(RING, "acme", bytes(data))
    except SealError:
        return
    assert (read.admission, read.content) == (ADMISSION_, "tea")
    assert read.vector_text == codec.vector_to_text(VECTOR)


def test_a_revoked_seal_key_opens_nothing() -> None:
    """Revoking ends verification between the stages too."""
    revoked = RING.retire("seal-1", KeyState.REVOKED)
    with pytest.raises(SealError, match="revoked"):
        records.stored_from_bytes(revoked, "acme", records.stored_to_bytes(RING, "seal-1", STORED_))


def test_a_rotated_seal_key_still_opens() -> None:
    """What the old key sealed verifies after the rotation, with both keys in the ring."""
    rotated = RING.retire("seal-1").with_key(Key("seal-2", Purpose.SEAL, Algorithm.HMAC_SHA256, b"t" * 32))
    assert records.stored_from_bytes(rotated, "acme", records.stored_to_bytes(RING, "seal-1", STORED_)) == STORED_


@pytest.mark.parametrize("data", [b"", b"\0" * 767, b"\0" * 768, b"\xff" * 768, b"\x00\x7c" * 384])
def test_what_is_no_unit_vector_is_refused(data: bytes) -> None:
    """Wrong length, zero, NaN and infinity never become a vector."""
    with pytest.raises(MalformedEvent):
        codec.vector_from_bytes(data)
    with pytest.raises(MalformedEvent):
        codec.vector_from_text("no base64 §")


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=50, deadline=None)
def test_a_vector_survives_its_wire_form(seed: int) -> None:
    """float16 on the wire keeps the direction to 1e-3, and reading it twice gives the same bits."""
    vector = np.random.default_rng(seed).normal(size=codec.DIMENSIONS).astype(np.float32)
    vector /= np.linalg.norm(vector)
    text = codec.vector_to_text(vector)
    read = codec.vector_from_text(text)
    assert read.dtype == np.float32
    assert float(read @ vector) > 0.999
    assert np.array_equal(read, codec.vector_from_text(text))


def test_canonical_bytes_do_not_depend_on_order() -> None:
    """Two dicts of the same fields give the same bytes, so the same seal."""
    assert codec.canonical({"b": 1, "a": 2}) == codec.canonical({"a": 2, "b": 1}) == b'{"a":2,"b":1}'
