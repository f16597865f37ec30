"""Rotate, retire, revoke: what each ends, and what it leaves alone."""

from pathlib import Path
from typing import Any

import pytest

from memsluice.client.credentials import CredentialFile
from memsluice.envelope.keys import KeyState, Purpose
from memsluice.envelope.registry import Role
from memsluice.errors import ConfigError
from memsluice.keystore.files import write_atomic
from memsluice.keystore.rotation import (
    ACTIVATION_MS,
    OVERLAP_MS,
    KeyStanding,
    new_key,
    retire,
    revoke,
    rotate,
    standing,
)
from memsluice.keystore.store import DAY_MS, KeyStore, issue_credential, load_credential

NOW_MS = 1_780_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    """Give a key store with the gate's keys."""
    return KeyStore.init(tmp_path, NOW_MS)


def seal_kid(store: KeyStore) -> str:
    """Return the seal key that signs now."""
    return store.keyring().signing(Purpose.SEAL, NOW_MS).kid


def test_a_rotated_seal_key_signs_on_until_its_successor_is_known(store: KeyStore) -> None:
    """At no moment nothing signs, and the successor begins only when every process has read it."""
    old = seal_kid(store)
    done = rotate(store, old, NOW_MS)
    ring = store.keyring()
    assert done.signs_from_ms == NOW_MS + ACTIVATION_MS
    assert [ring.signing(Purpose.SEAL, NOW_MS + after).kid for after in (0, ACTIVATION_MS - 1)] == [old, old]
    assert ring.signing(Purpose.SEAL, NOW_MS + ACTIVATION_MS).kid == done.new_kid
    assert not ring.get(old).signs_at(NOW_MS + OVERLAP_MS)
    assert ring.tenant_key(old, "acme"), "what it sealed still verifies"


def test_no_overlap_is_shorter_than_the_activation(store: KeyStore) -> None:
    """Asked for none at all, the old key still signs until the new one does."""
    old = seal_kid(store)
    done = rotate(store, old, NOW_MS, overlap_ms=0)
    assert done.old_ends_ms == done.signs_from_ms
    assert store.keyring().signing(Purpose.SEAL, done.old_ends_ms - 1).kid == old
    assert store.keyring().signing(Purpose.SEAL, done.old_ends_ms).kid == done.new_kid


def test_a_successor_has_the_same_grants_and_lifetime(store: KeyStore) -> None:
    """Role, channel, tier, tenants, agents and principals pass on; so does how long it lasts."""
    old, _ = issue_credential(
        store, Role.USER_CHANNEL, "user", ["acme"], agents=["a"], principals=["ada"], now_ms=NOW_MS, days=30, note="n"
    )
    later = NOW_MS + 10 * DAY_MS
    done = rotate(store, old.kid, later)
    new = store.registry().get(done.new_kid)
    ignored = {"kid", "not_before_ms", "not_after_ms"}
    assert new.model_dump(exclude=ignored) == old.model_dump(exclude=ignored)
    assert new.not_after_ms == later + 30 * DAY_MS
    assert store.registry().get(old.kid).not_after_ms == later + OVERLAP_MS
    assert done.path is not None
    held = load_credential(done.path)
    assert (held.tenants, held.agents, held.principals) == (("acme",), ("a",), ("ada",))


def test_a_rotation_never_prolongs_a_key(store: KeyStore) -> None:
    """A credential that ends in an hour still ends in an hour."""
    old, _ = issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS - DAY_MS + 3_600_000, days=1)
    assert rotate(store, old.kid, NOW_MS).old_ends_ms == NOW_MS + 3_600_000


def test_a_running_process_follows_its_file(store: KeyStore) -> None:
    """Two rotations later the process that was started with the first file signs with the third key."""
    first, path = issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS)
    clock = [NOW_MS]
    source = CredentialFile(path, lambda: clock[0])
    assert source().kid == first.kid
    second = rotate(store, first.kid, NOW_MS)
    third = rotate(store, second.new_kid, NOW_MS + 10_000)
    fresh = CredentialFile(path, lambda: clock[0])
    assert fresh().kid == first.kid, "the successors do not sign yet"
    clock[0] = NOW_MS + ACTIVATION_MS
    assert fresh().kid == second.new_kid
    clock[0] = NOW_MS + 10_000 + ACTIVATION_MS
    assert fresh().kid == third.new_kid


def test_a_successor_that_was_not_handed_out_stops_nobody(store: KeyStore) -> None:
    """The old credential signs on to its end; a file that comes later is taken up."""
    credential, path = issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS)
    done = rotate(store, credential.kid, NOW_MS)
    assert done.path is not None
    data = done.path.read_bytes()
    done.path.unlink()
    later = NOW_MS + ACTIVATION_MS
    source = CredentialFile(path, lambda: later)
    assert source().kid == credential.kid
    write_atomic(done.path, data)
    assert CredentialFile(path, lambda: later)().kid == done.new_kid


@pytest.mark.parametrize("change", [retire, revoke])
def test_the_holder_learns_that_its_credential_ended(store: KeyStore, change: Any) -> None:
    """A running producer stops at once with a typed error instead of filling the dead letters."""
    credential, path = issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS)
    assert store.find_credential(Role.PRODUCER, NOW_MS, tenant="acme").kid == credential.kid
    change(store, credential.kid, NOW_MS + 1)
    assert not load_credential(path).signs_at(NOW_MS + 1)
    with pytest.raises(ConfigError, match="memsluice keys new producer"):
        store.find_credential(Role.PRODUCER, NOW_MS + 1, tenant="acme")


def test_the_newest_fitting_credential_is_found(store: KeyStore) -> None:
    """By role, channel, tenant and time."""
    issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS - 2)
    newest, _ = issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS - 1)
    issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS + 1)
    web, _ = issue_credential(store, Role.PRODUCER, "web", ["*"], now_ms=NOW_MS - 3)
    assert store.find_credential(Role.PRODUCER, NOW_MS, tenant="acme").kid == newest.kid
    assert store.find_credential(Role.PRODUCER, NOW_MS, tenant="globex").kid == web.kid
    assert store.find_credential(Role.PRODUCER, NOW_MS, channel="web").kid == web.kid
    with pytest.raises(ConfigError, match="reader"):
        store.find_credential(Role.READER, NOW_MS)


def test_a_credential_without_its_file_here_is_rotated_all_the_same(store: KeyStore) -> None:
    """The file went to another machine: the successor's must be handed out, and the answer says so."""
    credential, path = issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS)
    assert rotate(store, credential.kid, NOW_MS).followed
    credential, path = issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS)
    path.unlink()
    assert not rotate(store, credential.kid, NOW_MS).followed


def test_retire_ends_signing_by_key_and_registry(store: KeyStore) -> None:
    """After it nothing new is accepted from the credential; what it signed before still verifies."""
    credential, _ = issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS)
    retire(store, credential.kid, NOW_MS + 1)
    key = store.keyring().get(credential.kid)
    assert standing(key, NOW_MS + 1) is KeyStanding.RETIRED
    assert store.registry().get(credential.kid).not_after_ms == key.not_after_ms == NOW_MS + 1
    assert store.keyring().direct(credential.kid)


@pytest.mark.parametrize("purpose", [Purpose.SEAL, Purpose.ADMISSION])
def test_a_gate_key_is_revoked_only_once_nothing_signed_by_it_is_on_its_way(store: KeyStore, purpose: Purpose) -> None:
    """Screen stops for good at a record whose seal key was revoked: rotate, drain, and only then revoke."""
    old = store.keyring().signing(purpose, NOW_MS).kid
    done = rotate(store, old, NOW_MS)
    later = done.signs_from_ms
    with pytest.raises(ConfigError, match=f"keys rotate {old}.*keys revoke {old} --drained"):
        revoke(store, old, later, drained=True)
    retire(store, old, later)
    with pytest.raises(ConfigError, match=f"memsluice-screen and .* no lag: memsluice keys revoke {old} --drained"):
        revoke(store, old, later)
    assert store.keyring().get(old).state is KeyState.RETIRED
    revoke(store, old, later, drained=True)
    assert store.keyring().get(old).state is KeyState.REVOKED


def test_a_key_whose_overlap_is_over_needs_no_retiring(store: KeyStore) -> None:
    """It signs no more, which is what counts."""
    old = seal_kid(store)
    revoke(store, old, rotate(store, old, NOW_MS).old_ends_ms, drained=True)
    assert store.keyring().get(old).state is KeyState.REVOKED


def test_revoke_is_for_good(store: KeyStore) -> None:
    """A revoked key is neither retired back nor rotated."""
    credential, _ = issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS)
    revoke(store, credential.kid, NOW_MS)
    assert store.keyring().get(credential.kid).state is KeyState.REVOKED
    for change in (retire, revoke, rotate):
        with pytest.raises(ConfigError, match="revoked"):
            change(store, credential.kid, NOW_MS)


@pytest.mark.parametrize("purpose", [Purpose.SEAL, Purpose.ADMISSION])
def test_the_last_key_that_signs_for_the_gate_stays(store: KeyStore, purpose: Purpose) -> None:
    """Retiring it would stop the stream: rotate first, and once the successor signs it may go."""
    kid = store.keyring().signing(purpose, NOW_MS).kid
    with pytest.raises(ConfigError, match="memsluice keys rotate"):
        retire(store, kid, NOW_MS)
    done = rotate(store, kid, NOW_MS)
    with pytest.raises(ConfigError, match="memsluice keys rotate"):
        retire(store, kid, NOW_MS)
    retire(store, kid, done.signs_from_ms)
    assert store.keyring().signing(purpose, done.signs_from_ms).kid == done.new_kid


def test_the_digest_key_never_changes(store: KeyStore) -> None:
    """No second one, no rotation, no end: stored digests must stay equal."""
    kid = next(key.kid for key in store.keyring() if key.purpose is Purpose.DIGEST)
    for change in (retire, revoke, rotate):
        with pytest.raises(ConfigError, match="digest"):
            change(store, kid, NOW_MS)
    with pytest.raises(ConfigError, match="digest"):
        new_key(store, Purpose.DIGEST, NOW_MS)


def test_an_unknown_key_is_said_with_the_way_to_find_it(store: KeyStore) -> None:
    """Not a KeyError."""
    with pytest.raises(ConfigError, match="memsluice keys list"):
        rotate(store, "nobody", NOW_MS)
