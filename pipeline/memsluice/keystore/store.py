"""The gate's keys and registry on disk, re-read while processes run, so that rotation needs no restart.

Below the home directory: ``keyring.json`` (all keys of the gate), ``registry.yaml`` (what each credential may do) and
``credentials/<kid>.json`` (what one producer, reader, runtime, user channel or operator process holds).
"""

import fcntl
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from pydantic import SecretBytes, ValidationError

from memsluice.deployment.paths import home_dir, prepare_home, using
from memsluice.deployment.reloading import Watched
from memsluice.envelope.keys import HMAC_KEY_BYTES, Algorithm, Key, Keyring, KeyState, Purpose, derive
from memsluice.envelope.registry import ANY, COMMANDERS, DEFAULT_TIER, Credential, Registry, Role
from memsluice.errors import ConfigError
from memsluice.events.models import Channel, Tier
from memsluice.keystore import files
from memsluice.keystore.files import SigningCredential

DAY_MS = 86_400_000
GATE_PURPOSES = {
    Purpose.SEAL: Algorithm.HMAC_SHA256,
    Purpose.DIGEST: Algorithm.HMAC_SHA256,
    Purpose.ADMISSION: Algorithm.ED25519,
}
"""The gate's own keys. Readers, in agent processes, verify admissions: so these are signatures, not HMACs."""

LOST = (
    "put it back from your backup: under new keys nothing verifies that was sealed or signed before. To begin anew all "
    "the same, move registry.yaml away and run: memsluice keys init"
)
Entropy = Callable[[int], bytes]


class KeyStore:
    """Reads and writes the keys below one home. Safe for several threads; writers of several processes take a lock."""

    def __init__(
        self,
        home: Path | None = None,
        *,
        entropy: Entropy = os.urandom,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.home = home_dir(home)
        self.keyring_file = self.home / "keyring.json"
        self.registry_file = self.home / "registry.yaml"
        self.credentials_dir = self.home / "credentials"
        self.entropy = entropy
        self._keyring = Watched(self.load_keyring, self.keyring_file, monotonic)
        self._registry = Watched(self.load_registry, self.registry_file, monotonic)

    @classmethod
    def init(cls, home: Path | None, now_ms: int, *, entropy: Entropy = os.urandom) -> "KeyStore":
        """Return the store at ``home``, having created what is missing of seal, digest and admission keys.

        Running it again changes nothing. ``now_ms`` (Unix ms) is where the new keys' signing period begins. Raises
        ConfigError where a keyring is lost, its registry being there.
        """
        store = cls(home, entropy=entropy)
        with store.locked():
            fresh = not store.keyring_file.exists() and not store.registry_file.exists()
            keyring = Keyring([]) if fresh else store.load_keyring()
            held = {key.purpose for key in keyring}
            missing = [purpose for purpose in GATE_PURPOSES if purpose not in held]
            for purpose in missing:
                keyring = keyring.with_key(new_gate_key(purpose, now_ms, entropy))
            if missing:
                store.save_keyring(keyring)
            if not store.registry_file.exists():
                store.save_registry(Registry([]))
        return store

    def keyring(self) -> Keyring:
        """Return the keyring, at most a second old. Raises ConfigError where there is none, or others can read it."""
        return self._keyring.get()

    def registry(self) -> Registry:
        """Return the registry, at most a second old. Raises ConfigError."""
        return self._registry.get()

    def refresh(self) -> None:
        """Look at the files now: for a gate that meets a key id it does not know."""
        self._keyring.get(now=True)
        self._registry.get(now=True)

    def load_keyring(self) -> Keyring:
        """Read the keyring file. Raises ConfigError."""
        lost = self.registry_file.exists()  # not a home where nothing was sealed yet
        data = files.read_guarded(self.keyring_file, secret=True, remedy=LOST if lost else "run: memsluice keys init")
        return files.keyring_from_bytes(data, str(self.keyring_file))

    def load_registry(self) -> Registry:
        """Read the registry file. Raises ConfigError."""
        data = files.read_guarded(self.registry_file, secret=False, remedy="run: memsluice keys init")
        return files.registry_from_bytes(data, str(self.registry_file))

    def save_keyring(self, keyring: Keyring) -> None:
        """Write the keyring file, atomically, mode 0600. Hold :meth:`locked` from reading to saving."""
        files.write_atomic(self.keyring_file, files.keyring_to_bytes(keyring))
        self._keyring.expire()

    def save_registry(self, registry: Registry) -> None:
        """Write the registry file, atomically. Hold :meth:`locked` from reading to saving."""
        files.write_atomic(self.registry_file, files.registry_to_bytes(registry.all()))
        self._registry.expire()

    def credential_path(self, kid: str) -> Path:
        """Return where the credential file of ``kid`` lies."""
        return self.credentials_dir / f"{kid}.json"

    def save_credential(self, credential: SigningCredential) -> Path:
        """Write a credential file, atomically, mode 0600; return its path."""
        path = self.credential_path(credential.kid)
        files.write_atomic(path, files.credential_to_bytes(credential))
        return path

    def credential(self, kid: str) -> SigningCredential:
        """Read the credential file of ``kid``. Raises ConfigError."""
        return load_credential(self.credential_path(kid))

    def find_credential(
        self, role: Role, now_ms: int, *, tenant: str | None = None, channel: Channel | None = None
    ) -> SigningCredential:
        """Return the newest credential held here that may sign now for this. Raises ConfigError: how to make one."""
        fit = self.find_credentials(role, now_ms, tenant=tenant, channel=channel)
        if not fit:
            what = f"{role.value} credential" + (f" for tenant {tenant}" if tenant else "")
            name = role.value.replace("_", "-")
            raise ConfigError(
                f"{self.credentials_dir} has no {what} that may sign now: run memsluice keys new {name} --tenant NAME"
            )
        return fit[0]

    def find_credentials(
        self, role: Role, now_ms: int, *, tenant: str | None = None, channel: Channel | None = None
    ) -> list[SigningCredential]:
        """Return all credentials held here that may sign now for this, the newest first."""
        keyring, fit = self.load_keyring(), []
        for entry in self.load_registry().all():
            if entry.role is not role or (channel is not None and entry.channel != channel):
                continue
            if entry.kid not in keyring or keyring.get(entry.kid).state is not KeyState.ACTIVE:
                continue
            if self.credential_path(entry.kid).exists():
                fit.append(self.credential(entry.kid))
        fit = [held for held in fit if held.signs_at(now_ms) and (tenant is None or held.speaks_for(tenant))]
        return sorted(fit, key=lambda held: (held.not_before_ms, held.kid), reverse=True)

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the writers' lock, so that two commands at once do not undo each other."""
        prepare_home(self.home)
        lock = self.home / "keys.lock"
        with using(lock):
            descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def load_credential(path: Path) -> SigningCredential:
    """Read one credential file. Raises ConfigError where it is missing, not valid, or readable by others."""
    remedy = "issue one by: memsluice keys new"
    return files.credential_from_bytes(files.read_guarded(path, secret=True, remedy=remedy), str(path))


def new_kid(prefix: str, entropy: Entropy) -> str:
    """Return a new key id: what it is for, and 8 random hex digits."""
    return f"{prefix.replace('_', '-')}-{entropy(4).hex()}"


def public_half(seed: bytes) -> bytes:
    """Return the 32-byte Ed25519 public key of a seed."""
    public = Ed25519PrivateKey.from_private_bytes(seed).public_key()
    return public.public_bytes_raw()


def new_gate_key(purpose: Purpose, not_before_ms: int, entropy: Entropy) -> Key:
    """Return a new seal, digest or admission key. Raises ConfigError for another purpose."""
    if purpose not in GATE_PURPOSES:
        raise ConfigError(f"{purpose.value} is not a purpose of the gate's own keys")
    algorithm, secret = GATE_PURPOSES[purpose], entropy(HMAC_KEY_BYTES)
    public = public_half(secret) if algorithm is Algorithm.ED25519 else None
    return Key(new_kid(purpose.value, entropy), purpose, algorithm, secret, public, not_before_ms)


def public_keyring(keyring: Keyring, tenants: Sequence[str] = ()) -> Keyring:
    """Return what a reader in an agent process needs and may have.

    The public halves of the admission keys, and of each named tenant its *derived* digest key, never the root: with it
    a reader verifies (and could guess) that tenant's contents and no other's; it admits nothing. Raises ConfigError
    where a digest key is missing.
    """
    public = [replace(key, secret=None) for key in keyring if key.purpose is Purpose.ADMISSION]
    return Keyring([*public, *(_tenant_digest_key(keyring, tenant) for tenant in dict.fromkeys(tenants))])


def _tenant_digest_key(keyring: Keyring, tenant: str) -> Key:
    key = keyring.get(keyring.digest_key(tenant).kid)
    if key.tenant == tenant:
        return key
    if key.secret is None:
        raise ConfigError(f"the secret of key {key.kid} is not on this machine")
    derived = derive(key.secret, purpose=key.purpose.value, tenant=tenant)
    return replace(key, kid=f"{key.kid}.{tenant}", secret=derived, tenant=tenant)


def issue_credential(
    store: KeyStore,
    role: Role,
    channel: Channel,
    tenants: Sequence[str],
    tier: Tier | None = None,
    algorithm: Algorithm | None = None,
    agents: Sequence[str] = (ANY,),
    principals: Sequence[str] = (ANY,),
    now_ms: int = 0,
    days: int | None = None,
    *,
    kid: str | None = None,
    note: str = "",
    signs_from_ms: int | None = None,
) -> tuple[Credential, Path]:
    """Create a credential: its key in the keyring, its grants in the registry, its secret in a file of mode 0600.

    Returns the registry entry and the file's path. ``tier`` None is the channel's default; ``algorithm`` None is
    Ed25519 for operators and reviewers, else HMAC-SHA256; ``days`` None never ends. The gate gets the public half only
    of an Ed25519 key. ``signs_from_ms`` lets the holder begin later than the gate accepts it. Raises ConfigError.
    """
    algorithm = algorithm or (Algorithm.ED25519 if role in COMMANDERS else Algorithm.HMAC_SHA256)
    if role in COMMANDERS and algorithm is not Algorithm.ED25519:
        raise ConfigError(
            "commands and approvals must be signed with Ed25519: whoever can verify an HMAC can also forge it"
        )
    kid = kid or new_kid(role.value, store.entropy)
    seed = store.entropy(HMAC_KEY_BYTES)
    not_after_ms = None if days is None else now_ms + days * DAY_MS
    asymmetric = algorithm is Algorithm.ED25519
    try:
        credential = Credential(
            kid=kid, role=role, channel=channel, tier=DEFAULT_TIER[channel] if tier is None else tier,
            tenants=tuple(tenants), agents=tuple(agents), principals=tuple(principals),
            not_before_ms=now_ms, not_after_ms=not_after_ms, note=note,
        )  # fmt: skip
        held = SigningCredential(
            kid=kid, role=role, channel=channel, algorithm=algorithm, secret=SecretBytes(seed), tenants=tuple(tenants),
            agents=tuple(agents), principals=tuple(principals),
            not_before_ms=now_ms if signs_from_ms is None else signs_from_ms, not_after_ms=not_after_ms,
        )  # fmt: skip
    except ValidationError as error:
        raise ConfigError(files.problems(error)) from None
    key = Key(
        kid, Purpose.CREDENTIAL, algorithm, None if asymmetric else seed, public_half(seed) if asymmetric else None,
        now_ms, not_after_ms,
    )  # fmt: skip
    with store.locked():
        keyring, registry = store.load_keyring(), store.load_registry()
        if kid in keyring:
            raise ConfigError(f"key id {kid} is in use already")
        path = store.save_credential(held)
        store.save_keyring(keyring.with_key(key))
        store.save_registry(registry.with_credential(credential))
    return credential, path
