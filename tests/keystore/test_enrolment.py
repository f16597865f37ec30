"""Keys that people make and keep themselves: what is registered of them, and what is refused."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from tests.command import run

from memsluice.envelope.keys import Algorithm, Purpose, generate_ed25519
from memsluice.envelope.registry import Role
from memsluice.errors import ConfigError, InvalidArgument
from memsluice.keystore import rotation
from memsluice.keystore.enrolment import _SMALL_ORDER, enrol, public_from_text
from memsluice.keystore.store import KeyStore

NOW_MS = 1_770_000_000_000


@pytest.fixture
def store(tmp_path):
    """Give a home's keys."""
    return KeyStore.init(tmp_path, NOW_MS)


def test_only_the_public_half_is_kept(store) -> None:
    """The keyring verifies with it, no secret and no credential file is written, and the grants name the person."""
    _, public = generate_ed25519()
    made = enrol(store, Role.REVIEWER, public, "ana", ["acme"], NOW_MS, 30, note="laptop")
    key = store.load_keyring().get(made.kid)
    assert (key.secret, key.public, key.purpose, key.algorithm) == (None, public, Purpose.CREDENTIAL, Algorithm.ED25519)
    assert not store.credential_path(made.kid).exists()
    kept = store.load_registry().get(made.kid)
    assert (kept.person, kept.tenants, kept.enrolled, kept.channel) == ("ana", ("acme",), True, "operator")
    assert kept.not_after_ms == NOW_MS + 30 * 86_400_000


def test_no_key_is_enrolled_twice(store) -> None:
    """One key under two ids would be two approvals of one person; a revoked one does not come back either."""
    _, public = generate_ed25519()
    made = enrol(store, Role.REVIEWER, public, "ana", ["acme"], NOW_MS)
    with pytest.raises(ConfigError, match=f"already, as {made.kid}"):
        enrol(store, Role.REVIEWER, public, "bob", ["acme"], NOW_MS)
    rotation.revoke(store, made.kid, NOW_MS)
    with pytest.raises(ConfigError, match="already"):
        enrol(store, Role.OPERATOR, public, "ana", ["acme"], NOW_MS)


@pytest.mark.parametrize("role", [Role.PRODUCER, Role.RUNTIME, Role.USER_CHANNEL])
def test_programs_are_not_enrolled(store, role) -> None:
    """A process gets a credential with its file; the roles of people alone are enrolled."""
    with pytest.raises(InvalidArgument, match="only the keys of people"):
        enrol(store, role, generate_ed25519()[1], "ana", ["acme"], NOW_MS)


def test_a_successor_is_never_made_here(store) -> None:
    """Rotating it here would put a private half onto the gate's machine, which was its point not to have."""
    made = enrol(store, Role.REVIEWER, generate_ed25519()[1], "ana", ["acme"], NOW_MS)
    with pytest.raises(ConfigError, match="memsluice keys enrol"):
        rotation.rotate(store, made.kid, NOW_MS)
    assert len([one for one in store.load_registry().all() if one.role is Role.REVIEWER]) == 1


@pytest.mark.parametrize("text", ["", "AAAA", "x" * 44, "é" * 44, base64.b64encode(bytes(33)).decode(), "00" * 32])
def test_what_is_no_key_says_so(text) -> None:
    """A typo is told of as one, with what to give instead."""
    with pytest.raises(InvalidArgument, match="--public"):
        public_from_text(text)


@pytest.mark.parametrize("sign", [0, 1 << 255])
@pytest.mark.parametrize("height", sorted(_SMALL_ORDER))
def test_keys_of_small_order_are_refused(height, sign) -> None:
    """Under such a key a signature that nobody made holds over some texts."""
    public = (height | sign).to_bytes(32, "little")
    with pytest.raises(InvalidArgument, match="small order"):
        public_from_text(base64.b64encode(public).decode())


def test_a_key_of_small_order_would_sign_for_anybody() -> None:
    """Why they are refused: here is a signature without a private key, and it verifies."""
    public = (1).to_bytes(32, "little")
    Ed25519PublicKey.from_public_bytes(public).verify(public + bytes(32), b"any command")


def test_the_command_line_enrols_and_shows_the_fingerprint(store) -> None:
    """The operator compares the fingerprint with the one in the person's browser; typos are named."""
    public = base64.b64encode(generate_ed25519()[1]).decode()
    words = ("keys", "enrol", "reviewer", "--public", public, "--tenant", "acme", "--home", str(store.home))
    done = run(*words, "--principal", "ana")
    assert done.code == 0
    assert " of ana, fingerprint " in done.out
    assert run(*words, "--principal", "*").code == 2
    assert "no role of a person" in run(*words[:2], "producer", *words[3:], "--principal", "ana").said
