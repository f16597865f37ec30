"""Bearer tokens: a short JWT (RFC 7519) that a credential's own key signs for one service, and nobody stores.

A service knows the key from the gate's keyring, and what it may ask from the registry; nothing in a token but its
times counts. So a token needs no issuer, is worth little once it is a minute old, and dies with its key.
"""

import secrets
from typing import Any

import jwt

from memsluice.envelope.keys import Algorithm, Key, Keyring
from memsluice.envelope.registry import Credential, Registry, check_signing_time, credential_of
from memsluice.errors import ExpiredKey, ForgedSignature, InputError, MalformedEvent, UnknownKey
from memsluice.keystore.files import SigningCredential

AUDIENCE = "memsluice-recall"
"""The recall service. Each service has an audience of its own: none can use at another one what it was given."""
INGEST_AUDIENCE = "memsluice-ingest"
LIFETIME_S = 60
LIFETIME_MAX_S = 300
"""No token is good for longer, whatever it says."""
SKEW_S = 30
"""How far the two clocks may lie apart."""
TOKEN_CHARS_MAX = 4_096
FIELD = "authorization"
_ALGORITHMS = {Algorithm.ED25519: "EdDSA", Algorithm.HMAC_SHA256: "HS256"}
"""Which signature a key of each kind makes: never what a token's header asks for."""


def mint(credential: SigningCredential, now_ms: int, audience: str = AUDIENCE) -> str:
    """Return a token of a credential for a service, good for LIFETIME_S from now (Unix ms)."""
    now_s = now_ms // 1_000
    claims = {
        "iss": credential.kid,
        "aud": audience,
        "iat": now_s,
        "exp": now_s + LIFETIME_S,
        "jti": secrets.token_hex(8),
    }
    secret = credential.secret.get_secret_value()
    key = _private(secret) if credential.algorithm is Algorithm.ED25519 else secret
    return jwt.encode(claims, key, _ALGORITHMS[credential.algorithm], headers={"kid": credential.kid})


def caller_of(token: str, keyring: Keyring, registry: Registry, now_ms: int, audience: str = AUDIENCE) -> Credential:
    """Return the credential whose key signed a token for a service (``audience``) that is good now (Unix ms).

    Raises MalformedEvent for what is no token, UnknownKey, RevokedKey, ExpiredKey and ForgedSignature.
    """
    kid = _kid(token)
    credential = credential_of(kid, keyring, registry)
    key = keyring.get(kid)
    check_signing_time(key, now_ms)
    credential.check_time(now_ms)
    claims = _claims(token, key, audience)
    issued, expires = claims["iat"], claims["exp"]
    if claims["iss"] != kid:
        raise ForgedSignature("the token's issuer is another than its key", field=FIELD)
    if not 0 < expires - issued <= LIFETIME_MAX_S:
        raise MalformedEvent(f"the token must be good for {LIFETIME_MAX_S} s at most", field=FIELD)
    if not issued - SKEW_S <= now_ms / 1_000 < expires + SKEW_S:
        raise ExpiredKey("the token is not good now; make a new one, or set the clock", field=FIELD)
    return credential


def _kid(token: str) -> str:
    try:
        kid = jwt.get_unverified_header(token).get("kid") if len(token) <= TOKEN_CHARS_MAX else None
    except jwt.PyJWTError:
        kid = None
    if not isinstance(kid, str):
        raise MalformedEvent("the bearer token is no JWT with a kid", field=FIELD)
    return kid


def _claims(token: str, key: Key, audience: str) -> dict[str, Any]:
    material = _public(key) if key.algorithm is Algorithm.ED25519 else key.secret
    if material is None:
        raise UnknownKey("the key that the token names is not held here", field=FIELD)
    why: InputError
    try:
        claims: dict[str, Any] = jwt.decode(
            token, material, [_ALGORITHMS[key.algorithm]], audience=audience,
            options={"require": ["exp", "iat", "iss", "aud"], "verify_exp": False, "verify_iat": False},
        )  # fmt: skip
    except jwt.InvalidSignatureError:
        why = ForgedSignature("the token's signature does not hold", field=FIELD)
    except (jwt.PyJWTError, ValueError, RecursionError) as error:
        why = MalformedEvent(f"the bearer token is not valid ({type(error).__name__})", field=FIELD)
    else:
        if all(isinstance(claims[name], int) and not isinstance(claims[name], bool) for name in ("iat", "exp")):
            return claims
        why = MalformedEvent("the token's iat and exp must be whole seconds", field=FIELD)
    raise why


def _private(seed: bytes) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    return Ed25519PrivateKey.from_private_bytes(seed)


def _public(key: Key) -> Any:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    return None if key.public is None else Ed25519PublicKey.from_public_bytes(key.public)
