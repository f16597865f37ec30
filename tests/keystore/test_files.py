"""Keys on disk: private, atomic, re-read while running, and never quoted."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest
import yaml
from tests.patience import HANG_S

from memsluice.envelope.codec import content_digest
from memsluice.envelope.keys import Algorithm, Key, Keyring, KeyState, Purpose
from memsluice.envelope.registry import Credential, Registry, Role
from memsluice.errors import ConfigError
from memsluice.events.models import Tier
from memsluice.keystore import files
from memsluice.keystore.store import DAY_MS, KeyStore, issue_credential, load_credential, new_gate_key, public_keyring

NOW_MS = 1_780_000_000_000


@pytest.fixture
def store(tmp_path: Path) -> KeyStore:
    """Give a key store with the gate's keys."""
    return KeyStore.init(tmp_path, NOW_MS)


def mode(path: Path) -> int:
    """Return a file's permission bits."""
    return path.stat().st_mode & 0o777


def test_init_makes_the_gate_s_keys_once(tmp_path: Path) -> None:
    """Seal, digest and admission keys that sign from now on; a second run changes nothing."""
    store = KeyStore.init(tmp_path, NOW_MS)
    before = store.keyring_file.read_bytes()
    assert {key.purpose for key in store.keyring()} == {Purpose.SEAL, Purpose.DIGEST, Purpose.ADMISSION}
    assert store.keyring().signing(Purpose.ADMISSION, NOW_MS).algorithm is Algorithm.ED25519
    assert KeyStore.init(tmp_path, NOW_MS + 1).keyring_file.read_bytes() == before


def test_init_adds_only_what_is_missing(tmp_path: Path) -> None:
    """An older keyring without admission keys gets one, and keeps the others."""
    store = KeyStore.init(tmp_path, NOW_MS)
    store.save_keyring(Keyring(key for key in store.keyring() if key.purpose is not Purpose.ADMISSION))
    kept = {key.kid for key in store.keyring()}
    again = {key.kid for key in KeyStore.init(tmp_path, NOW_MS).keyring()}
    assert kept < again
    assert len(again) == 3


def test_a_lost_keyring_is_not_replaced_by_a_new_one(store: KeyStore) -> None:
    """New keys would verify nothing that is in the topics and the store: whoever lost a file is sent to the backup."""
    lost = store.keyring_file.read_bytes()
    store.keyring_file.unlink()
    for call in (store.load_keyring, lambda: KeyStore.init(store.home, NOW_MS)):
        with pytest.raises(ConfigError, match="is missing; put it back from your backup"):
            call()
    assert not store.keyring_file.exists()
    files.write_atomic(store.keyring_file, lost)
    assert KeyStore.init(store.home, NOW_MS).keyring_file.read_bytes() == lost


def test_every_file_is_private(store: KeyStore) -> None:
    """Mode 0600 for each file and 0700 for each directory, whatever the umask."""
    before = os.umask(0)
    try:
        _, path = issue_credential(store, Role.PRODUCER, "agent", ["acme"])
    finally:
        os.umask(before)
    assert [mode(file) for file in (store.keyring_file, store.registry_file, path)] == [0o600] * 3
    assert mode(path.parent) == 0o700


@pytest.mark.parametrize("bits", [0o640, 0o604, 0o660, 0o644])
def test_a_secret_that_others_can_read_is_refused(store: KeyStore, bits: int) -> None:
    """Keyring and credential are refused with the command that mends it; after it they are read."""
    _, path = issue_credential(store, Role.PRODUCER, "agent", ["acme"])
    for file, read in ((store.keyring_file, store.load_keyring), (path, lambda: load_credential(path))):
        file.chmod(bits)
        with pytest.raises(ConfigError, match=f"run: chmod 600 {file}"):
            read()
        file.chmod(0o600)
        read()


def test_a_registry_that_others_can_change_is_refused(store: KeyStore) -> None:
    """Whoever can write the registry can grant: it may be read by all and written by its owner alone."""
    store.registry_file.chmod(0o644)
    store.load_registry()
    store.registry_file.chmod(0o664)
    with pytest.raises(ConfigError, match="chmod go-w"):
        store.load_registry()


def test_the_keyring_survives_the_disk(tmp_path: Path) -> None:
    """Every field of every kind of key comes back."""
    store = KeyStore.init(tmp_path, NOW_MS)
    keys = [
        *store.keyring(),
        Key("p", Purpose.CREDENTIAL, Algorithm.ED25519, None, b"p" * 32, 5, 9, KeyState.RETIRED),
        Key("h", Purpose.CREDENTIAL, Algorithm.HMAC_SHA256, b"h" * 32, None, 0, None, KeyState.REVOKED),
    ]
    store.save_keyring(Keyring(keys))
    assert sorted(KeyStore(tmp_path).keyring(), key=lambda key: key.kid) == sorted(keys, key=lambda key: key.kid)


def test_the_registry_survives_the_disk(store: KeyStore) -> None:
    """Grants come back as they were saved, also written by hand in YAML."""
    granted = Credential(
        kid="k", role=Role.USER_CHANNEL, channel="user", tier=Tier.USER_OBSERVED, tenants=("a", "b"), agents=("x",),
        principals=("ada",), not_before_ms=1, not_after_ms=2, note="n",
    )  # fmt: skip
    store.save_registry(Registry([granted]))
    assert KeyStore(store.home).registry().all() == [granted]
    store.registry_file.write_text("format: 1\ncredentials:\n- {kid: z, role: reader, tenants: [acme]}\n")
    assert KeyStore(store.home).registry().get("z").tier is Tier.USER_OBSERVED


def test_a_change_is_seen_within_a_second_and_not_looked_for_more_often(tmp_path: Path) -> None:
    """The file is looked at once a second at most; a changed one is read, a touched one costs nothing more."""
    KeyStore.init(tmp_path, NOW_MS)
    clock = [0.0]
    running, other = KeyStore(tmp_path, monotonic=lambda: clock[0]), KeyStore(tmp_path)
    first = running.keyring()
    other.save_keyring(first.with_key(new_gate_key(Purpose.SEAL, NOW_MS, os.urandom)))
    clock[0] = 0.9
    assert running.keyring() is first
    clock[0] = 1.0
    second = running.keyring()
    assert len(list(second)) == len(list(first)) + 1
    clock[0] = 9.0
    assert running.keyring() is second, "not read again without a change"


def test_what_a_process_saves_it_sees_at_once(store: KeyStore) -> None:
    """The writer itself does not wait for the second to pass."""
    assert not store.registry().all()
    credential, _ = issue_credential(store, Role.PRODUCER, "agent", ["acme"])
    assert store.registry().get(credential.kid) == credential
    assert credential.kid in store.keyring()


@pytest.mark.parametrize("damage", ["unreadable", "garbage", "missing"])
def test_a_slip_does_not_stop_a_running_process(tmp_path: Path, damage: str) -> None:
    """A damaged file keeps the last good one in force, a mended one is taken, and a start refuses the damaged one."""
    KeyStore.init(tmp_path, NOW_MS)
    clock = [0.0]
    running = KeyStore(tmp_path, monotonic=lambda: clock[0])
    first, data = running.keyring(), running.keyring_file.read_bytes()
    if damage == "unreadable":
        running.keyring_file.chmod(0o644)
    elif damage == "garbage":
        running.keyring_file.write_bytes(b"{")
    else:
        running.keyring_file.unlink()
    clock[0] = 2.0
    assert running.keyring() is first
    with pytest.raises(ConfigError):
        KeyStore(tmp_path).keyring()
    files.write_atomic(running.keyring_file, data.replace(b'"active"', b'"retired"', 1))
    clock[0] = 4.0
    assert any(key.state is KeyState.RETIRED for key in running.keyring())


def test_a_refresh_looks_now(tmp_path: Path) -> None:
    """A gate that meets an unknown key id need not wait for the second to pass."""
    KeyStore.init(tmp_path, NOW_MS)
    running = KeyStore(tmp_path, monotonic=lambda: 0.0)
    assert not running.registry().all()
    credential, _ = issue_credential(KeyStore(tmp_path), Role.PRODUCER, "agent", ["acme"])
    assert not running.registry().all()
    running.refresh()
    assert running.registry().get(credential.kid)
    assert credential.kid in running.keyring()


SECRET = orjson.dumps("c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LXNlY3I=").decode()
GOOD = f'{{"kid":"k","purpose":"seal","algorithm":"hmac-sha256","secret":{SECRET},"public":null,"not_before_ms":0,"not_after_ms":null,"state":"active"}}'  # noqa: E501


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a keyring of format 1"),
        ('{"format":2,"keys":[]}', "is not a keyring of format 1"),
        (f'{{"format":1,"keys":[{GOOD},{GOOD}]}}', "key id k is listed twice"),
        ('{"format":1,"keys":[7]}', r"keys\.0"),
        (f'{{"format":1,"keys":[{GOOD.replace("seal", "saddle")}]}}', r"keys\.0"),
        (f'{{"format":1,"keys":[{GOOD.replace("c2Vj", "")}]}}', r"keys\.0\.secret"),
        (f'{{"format":1,"keys":[{GOOD.replace("c2Vj", "§§")}]}}', r"keys\.0\.secret"),
        (f'{{"format":1,"keys":[{GOOD.replace(chr(34) + "state" + chr(34), chr(34) + "stat" + chr(34))}]}}', "state"),
    ],
)
def test_a_damaged_keyring_names_the_place_and_quotes_no_secret(store: KeyStore, text: str, named: str) -> None:
    """The message says which key and which field; the secret beside it stays where it is."""
    files.write_atomic(store.keyring_file, text.encode())
    with pytest.raises(ConfigError, match=named) as caught:
        store.load_keyring()
    assert "2VjcmV0" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("a: [", "is not YAML"),
        ("[]", "is not a registry of format 1"),
        ("format: 1\ncredentials: [{kid: k, role: king, tenants: [a]}]", "role"),
        ("format: 1\ncredentials: [{kid: k, role: reader, tenants: []}]", "tenants"),
        ("format: 1\ncredentials: [{kid: k, role: reader, tenants: [a, Bad Tenant]}]", r"credentials\.0: tenants\.1"),
        ("format: 1\ncredentials: [{kid: k, role: reader, tenants: [a], agents: ['']}]", r"credentials\.0: agents\.0"),
        ('format: 1\ncredentials: [{kid: k, role: reader, tenants: [a], principals: ["\\e"]}]', r"principals\.0"),
        ("format: 1\ncredentials: [{kid: k, role: producer, channel: user, tenants: [a]}]", "channel user"),
        ("format: 1\ncredentials: [{kid: k, role: producer, tier: 1, tenants: [a]}]", "tier 3 at best"),
        (
            "format: 1\ncredentials: [{kid: k, role: reader, tenants: [a]}, {kid: k, role: reader, tenants: [b]}]",
            "twice",
        ),
        ("!!python/object/apply:os.system [id]", "is not YAML"),
    ],
)
def test_a_registry_that_grants_nonsense_is_refused(store: KeyStore, text: str, named: str) -> None:
    """An unknown role, a better tier than the channel has, a key id twice, a name that no event can have, code."""
    files.write_atomic(store.registry_file, text.encode())
    with pytest.raises(ConfigError, match=named):
        store.load_registry()


def test_a_credential_s_secret_does_not_show(store: KeyStore) -> None:
    """Neither repr nor str nor a validation error of a credential file has the secret in it."""
    _, path = issue_credential(store, Role.PRODUCER, "agent", ["acme"])
    held = load_credential(path)
    secret = orjson.loads(path.read_bytes())["secret"]
    assert secret not in repr(held) + str(held)
    files.write_atomic(path, path.read_bytes().replace(b'"role": "producer"', b'"role": "king"'))
    with pytest.raises(ConfigError, match="role") as caught:
        load_credential(path)
    assert secret not in str(caught.value)


def test_operators_sign_with_ed25519_alone(store: KeyStore) -> None:
    """The gate holds the public half only; an HMAC operator is refused, since whoever verifies could forge."""
    credential, path = issue_credential(store, Role.OPERATOR, "operator", ["*"])
    key = store.load_keyring().get(credential.kid)
    assert (key.algorithm, key.secret) == (Algorithm.ED25519, None)
    assert store.load_keyring().direct(credential.kid).verify(b"m", load_credential(path).signer().sign(b"m"))
    with pytest.raises(ConfigError, match="must be signed with Ed25519"):
        issue_credential(store, Role.OPERATOR, "operator", ["*"], algorithm=Algorithm.HMAC_SHA256)


@pytest.mark.parametrize(
    ("role", "channel", "more"),
    [
        (Role.PRODUCER, "user", {}),
        (Role.PRODUCER, "agent", {"tier": Tier.OPERATOR}),
        (Role.PRODUCER, "agent", {"kid": "../../evil"}),
    ],
)
def test_a_credential_that_may_not_be_leaves_nothing_behind(
    store: KeyStore, role: Role, channel: Any, more: dict[str, Any]
) -> None:
    """A channel or tier beyond the role, or a key id that is a path, is refused before any file is written."""
    before = store.keyring_file.read_bytes()
    with pytest.raises(ConfigError):
        issue_credential(store, role, channel, ["acme"], **more)
    assert store.keyring_file.read_bytes() == before
    assert not store.credentials_dir.exists()


def test_days_end_a_credential(store: KeyStore) -> None:
    """A credential of 2 days signs for 2 days, by its file and by the registry."""
    credential, path = issue_credential(store, Role.PRODUCER, "agent", ["acme"], now_ms=NOW_MS, days=2)
    end = NOW_MS + 2 * DAY_MS
    assert credential.not_after_ms == end
    assert [load_credential(path).signs_at(at) for at in (NOW_MS - 1, NOW_MS, end - 1, end)] == [
        False,
        True,
        True,
        False,
    ]


def test_two_commands_at_once_lose_nothing(tmp_path: Path) -> None:
    """Credentials issued by several processes and threads at the same time are all there afterwards."""
    KeyStore.init(tmp_path, NOW_MS)
    code = (
        "import sys; from pathlib import Path; from memsluice.keystore.store import *\n"
        "for n in range(5): issue_credential(KeyStore(Path(sys.argv[1])), Role.PRODUCER, 'agent', ['acme'])"
    )
    processes = [subprocess.Popen([sys.executable, "-c", code, str(tmp_path)]) for _ in range(2)]
    threads = [
        threading.Thread(target=issue_credential, args=(KeyStore(tmp_path), Role.READER, "agent", ["acme"]))
        for _ in range(5)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(HANG_S)
    assert [process.wait(HANG_S) for process in processes] == [0, 0]
    store = KeyStore(tmp_path)
    assert len(store.registry().all()) == 15
    assert all(credential.kid in store.keyring() for credential in store.registry().all())
    assert not list(tmp_path.rglob("*.draft"))


def test_a_failed_write_leaves_the_old_file(store: KeyStore) -> None:
    """A full disk at the worst moment: the old keyring is still whole, and no draft stays behind."""
    before = store.keyring_file.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    with pytest.raises(ConfigError, match=r"no space left.*free some space"):
        files.write_atomic(store.keyring_file, b"new", fsync=full)
    assert store.keyring_file.read_bytes() == before
    assert not list(store.home.glob(".*.draft"))


def test_the_public_keyring_has_no_secret(store: KeyStore) -> None:
    """What readers get are public admission keys and nothing else."""
    public = public_keyring(store.keyring())
    assert [key.purpose for key in public] == [Purpose.ADMISSION]
    text = files.keyring_to_bytes(public)
    assert all(row["secret"] is None for row in orjson.loads(text)["keys"])


def test_a_readers_keyring_holds_its_tenants_digest_key_and_never_the_root(store: KeyStore) -> None:
    """The file gives the gate's digests of its tenant after a round trip, no other tenant's, and not the root."""
    gate = store.keyring()
    data = files.keyring_to_bytes(public_keyring(gate, ["acme", "acme"]))
    reader = files.keyring_from_bytes(data, "reader.json")
    assert content_digest(reader, "acme", "tea") == content_digest(gate, "acme", "tea")
    assert sorted(key.purpose.value for key in reader) == ["admission", "digest"]
    assert [key.tenant for key in reader if key.secret is not None] == ["acme"]
    root = next(key.secret for key in gate if key.purpose is Purpose.DIGEST)
    assert root is not None
    assert root not in {key.secret for key in reader}
    with pytest.raises(ConfigError, match="keys public FILE --tenant globex"):
        content_digest(reader, "globex", "tea")
    derived = next(key.kid for key in reader if key.tenant)
    with pytest.raises(ConfigError, match="of tenant acme, not of globex"):
        reader.tenant_key(derived, "globex")


def test_the_registry_is_plain_yaml(store: KeyStore) -> None:
    """People read it: names, not Python objects, and defaults left out."""
    issue_credential(store, Role.PRODUCER, "agent", ["acme"], note="the helpdesk bot")
    (row,) = yaml.safe_load(store.registry_file.read_text())["credentials"]
    assert row["note"] == "the helpdesk bot"
    assert set(row) == {"kid", "role", "tenants", "note"}


def test_injected_entropy_makes_the_same_keys(tmp_path: Path) -> None:
    """Simulations repeat: with the same bytes come the same key ids and keys."""

    def keys(home: Path) -> list[Key]:
        numbers = iter(range(1_000))
        store = KeyStore.init(home, NOW_MS, entropy=lambda size: next(numbers).to_bytes(size, "big"))
        return sorted(store.keyring(), key=lambda key: key.kid)

    assert keys(tmp_path / "a") == keys(tmp_path / "b")
