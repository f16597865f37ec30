"""What a history takes place in: tenants, their credentials, keys that rotate, policies, vectors and clocks.

Vectors are taken from a table by the hash of a text: the encoder is not what is tried here.
"""

import random
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from hashlib import sha256
from typing import Final
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import DIMENSIONS
from memsluice.envelope.dsse import Signer
from memsluice.envelope.keys import Algorithm, Ed25519Key, HmacKey, Key, Keyring, KeyState, Purpose
from memsluice.envelope.registry import Registry
from memsluice.envelope.space import DEFAULT_MODEL
from memsluice.events.partition import partition_of
from memsluice.gate.policy.model import (
    CommandsPolicy,
    IntakePolicy,
    MemsadPolicy,
    PerTier,
    Policy,
    QuarantinePolicy,
    default,
)
from memsluice.gate.policy.renewing import RenewOnUsePolicy
from memsluice.keystore.store import public_half
from memsluice_lab import cast

PARTITIONS: Final = 2
"""Of every topic; enough for two owners, and few enough that they meet."""
TENANTS: Final = ("north", "south", "east")
T0_MS: Final = 1_772_470_000_000
"""When every history begins, Unix ms."""
ACTIVATION_MS: Final = 5_000
OVERLAP_MS: Final = 60_000
VECTORS: Final = 64


@lru_cache(1)
def _base() -> tuple[Keyring, Registry, dict[tuple[str, str], Signer]]:
    keyring, registry, signers = cast.in_memory(TENANTS, seed="simulation")
    second = sha256(b"simulation/second reviewer").digest()
    for tenant in TENANTS:
        for source in ("reviewer", "operator"):
            secret = sha256(second + f"{tenant}/{source}".encode()).digest()
            kid = f"{tenant}.{source}-2"
            keyring = keyring.with_key(Key(kid, Purpose.CREDENTIAL, Algorithm.ED25519, None, public_half(secret)))
            registry = registry.with_credential(registry.get(f"{tenant}.{source}").model_copy(update={"kid": kid}))
            signers[tenant, f"{source}-2"] = Ed25519Key(kid, secret=secret, public=None)
    return keyring, registry, signers


class Table:
    """An encoder whose vectors lie ready."""

    model_id, _, revision = DEFAULT_MODEL.partition("@")
    dimensions = DIMENSIONS

    def __init__(self) -> None:
        drawn = np.random.default_rng(7).standard_normal((VECTORS, DIMENSIONS)).astype(np.float32)
        self._rows = (drawn / np.linalg.norm(drawn, axis=1, keepdims=True)).astype(np.float32)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a row of the table for each text."""
        if not texts:
            return np.empty((0, DIMENSIONS), np.float32)
        rows: NDArray[np.float32] = self._rows[
            [crc32(text[:24].encode("utf-8", "replace")) % VECTORS for text in texts]
        ]
        return rows


@lru_cache(1)
def table() -> Table:
    """Return the table, which is made once."""
    return Table()


def plain_policy(*, strict: bool) -> Policy:
    """Return a policy that asks for taint, ids, rates, holding and commands, and for no score."""
    shipped = default().default
    return shipped.model_copy(
        update={
            "name": "strict" if strict else "plain",
            "profile": "strict" if strict else "tiered",
            "intake": IntakePolicy(events_per_s=8, burst=12),
            "writes_per_day": PerTier(user_verified=20, user_observed=40),
            "detector": "memsad",
            "memsad": MemsadPolicy(enabled=False),
            "quarantine": QuarantinePolicy(per_principal_max=30, refused_per_principal_max=20),
            "commands": CommandsPolicy(promotions_per_day=30, declassifications_per_day=20),
            "renew_on_use": RenewOnUsePolicy(enabled=True, least_elapsed=0.0, per_day=20, per_entry_per_day=5),
        }
    )


@lru_cache(4)
def policy_of(name: str) -> Policy:
    """Return a policy by name: plain, strict, or the one that ships."""
    return default().default if name == "shipped" else plain_policy(strict=name == "strict")


POLICY_TEXTS: Final = (
    '{"detector":"memsad","memsad":{"enabled":false},"name":"strict-now","profile":"strict"}',
    '{"detector":"memsad","memsad":{"enabled":false},"name":"tiered-now","writes_per_day":{"user_observed":25}}',
)


class World:
    """Keys and who holds them, as they change in one history. ``said`` is told of every change."""

    def __init__(self, policy: str) -> None:
        self.policy = policy_of(policy)
        self._base, self._registry, base = _base()
        self.signers = dict(base)
        self._keyrings: list[tuple[float, Keyring]] = [(float("-inf"), self._base)]
        self._numbers: dict[str, int] = {}
        self.rotated = False

    def keyring(self, now_s: float = float("inf")) -> Keyring:
        """Return the keyring as it was known at a time (seconds of the history)."""
        for since_s, keyring in reversed(self._keyrings):
            if since_s <= now_s:
                return keyring
        return self._base

    def registry(self) -> Registry:
        """Return who may what."""
        return self._registry

    def _change(self, now_s: float, keyring: Keyring) -> None:
        self._keyrings.append((now_s, keyring))

    def _next(self, what: str) -> int:
        self._numbers[what] = self._numbers.get(what, 1) + 1
        return self._numbers[what]

    def rotate(self, purpose: Purpose, now_s: float, now_ms: int) -> str:
        """Give the gate another key, which signs after the activation; the old one ends signing after the overlap."""
        keyring, number = self.keyring(), self._next(purpose.value)
        kid = f"lab-{purpose.value}-{number}"
        secret = sha256(f"simulation/{kid}".encode()).digest()
        start_ms = now_ms + ACTIVATION_MS
        for key in [key for key in keyring if key.purpose is purpose and key.not_after_ms is None]:
            keyring = keyring.with_key(replace(key, not_after_ms=now_ms + OVERLAP_MS))
        if purpose is Purpose.ADMISSION:
            made = Key(kid, purpose, Algorithm.ED25519, secret, public_half(secret), not_before_ms=start_ms)
        else:
            made = Key(kid, purpose, Algorithm.HMAC_SHA256, secret, not_before_ms=start_ms)
        self._change(now_s, keyring.with_key(made))
        self.rotated = True
        return kid

    def revoke(self, tenant: str, source: str, now_s: float) -> str:
        """Revoke a source's credential; it goes on under a new one."""
        keyring, old = self.keyring(), self.signers[tenant, source].kid
        kid = f"{tenant}.{source}.{self._next(f'{tenant}.{source}')}"
        secret = sha256(f"simulation/{kid}".encode()).digest()
        keyring = keyring.retire(old, KeyState.REVOKED)
        self._change(now_s, keyring.with_key(Key(kid, Purpose.CREDENTIAL, Algorithm.HMAC_SHA256, secret)))
        self._registry = self._registry.with_credential(self._registry.get(old).model_copy(update={"kid": kid}))
        self.signers[tenant, source] = HmacKey(kid, secret)
        return old


def partition(tenant: str) -> int:
    """Return a tenant's partition."""
    return partition_of(tenant, PARTITIONS)


def chance_of(*parts: object) -> random.Random:
    """Return a source of draws that depends on nothing else."""
    return random.Random("/".join(str(part) for part in parts))  # noqa: S311 - a history that can be drawn again
