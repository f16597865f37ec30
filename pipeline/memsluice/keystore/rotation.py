"""Rotating, retiring and revoking keys while producers and the gate run.

*rotate* makes a successor with the same grants; both sign until the overlap is over. *retire* ends signing now, what
was signed before still verifies. *revoke* ends verifying too; of the gate's own keys, only once nothing signed by them
is on its way. The digest key alone never changes: digests of the same content must stay equal for as long as there are
any.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from memsluice.envelope.keys import Key, Keyring, KeyState, Purpose
from memsluice.envelope.registry import Credential, Registry
from memsluice.errors import ConfigError, NotFound, UnknownKey
from memsluice.keystore.store import DAY_MS, GATE_PURPOSES, KeyStore, issue_credential, new_gate_key
from memsluice.topics.names import APP_LAND, APP_SCREEN, APP_SEAL

OVERLAP_MS = DAY_MS
"""How long the old and the new key both sign, unless told otherwise."""
ACTIVATION_MS = 5_000
"""A successor signs only after this: by then every process has re-read the files (at most once a second)."""
_DRAIN = f"once the consumer groups {APP_SEAL}, {APP_SCREEN} and {APP_LAND} have no lag:"


class KeyStanding(StrEnum):
    """What a key can do at a moment, in one word."""

    ACTIVE = "active"
    PENDING = "pending"
    ENDED = "ended"
    RETIRED = "retired"
    REVOKED = "revoked"


@dataclass(frozen=True, slots=True)
class Rotation:
    """What a rotation did. ``path`` is the successor's credential file, None for a gate key.

    ``followed`` says whether the old credential file was found here and now points to its successor, so that running
    producers change over by themselves. Times are Unix ms.
    """

    old_kid: str
    new_kid: str
    signs_from_ms: int
    old_ends_ms: int
    path: Path | None
    followed: bool


def standing(key: Key, now_ms: int) -> KeyStanding:
    """Return what a key can do now; ENDED keys, like retired ones, still verify."""
    if key.state is KeyState.REVOKED:
        return KeyStanding.REVOKED
    if key.state is KeyState.RETIRED:
        return KeyStanding.RETIRED
    if now_ms < key.not_before_ms:
        return KeyStanding.PENDING
    if key.not_after_ms is not None and now_ms >= key.not_after_ms:
        return KeyStanding.ENDED
    return KeyStanding.ACTIVE


def new_key(store: KeyStore, purpose: Purpose, now_ms: int) -> Key:
    """Add a seal or admission key, which signs from now plus ACTIVATION_MS. Raises ConfigError."""
    with store.locked():
        keyring = store.load_keyring()
        if purpose is Purpose.DIGEST and any(key.purpose is purpose for key in keyring):
            raise ConfigError(
                "there is a digest key already, and it never changes: digests that are stored would no longer match"
            )
        first = not any(key.purpose is purpose for key in keyring)
        key = new_gate_key(purpose, now_ms if first else now_ms + ACTIVATION_MS, store.entropy)
        store.save_keyring(keyring.with_key(key))
    return key


def rotate(store: KeyStore, kid: str, now_ms: int, overlap_ms: int = OVERLAP_MS) -> Rotation:
    """Make a successor of a key and end the old one's signing after the overlap. Raises ConfigError.

    ``overlap_ms`` is at least ACTIVATION_MS, so that at no moment nothing signs.
    """
    overlap_ms = max(overlap_ms, ACTIVATION_MS)
    key = _changeable(store.load_keyring(), kid)
    if standing(key, now_ms) not in (KeyStanding.ACTIVE, KeyStanding.PENDING):
        raise ConfigError(
            f"key {kid} is {standing(key, now_ms).value} and cannot be rotated: make a new one with memsluice keys new"
        )
    ends_ms = min(now_ms + overlap_ms, key.not_after_ms or now_ms + overlap_ms)
    if key.purpose is not Purpose.CREDENTIAL:
        successor = new_key(store, key.purpose, now_ms)
        _end(store, kid, ends_ms)
        return Rotation(kid, successor.kid, successor.not_before_ms, ends_ms, None, followed=False)
    old = _grants(store.load_registry(), kid)
    if old.enrolled:
        raise ConfigError(
            f"key {kid} was made by its holder, and so is its successor: enrol that one with memsluice keys enrol, "
            f"then run memsluice keys retire {kid}"
        )
    lifetime_ms = None if old.not_after_ms is None else old.not_after_ms - old.not_before_ms
    credential, path = issue_credential(
        store, old.role, old.channel, old.tenants, old.tier, key.algorithm, old.agents, old.principals, now_ms,
        None if lifetime_ms is None else max(1, lifetime_ms // DAY_MS),
        note=old.note, signs_from_ms=now_ms + ACTIVATION_MS,
    )  # fmt: skip
    _end(store, kid, ends_ms)
    followed = _tell_holder(store, kid, ends_ms, credential.kid)
    return Rotation(kid, credential.kid, now_ms + ACTIVATION_MS, ends_ms, path, followed)


def retire(store: KeyStore, kid: str, now_ms: int) -> None:
    """End a key's signing now; it goes on verifying. Raises ConfigError for the last key that signs for the gate."""
    _stop(store, kid, KeyState.RETIRED, now_ms)


def revoke(store: KeyStore, kid: str, now_ms: int, *, drained: bool = False) -> None:
    """End a key's signing and verifying now.

    A seal or admission key must have stopped signing before, and ``drained`` says that no record signed by it is on
    its way: *screen* stops at one that it cannot verify, again after each restart. Raises ConfigError otherwise.
    """
    _stop(store, kid, KeyState.REVOKED, now_ms, drained=drained)


def check_revocable(store: KeyStore, kid: str, now_ms: int, *, drained: bool = False) -> Key:
    """Return the key that :func:`revoke` would revoke now, and change nothing. Raises what that raises."""
    keyring = store.load_keyring()
    key = _changeable(keyring, kid)
    _check_stoppable(keyring, key, KeyState.REVOKED, now_ms, drained=drained)
    return key


def _check_stoppable(keyring: Keyring, key: Key, state: KeyState, now_ms: int, *, drained: bool) -> None:
    if key.state is KeyState.REVOKED:
        raise ConfigError(f"key {key.kid} is revoked, and a revocation cannot be undone")
    if state is KeyState.REVOKED and key.purpose in GATE_PURPOSES:
        _check_drained(key, now_ms, drained=drained)
    others = (other for other in keyring if other.kid != key.kid and other.purpose is key.purpose)
    if key.purpose in GATE_PURPOSES and not _any_signs(others, now_ms):
        raise ConfigError(
            f"{key.kid} is the last {key.purpose.value} key that signs: run memsluice keys rotate {key.kid} first"
        )


def _check_drained(key: Key, now_ms: int, *, drained: bool) -> None:
    if standing(key, now_ms) not in (KeyStanding.RETIRED, KeyStanding.ENDED):
        raise ConfigError(
            f"{key.kid} still signs for the gate; run: memsluice keys rotate {key.kid}, after a few seconds memsluice "
            f"keys retire {key.kid}, and {_DRAIN} memsluice keys revoke {key.kid} --drained"
        )
    if not drained:
        raise ConfigError(
            f"records signed by {key.kid} may not be read yet, and screen would stop at them for good; {_DRAIN} "
            f"memsluice keys revoke {key.kid} --drained"
        )


def _stop(store: KeyStore, kid: str, state: KeyState, now_ms: int, *, drained: bool = False) -> None:
    with store.locked():
        keyring, registry = store.load_keyring(), store.load_registry()
        key = _changeable(keyring, kid)
        _check_stoppable(keyring, key, state, now_ms, drained=drained)
        ends_ms = now_ms if key.not_after_ms is None else min(now_ms, key.not_after_ms)
        store.save_keyring(keyring.with_key(replace(key, state=state, not_after_ms=ends_ms)))
        if key.purpose is Purpose.CREDENTIAL:
            store.save_registry(_ended(registry, kid, ends_ms))
            _tell_holder(store, kid, ends_ms)


def _end(store: KeyStore, kid: str, ends_ms: int) -> None:
    with store.locked():
        keyring = store.load_keyring()
        store.save_keyring(keyring.with_key(replace(keyring.get(kid), not_after_ms=ends_ms)))
        if keyring.get(kid).purpose is Purpose.CREDENTIAL:
            store.save_registry(_ended(store.load_registry(), kid, ends_ms))


def _ended(registry: Registry, kid: str, ends_ms: int) -> Registry:
    return registry.with_credential(_grants(registry, kid).model_copy(update={"not_after_ms": ends_ms}))


def _tell_holder(store: KeyStore, kid: str, ends_ms: int, successor: str | None = None) -> bool:
    """Write the end, and the successor, into the credential's file if it lies here: its process reads it again."""
    if not store.credential_path(kid).exists():
        return False
    held = store.credential(kid)
    update = {"not_after_ms": ends_ms, "successor": successor or held.successor}
    store.save_credential(held.model_copy(update=update))
    return True


def _any_signs(keys: Iterable[Key], now_ms: int) -> bool:
    return any(key.signs_at(now_ms) for key in keys)


def _changeable(keyring: Keyring, kid: str) -> Key:
    try:
        key = keyring.get(kid)
    except UnknownKey:
        raise NotFound(f"there is no key {kid} in the keyring: see memsluice keys list") from None
    if key.purpose is Purpose.DIGEST:
        raise ConfigError("the digest key never changes: digests that are stored would no longer match")
    return key


def _grants(registry: Registry, kid: str) -> Credential:
    try:
        return registry.get(kid)
    except UnknownKey:
        raise ConfigError(f"credential {kid} is in the keyring and not in the registry") from None
