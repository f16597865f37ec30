"""Published test vectors: what we sign and derive is what the standards say."""

import hmac

import pytest
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memsluice.envelope import dsse
from memsluice.envelope.keys import Ed25519Key, HmacKey, derive
from memsluice.keystore.store import public_half

RFC8032 = [  # section 7.1, tests 1 to 3: seed, public key, message, signature
    (
        "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60",
        "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a",
        "",
        "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b",
    ),
    (
        "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb",
        "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
        "72",
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
    ),
    (
        "c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7",
        "fc51cd8e6218a1a38da47ed00230f0580816ed13ba3303ac5deb911548908025",
        "af82",
        "6291d657deec24024827e69c3abe01a30ce548a284743a445e3680d7db5ac3ac18ff9b538d16f290ae67f760984dc6594a7c15e9716ed28dc027beceea1ec40a",
    ),
]


def test_pae_is_the_specification_s() -> None:
    """The DSSE specification's own example of the pre-authentication encoding."""
    expected = b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    assert dsse.pae("http://example.com/HelloWorld", b"hello world") == expected


def test_pae_counts_bytes_and_takes_any() -> None:
    """Lengths are of UTF-8 bytes, and a payload that looks like an encoding cannot shift the borders."""
    assert dsse.pae("ä", b"\0\xff") == b"DSSEv1 2 \xc3\xa4 2 \0\xff"
    assert dsse.pae("a", b"1 b 1 c") != dsse.pae("a 7 1", b"b 1 c")


@pytest.mark.parametrize(("seed", "public", "message", "signature"), RFC8032)
def test_ed25519_is_rfc_8032(seed: str, public: str, message: str, signature: str) -> None:
    """Signature, public half and verification of RFC 8032; one bit elsewhere and it no longer holds."""
    key = Ed25519Key("k", secret=bytes.fromhex(seed), public=None)
    other_side = Ed25519Key("k", secret=None, public=bytes.fromhex(public))
    assert public_half(bytes.fromhex(seed)).hex() == public
    assert key.sign(bytes.fromhex(message)).hex() == signature
    assert other_side.verify(bytes.fromhex(message), bytes.fromhex(signature))
    assert not other_side.verify(bytes.fromhex(message) + b"x", bytes.fromhex(signature))
    assert not other_side.verify(bytes.fromhex(message), bytes.fromhex(signature)[:-1])
    assert not other_side.verify(bytes.fromhex(message), b"")


def test_hmac_is_rfc_4231() -> None:
    """Test case 2 of RFC 4231, HMAC-SHA256."""
    key = HmacKey("k", b"Jefe")
    tag = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert key.sign(b"what do ya want for nothing?").hex() == tag
    assert key.verify(b"what do ya want for nothing?", bytes.fromhex(tag))
    assert not key.verify(b"what do ya want for nothing!", bytes.fromhex(tag))
    assert not key.verify(b"what do ya want for nothing?", b"")


def _hkdf_by_hand(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    """RFC 5869, sections 2.2 and 2.3, written out."""
    prk = hmac.digest(salt or bytes(32), secret, "sha256")
    block, out = b"", b""
    for counter in range(1, -(-length // 32) + 1):
        block = hmac.digest(prk, block + info + bytes([counter]), "sha256")
        out += block
    return out[:length]


def test_hkdf_is_rfc_5869() -> None:
    """Test case 1 of RFC 5869, for the primitive and for the few lines that the next test relies on."""
    secret, salt, info = b"\x0b" * 22, bytes(range(13)), bytes(range(0xF0, 0xFA))
    expected = bytes.fromhex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865")
    assert HKDF(algorithm=SHA256(), length=42, salt=salt, info=info).derive(secret) == expected
    assert _hkdf_by_hand(secret, salt, info, 42) == expected


def test_tenant_keys_are_hkdf_over_purpose_and_tenant() -> None:
    """A tenant's key can be derived again by anybody who has the root and this line: it is frozen."""
    info = b"memsluice/v1/4:seal/4:acme"
    assert derive(b"r" * 32, purpose="seal", tenant="acme") == _hkdf_by_hand(b"r" * 32, b"", info, 32)
