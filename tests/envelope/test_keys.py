"""The rules of the keyring, and the separation of tenants and purposes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.envelope.ring import RING

from memsluice.envelope import codec, dsse
from memsluice.envelope.keys import Algorithm, HmacKey, Key, Keyring, KeyState, Purpose, derive, fingerprint
from memsluice.errors import ConfigError, ForgedSignature, MalformedEvent, RevokedKey, UnknownKey

ENVELOPE = dsse.sign("t", b"payload", [RING.direct("producer-1")])


def verify(data: object, payload_type: str = "t") -> bytes:
    """Verify with the ring's keys."""
    return dsse.verify(dsse.parse(data), payload_type, RING.direct)


def test_a_signed_payload_verifies() -> None:
    """The cases below differ from this one by one change."""
    assert verify(ENVELOPE) == b"payload"


def test_a_signature_holds_for_its_type_and_bytes_only() -> None:
    """Another type, another payload, another signature, another key: each is forged."""
    for forged in (
        {**ENVELOPE, "payloadType": "u"},
        {**ENVELOPE, "payload": "cGF5bG9hZCE="},
        {**ENVELOPE, "signatures": [{"keyid": "producer-1", "sig": "AAAA"}]},
        {**ENVELOPE, "signatures": [{**ENVELOPE["signatures"][0], "keyid": "admission-1"}]},
    ):
        with pytest.raises(ForgedSignature):
            verify(forged)
    with pytest.raises(ForgedSignature):
        verify(ENVELOPE, "u")


def test_every_signature_must_hold() -> None:
    """One good signature does not carry a bad one along."""
    bad = {"keyid": "admission-1", "sig": "AAAA"}
    with pytest.raises(ForgedSignature):
        verify({**ENVELOPE, "signatures": [*ENVELOPE["signatures"], bad]})


def test_an_envelope_without_signatures_proves_nothing() -> None:
    """Also one that never went through the parser."""
    with pytest.raises(ForgedSignature):
        dsse.verify(dsse.Envelope("t", b"payload", ()), "t", RING.direct)


def test_url_safe_base64_is_read() -> None:
    """The specification lets a signer choose either alphabet; a reader takes both."""
    signed = dsse.sign("t", b"\xfb\xff\xfe", [RING.direct("producer-1")])
    signed["payload"] = signed["payload"].replace("+", "-").replace("/", "_")
    assert verify(signed) == b"\xfb\xff\xfe"


@given(st.text(max_size=30), st.text(max_size=30), st.text(max_size=30), st.text(max_size=30))
def test_tenants_and_purposes_never_share_a_key(one: str, two: str, other_one: str, other_two: str) -> None:
    """Moving characters between purpose and tenant never gives another pair's key."""
    names = [one, two, other_one, other_two]
    if any("\ud800" <= letter <= "\udfff" for name in names for letter in name):
        return
    same = (one, two) == (other_one, other_two)
    keys = [derive(b"r" * 32, purpose=one, tenant=two), derive(b"r" * 32, purpose=other_one, tenant=other_two)]
    assert (keys[0] == keys[1]) == same


def test_digests_differ_by_tenant_and_purpose() -> None:
    """The same content has another digest at another tenant: nobody learns that two tenants know the same."""
    assert codec.content_digest(RING, "acme", "tea") != codec.content_digest(RING, "globex", "tea")
    assert codec.content_digest(RING, "acme", "tea") == codec.content_digest(RING, "acme", "tea")
    assert codec.digest(RING, "acme", "content", b"x") != codec.digest(RING, "acme", "vector", b"x")


def _key(**fields: object) -> Key:
    return Key(
        **{"kid": "k", "purpose": Purpose.SEAL, "algorithm": Algorithm.HMAC_SHA256, "secret": b"x" * 32, **fields}
    )  # type: ignore[arg-type]


def test_not_after_ends_signing_and_not_verifying() -> None:
    """A key past its time still verifies what it signed; so does a retired one; a revoked one does neither."""
    key = _key(not_before_ms=10, not_after_ms=20)
    assert [key.signs_at(now) for now in (9, 10, 19, 20)] == [False, True, True, False]
    ring = Keyring([key])
    assert ring.tenant_key("k", "acme").verify(b"m", ring.tenant_key("k", "acme").sign(b"m"))
    retired = ring.retire("k")
    assert not retired.get("k").signs_at(15)
    assert retired.tenant_key("k", "acme")
    revoked = ring.retire("k", KeyState.REVOKED)
    with pytest.raises(RevokedKey):
        revoked.tenant_key("k", "acme")
    with pytest.raises(RevokedKey):
        revoked.direct("k")


def test_the_newest_key_that_may_sign_does() -> None:
    """After a rotation the successor signs from its own start on, the old key until then."""
    ring = Keyring([_key(kid="a", not_before_ms=0, not_after_ms=100), _key(kid="b", not_before_ms=50)])
    assert [ring.signing(Purpose.SEAL, now).kid for now in (0, 49, 50, 150)] == ["a", "a", "b", "b"]
    with pytest.raises(ConfigError, match="memsluice keys new admission"):
        ring.signing(Purpose.ADMISSION, 0)


def test_the_oldest_digest_key_is_used_for_ever() -> None:
    """A second digest key, whatever its name, changes no digest."""
    first = Keyring([_key(kid="z", purpose=Purpose.DIGEST, not_before_ms=1)])
    both = first.with_key(_key(kid="a", purpose=Purpose.DIGEST, secret=b"y" * 32, not_before_ms=2))
    assert codec.content_digest(first, "acme", "tea") == codec.content_digest(both, "acme", "tea")


def test_a_key_that_is_not_there_is_said() -> None:
    """Unknown ids, missing halves and wrong algorithms are typed errors."""
    with pytest.raises(UnknownKey):
        RING.get("nobody")
    with pytest.raises(ConfigError, match="no HMAC key"):
        RING.tenant_key("admission-1", "acme")
    with pytest.raises(ConfigError, match="only verify"):
        Keyring([_key(algorithm=Algorithm.ED25519, secret=None, public=b"\x01" + b"\0" * 31)]).direct("k").sign(b"m")
    with pytest.raises(ConfigError, match="no secret here"):
        Keyring([_key(secret=None)]).direct("k")


def test_secrets_do_not_show() -> None:
    """Neither a key's repr nor its fingerprint shows the secret."""
    key = _key(secret=b"very-secret-bytes-very-secret-32")
    assert "very-secret" not in repr(key)
    assert b"very-secret".hex() not in fingerprint(key)
    assert len(fingerprint(key)) == 16
    assert fingerprint(key) != fingerprint(_key(secret=b"z" * 32))


@given(st.binary(max_size=64), st.binary(max_size=64))
def test_a_tag_of_other_bytes_never_verifies(message: bytes, other: bytes) -> None:
    """HMAC verification holds for the message that was signed alone."""
    key = HmacKey("k", b"x" * 32)
    assert key.verify(other, key.sign(message)) == (message == other)


@pytest.mark.parametrize("data", [None, [], "x", 7, {}, {"payloadType": "t", "signatures": {}}])
def test_what_is_no_envelope_is_malformed(data: object) -> None:
    """Any JSON value in place of an envelope is MalformedEvent, no stray AttributeError."""
    with pytest.raises(MalformedEvent):
        dsse.parse(data)
