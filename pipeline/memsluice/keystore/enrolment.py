"""Enrolling a key that a person made and keeps elsewhere, as a browser does: the gate gets its public half alone.

What such a key signs is that person's. So it names one person, no key is enrolled twice, and its successor is made
where it was made, never here.
"""

import base64
import binascii
from collections.abc import Sequence

from pydantic import ValidationError

from memsluice.envelope.keys import HMAC_KEY_BYTES, Algorithm, Key, Keyring, Purpose
from memsluice.envelope.registry import CHANNELS, DEFAULT_TIER, Credential, Role
from memsluice.errors import ConfigError, InvalidArgument
from memsluice.keystore import files
from memsluice.keystore.store import DAY_MS, KeyStore, new_kid

ENROLS = (Role.READER, Role.REVIEWER, Role.OPERATOR)
"""The roles of people. Programs are issued a credential with its file instead."""
_FIELD = 2**255 - 19
_ORDER_8 = (
    0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826,
    0x7A03AC9277FDC74EC6CC392CFA53202A0F67100D760B3CBA4FD83D3D706A17C7,
)
_SMALL_ORDER = frozenset({0, 1, _FIELD - 1, _FIELD, _FIELD + 1, *_ORDER_8})
"""Heights (RFC 8032) of the points of small order: what such a key "signed" can be made by anybody."""


def public_from_text(text: str) -> bytes:
    """Return the public key that a text says: 32 bytes of Ed25519 in base64. Raises InvalidArgument."""
    try:
        public = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        public = b""
    if len(public) != HMAC_KEY_BYTES:
        raise InvalidArgument(
            "--public: this is not an Ed25519 public key: give its 32 bytes in base64, 44 characters, as the console's "
            "page of keys shows them"
        )
    if int.from_bytes(public, "little") % 2**255 in _SMALL_ORDER:
        raise InvalidArgument("--public: this key is of small order: anybody could sign in its name. Make another one")
    return public


def enrol(
    store: KeyStore, role: Role, public: bytes, person: str, tenants: Sequence[str], now_ms: int,
    days: int | None = None, *, note: str = "",
) -> Credential:  # fmt: skip
    """Add a public key (32 bytes) with what it may do from now on (Unix ms), and return that.

    ``person`` is who holds it, as the one principal of the credential: two keys of one person never approve one
    command. ``days`` None never ends. Raises ConfigError for a key that the keyring has already, in whatever state,
    and InvalidArgument for a role that is no person's.
    """
    if role not in ENROLS:
        names = ", ".join(one.value for one in ENROLS)
        raise InvalidArgument(
            f"a {role.value} credential is a program's: only the keys of people are enrolled ({names})"
        )
    channel = next(iter(CHANNELS[role]))
    not_after_ms = None if days is None else now_ms + days * DAY_MS
    try:
        credential = Credential(
            kid=new_kid(role.value, store.entropy), role=role, channel=channel, tier=DEFAULT_TIER[channel],
            tenants=tuple(tenants), principals=(person,), not_before_ms=now_ms, not_after_ms=not_after_ms, note=note,
            enrolled=True,
        )  # fmt: skip
    except ValidationError as error:
        raise ConfigError(files.problems(error)) from None
    key = Key(credential.kid, Purpose.CREDENTIAL, Algorithm.ED25519, None, public, now_ms, not_after_ms)
    with store.locked():
        keyring, registry = store.load_keyring(), store.load_registry()
        there = holder_of(public, keyring)
        if there is not None:
            raise ConfigError(f"this key is in the keyring already, as {there}: every credential has a key of its own")
        store.save_keyring(keyring.with_key(key))
        store.save_registry(registry.with_credential(credential))
    return credential


def holder_of(public: bytes, keyring: Keyring) -> str | None:
    """Return the key id of a credential's public key, in whatever state it is; None where nobody has it."""
    return next((key.kid for key in keyring if key.public == public and key.purpose is Purpose.CREDENTIAL), None)
