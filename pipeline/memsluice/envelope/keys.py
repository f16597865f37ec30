"""Keys and the rules of the keyring.

``not_after`` ends signing, not verifying; ``revoked`` ends both. Tenant keys are derived by HKDF (RFC 5869) so that a
leaked tenant key opens nothing of another tenant.
"""

import hmac
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.hashes import SHA256

from memsluice.errors import ConfigError, RevokedKey, UnknownKey

DERIVED_KEYS_MAX = 8_192
HMAC_KEY_BYTES = 32


class Algorithm(StrEnum):
    """Signature algorithms."""

    HMAC_SHA256 = "hmac-sha256"
    ED25519 = "ed25519"


class KeyState(StrEnum):
    """Retired keys verify and no longer sign; revoked ones do neither."""

    ACTIVE = "active"
    RETIRED = "retired"
    REVOKED = "revoked"


class Purpose(StrEnum):
    """What a key is for; a key is never used for two purposes."""

    CREDENTIAL = "credential"
    SEAL = "seal"
    ADMISSION = "admission"
    DIGEST = "digest"


@dataclass(frozen=True, slots=True)
class Key:
    """One key. ``secret`` is HMAC key or Ed25519 seed, both 32 bytes; None where only ``public`` is held here.

    Times are Unix milliseconds; ``not_after_ms`` None means open-ended. ``tenant`` names the one tenant whose derived
    key this already is; None: a key that stands for itself, or a root from which tenants' keys are derived.
    """

    kid: str
    purpose: Purpose
    algorithm: Algorithm
    secret: bytes | None = field(repr=False)
    public: bytes | None = None
    not_before_ms: int = 0
    not_after_ms: int | None = None
    state: KeyState = KeyState.ACTIVE
    tenant: str | None = None

    def signs_at(self, now_ms: int) -> bool:
        """Whether the key may sign at this time."""
        in_time = self.not_before_ms <= now_ms and (self.not_after_ms is None or now_ms < self.not_after_ms)
        return self.state is KeyState.ACTIVE and self.secret is not None and in_time


class HmacKey:
    """HMAC-SHA256 (RFC 2104) signer and verifier."""

    def __init__(self, kid: str, secret: bytes) -> None:
        self.kid = kid
        self._secret = secret

    def sign(self, message: bytes) -> bytes:
        """Return the 32-byte tag."""
        return hmac.digest(self._secret, message, "sha256")

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Compare in constant time."""
        return hmac.compare_digest(self.sign(message), signature)


class Ed25519Key:
    """Ed25519 (RFC 8032) verifier, and signer where the private half is held."""

    def __init__(self, kid: str, *, secret: bytes | None, public: bytes | None) -> None:
        self.kid = kid
        self._private = Ed25519PrivateKey.from_private_bytes(secret) if secret is not None else None
        if self._private is not None:
            self._public = self._private.public_key()
        elif public is not None:
            self._public = Ed25519PublicKey.from_public_bytes(public)
        else:
            raise ConfigError(f"key {kid} has neither a private nor a public half")

    def sign(self, message: bytes) -> bytes:
        """Return the 64-byte signature. Raises ConfigError where only the public half is held."""
        if self._private is None:
            raise ConfigError(f"key {self.kid} can only verify here")
        return self._private.sign(message)

    def verify(self, message: bytes, signature: bytes) -> bool:
        """Return whether the signature holds."""
        try:
            self._public.verify(signature, message)
        except InvalidSignature:
            return False
        return True


def generate_ed25519() -> tuple[bytes, bytes]:
    """Return (seed, public key), 32 bytes each."""
    private = Ed25519PrivateKey.generate()
    return private.private_bytes_raw(), private.public_key().public_bytes_raw()


def derive(secret: bytes, *, purpose: str, tenant: str) -> bytes:
    """Return the 32-byte key of a tenant and purpose (HKDF-SHA256, RFC 5869; info is length-prefixed)."""
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF  # who only signs derives nothing

    info = f"memsluice/v1/{len(purpose)}:{purpose}/{len(tenant)}:{tenant}".encode()
    return HKDF(algorithm=SHA256(), length=HMAC_KEY_BYTES, salt=None, info=info).derive(secret)


class Keyring:
    """Immutable set of keys by ``kid``, with the rules of who may still sign or verify."""

    def __init__(self, keys: Iterable[Key]) -> None:
        self._keys = {key.kid: key for key in keys}
        self._derived: dict[tuple[str, str], HmacKey] = {}
        self._ed25519: dict[str, Ed25519Key] = {}
        self._digest_kids: dict[str, str] = {}

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys.values())

    def __contains__(self, kid: object) -> bool:
        return kid in self._keys

    def get(self, kid: str) -> Key:
        """Return the key. Raises UnknownKey."""
        try:
            return self._keys[kid]
        except KeyError:
            raise UnknownKey("key id is not in the keyring", field="keyid") from None

    def with_key(self, key: Key) -> "Keyring":
        """Return a keyring with this key added or replaced."""
        return Keyring([*(k for k in self._keys.values() if k.kid != key.kid), key])

    def retire(self, kid: str, state: KeyState = KeyState.RETIRED) -> "Keyring":
        """Return a keyring in which the key has this state."""
        return self.with_key(replace(self.get(kid), state=state))

    def signing(self, purpose: Purpose, now_ms: int) -> Key:
        """Return the newest key that may sign for a purpose now. Raises ConfigError where there is none."""
        fit = [key for key in self._keys.values() if key.purpose is purpose and key.signs_at(now_ms)]
        if not fit:
            raise ConfigError(f"no active {purpose.value} key in the keyring; run: memsluice keys new {purpose.value}")
        return max(fit, key=lambda key: (key.not_before_ms, key.kid))

    def _usable(self, kid: str) -> Key:
        key = self.get(kid)
        if key.state is KeyState.REVOKED:
            raise RevokedKey("key was revoked", field="keyid")
        return key

    def tenant_key(self, kid: str, tenant: str) -> HmacKey:
        """Return the HMAC key of ``kid`` for a tenant: derived, or the key itself where it is that tenant's already.

        Raises UnknownKey, RevokedKey; ConfigError for a key that is no HMAC key, or another tenant's.
        """
        key = self._usable(kid)
        found = self._derived.get((kid, tenant))
        if found is None:
            if key.secret is None or key.algorithm is not Algorithm.HMAC_SHA256:
                raise ConfigError(f"key {kid} is no HMAC key")
            if key.tenant not in (None, tenant):
                raise ConfigError(f"key {kid} is of tenant {key.tenant}, not of {tenant}")
            if len(self._derived) >= DERIVED_KEYS_MAX:
                self._derived.clear()
            own = key.tenant is not None
            found = HmacKey(kid, key.secret if own else derive(key.secret, purpose=key.purpose.value, tenant=tenant))
            self._derived[(kid, tenant)] = found
        return found

    def digest_key(self, tenant: str) -> HmacKey:
        """Return the tenant's digest key: the one held of it alone, else of the oldest digest root.

        Roots never rotate: digests must stay equal. Raises ConfigError where neither is held.
        """
        kid = self._digest_kids.get(tenant)
        if kid is None:
            if len(self._digest_kids) >= DERIVED_KEYS_MAX:
                self._digest_kids.clear()
            kid = self._digest_kids[tenant] = self._find_digest(tenant)
        return self.tenant_key(kid, tenant)

    def _find_digest(self, tenant: str) -> str:
        held = [key for key in self._keys.values() if key.purpose is Purpose.DIGEST]
        fit = [key for key in held if key.tenant == tenant] or [key for key in held if key.tenant is None]
        if fit:
            return min(fit, key=lambda key: (key.not_before_ms, key.kid)).kid
        if held or not any(key.purpose is Purpose.SEAL for key in self._keys.values()):
            raise ConfigError(
                f"this reader's keyring has no digest key of tenant {tenant}, so its content cannot be verified; "
                f"on the gate's side run: memsluice keys public FILE --tenant {tenant}"
            )
        raise ConfigError("no digest key in the keyring; run: memsluice keys init")

    def direct(self, kid: str) -> HmacKey | Ed25519Key:
        """Return the key itself as signer and verifier. Raises UnknownKey, RevokedKey."""
        return self._itself(self._usable(kid))

    def once_held(self, kid: str) -> HmacKey | Ed25519Key:
        """Return a key as verifier, revoked or not: says who once held it, not that they may. Raises UnknownKey."""
        return self._itself(self.get(kid))

    def _itself(self, key: Key) -> HmacKey | Ed25519Key:
        kid = key.kid
        if key.algorithm is Algorithm.HMAC_SHA256:
            if key.secret is None:
                raise ConfigError(f"key {kid} has no secret here")
            return HmacKey(kid, key.secret)
        if kid not in self._ed25519:
            self._ed25519[kid] = Ed25519Key(kid, secret=key.secret, public=key.public)
        return self._ed25519[kid]


def fingerprint(key: Key) -> str:
    """Return a short public name of the key's material, safe to show (first 16 hex digits of a hash)."""
    material = key.public if key.public is not None else sha256(b"memsluice-fingerprint" + (key.secret or b"")).digest()
    return sha256(material).hexdigest()[:16]
