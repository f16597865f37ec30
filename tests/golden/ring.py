"""Fixed keys of everybody who speaks in the golden schedules, and an encoder that every machine agrees with."""

import re
from collections.abc import Sequence
from hashlib import sha256

import numpy as np
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memsluice.encoder import DIMENSIONS, MODEL_ID, REVISION
from memsluice.envelope.dsse import Signer
from memsluice.envelope.keys import Algorithm, Ed25519Key, HmacKey, Key, Keyring, KeyState, Purpose
from memsluice.envelope.registry import Credential, Registry, Role
from memsluice.envelope.seals import Wording
from memsluice.events.models import Channel, Tier

START_MS = 1_780_000_000_000
WHO: dict[str, tuple[Role, Channel, Tier]] = {
    "runtime": (Role.RUNTIME, "agent", Tier.USER_OBSERVED),
    "reader": (Role.READER, "agent", Tier.USER_OBSERVED),
    "user": (Role.USER_CHANNEL, "user", Tier.USER_OBSERVED),
    "verified": (Role.USER_CHANNEL, "user", Tier.USER_VERIFIED),
    "agent": (Role.PRODUCER, "agent", Tier.USER_OBSERVED),
    "tool": (Role.PRODUCER, "tool", Tier.EXTERNAL_TOOL),
    "skill": (Role.PRODUCER, "skill", Tier.EXTERNAL_TOOL),
    "web": (Role.PRODUCER, "web", Tier.EXTERNAL_WEB),
    "upload": (Role.PRODUCER, "upload", Tier.EXTERNAL_WEB),
    "operator": (Role.OPERATOR, "operator", Tier.OPERATOR),
    "operator-2": (Role.OPERATOR, "operator", Tier.OPERATOR),
    "reviewer": (Role.REVIEWER, "operator", Tier.OPERATOR),
    "reviewer-2": (Role.REVIEWER, "operator", Tier.OPERATOR),
    "reviewer-low": (Role.REVIEWER, "operator", Tier.EXTERNAL_TOOL),
    "elsewhere": (Role.PRODUCER, "agent", Tier.USER_OBSERVED),
    "overdue": (Role.PRODUCER, "agent", Tier.USER_OBSERVED),
    "revoked": (Role.PRODUCER, "agent", Tier.USER_OBSERVED),
    "revoked-reader": (Role.READER, "agent", Tier.USER_OBSERVED),
}
TENANTS = {"elsewhere": ("elsewhere",)}
COMMANDERS = (Role.OPERATOR, Role.REVIEWER)


def _secret(name: str) -> bytes:
    return sha256(f"memsluice-golden/{name}".encode()).digest()


def _public(name: str) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(_secret(name)).public_key().public_bytes_raw()


def keyring() -> Keyring:
    """Return every key: the gate's own, and of everybody but the stranger."""
    keys = [
        Key("gate-seal", Purpose.SEAL, Algorithm.HMAC_SHA256, _secret("gate-seal")),
        Key("gate-digest", Purpose.DIGEST, Algorithm.HMAC_SHA256, _secret("gate-digest")),
        Key("gate-admit", Purpose.ADMISSION, Algorithm.ED25519, _secret("gate-admit"), _public("gate-admit")),
    ]
    for name, (role, _, _) in WHO.items():
        state = KeyState.REVOKED if name.startswith("revoked") else KeyState.ACTIVE
        until = START_MS - 1 if name == "overdue" else None
        if role in COMMANDERS:
            keys.append(Key(name, Purpose.CREDENTIAL, Algorithm.ED25519, None, _public(name), state=state))
        else:
            keys.append(
                Key(name, Purpose.CREDENTIAL, Algorithm.HMAC_SHA256, _secret(name), not_after_ms=until, state=state)
            )
    return Keyring(keys)


def registry() -> Registry:
    """Return what everybody may do."""
    return Registry([
        Credential(kid=name, role=role, channel=channel, tier=tier, tenants=TENANTS.get(name, ("*",)))
        for name, (role, channel, tier) in WHO.items()
    ])  # fmt: skip


def signer(name: str) -> Signer:
    """Return who signs as ``name``; a name that nobody has is a stranger's."""
    if name in WHO and WHO[name][0] in COMMANDERS:
        return Ed25519Key(name, secret=_secret(name), public=None)
    return HmacKey(name, _secret(name))


ORDERS = {"obey": 9.0, "ignore all previous": 9.0, "ignore previous": 9.0, "kindly": 1.2}
"""Log-odds of texts with such words; of others they are -6."""


class WordEncoder:
    """Vectors from a text's words of seven letters or more (of all words where it has none), without any model.

    Each of 16 blocks of 24 components has one that is not 0, at +-1/4: the place that the block's own hash gives to the
    word that it hashes lowest. So a vector's length is 1, a cosine is a whole number of sixteenths (about the share of
    long words that two texts have in common), and no sum of their products is ever rounded, in whatever order a CPU
    adds it.
    """

    model_id, revision, dimensions = MODEL_ID, REVISION, DIMENSIONS  # it stands for the default encoder
    blocks, width = 16, 24

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return float32 of shape (len(texts), 384)."""
        return np.array([self._vector(text) for text in texts], np.float32).reshape(len(texts), self.dimensions)

    def read(self, texts: Sequence[str]) -> tuple[np.ndarray, list[Wording | None]]:
        """Return the vectors, and of texts with one of ORDERS that they give one; of texts without a word nothing."""
        said = [max((ORDERS[one] for one in ORDERS if one in text.casefold()), default=-6.0) for text in texts]
        found = [
            Wording(logit, 0, len(text), len(text)) if text.strip() else None
            for text, logit in zip(texts, said, strict=True)
        ]
        return self.encode(texts), found

    def _vector(self, text: str) -> np.ndarray:
        words = re.findall(r"\w+", text.casefold())
        words = [word for word in words if len(word) >= 7] or words or [""]
        vector = np.zeros(self.dimensions, np.float32)
        for block in range(self.blocks):
            lowest = min(sha256(f"{block}/{word}".encode("utf-8", "surrogatepass")).digest() for word in words)
            at = int.from_bytes(lowest[-4:], "big")
            vector[block * self.width + at % self.width] = 0.25 if at & 1 << 20 else -0.25
        return vector
