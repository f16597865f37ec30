"""Who speaks in a stream: a credential for every source and tenant, in memory (experiments) or in a home (demo)."""

from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from typing import Final

from memsluice.envelope.dsse import Signer
from memsluice.envelope.keys import Algorithm, Ed25519Key, HmacKey, Key, Keyring, Purpose
from memsluice.envelope.registry import COMMANDERS, DEFAULT_TIER, Credential, Registry, Role
from memsluice.errors import ConfigError
from memsluice.events.models import Channel, Recall
from memsluice.events.names import EventType
from memsluice.keystore.store import KeyStore, issue_credential, public_half

SOURCES: Final[Mapping[str, tuple[Role, Channel]]] = {
    "runtime": (Role.RUNTIME, "agent"),
    "reader": (Role.READER, "agent"),
    "user": (Role.USER_CHANNEL, "user"),
    "agent": (Role.PRODUCER, "agent"),
    "tool": (Role.PRODUCER, "tool"),
    "web": (Role.PRODUCER, "web"),
    "skill": (Role.PRODUCER, "skill"),
    "upload": (Role.PRODUCER, "upload"),
    "operator": (Role.OPERATOR, "operator"),
    "reviewer": (Role.REVIEWER, "operator"),
}
"""What a stream calls a source, as the role and channel of the credential that signs for it."""

Signers = Mapping[tuple[str, str], Signer]
"""Signer of every (tenant, source)."""


def kid_of(tenant: str, source: str) -> str:
    """Return the key id of a tenant's source."""
    return f"{tenant}.{source}"


def reader_permits(registry: Callable[[], Registry], now_ms: Callable[[], int]) -> Callable[[Recall], None]:
    """Return the check of a recall against the grants of its tenant's reader, for a ``Recaller``."""
    return lambda recall: registry().get(kid_of(recall.tenant, "reader")).check(EventType.RECALL, recall, now_ms())


def in_memory(tenants: Iterable[str], *, seed: str) -> tuple[Keyring, Registry, dict[tuple[str, str], Signer]]:
    """Return keyring, registry and signers, derived from ``seed``: for experiments, where no key guards anything."""

    def secret(name: str) -> bytes:
        return sha256(f"memsluice-lab/{seed}/{name}".encode("utf-8", "surrogateescape")).digest()

    keys = [
        Key("lab-seal", Purpose.SEAL, Algorithm.HMAC_SHA256, secret("seal")),
        Key("lab-digest", Purpose.DIGEST, Algorithm.HMAC_SHA256, secret("digest")),
        Key(
            "lab-admission",
            Purpose.ADMISSION,
            Algorithm.ED25519,
            secret("admission"),
            public_half(secret("admission")),
        ),
    ]
    credentials: list[Credential] = []
    signers: dict[tuple[str, str], Signer] = {}
    for tenant in tenants:
        for source, (role, channel) in SOURCES.items():
            kid = kid_of(tenant, source)
            signed_by = secret(kid)
            if role in COMMANDERS:
                signers[tenant, source] = _ed25519(kid, signed_by)
                keys.append(Key(kid, Purpose.CREDENTIAL, Algorithm.ED25519, None, public_half(signed_by)))
            else:
                signers[tenant, source] = HmacKey(kid, signed_by)
                keys.append(Key(kid, Purpose.CREDENTIAL, Algorithm.HMAC_SHA256, signed_by))
            credentials.append(
                Credential(kid=kid, role=role, channel=channel, tier=DEFAULT_TIER[channel], tenants=(tenant,))
            )
    return Keyring(keys), Registry(credentials), signers


def _ed25519(kid: str, seed: bytes) -> Signer:
    return Ed25519Key(kid, secret=seed, public=None)


def at_home(
    store: KeyStore,
    tenants: Iterable[str],
    *,
    now_ms: int,
    sources: Iterable[str] = tuple(SOURCES),
    progress: Callable[[str], None] | None = None,
) -> dict[tuple[str, str], Signer]:
    """Return signers whose credentials are in the home's registry, issuing those that are missing.

    ``now_ms`` (Unix ms) is where new credentials begin to be valid. Raises ConfigError.
    """
    wanted = [(tenant, source) for tenant in tenants for source in sources]
    held = {credential.kid for credential in store.load_registry().all()}
    signers: dict[tuple[str, str], Signer] = {}
    for tenant, source in wanted:
        kid = kid_of(tenant, source)
        if kid not in held:
            role, channel = SOURCES[source]
            issue_credential(store, role, channel, [tenant], now_ms=now_ms, kid=kid, note=f"{source} of {tenant}")
            if progress is not None:
                progress(kid)
        try:
            signers[tenant, source] = store.credential(kid).signer()
        except ConfigError as error:
            raise ConfigError(f"credential {kid} is in the registry but not held here: {error}") from None
    return signers
