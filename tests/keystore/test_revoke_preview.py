"""Before a key is revoked it is shown what it signed and what becomes of that, and asked."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from tests.command import Shown, run
from tests.held.desk import BAD
from tests.provenance.shop import Shop

from memsluice.cli import key_usage as screen
from memsluice.clock import wall_ms
from memsluice.envelope.keys import Purpose
from memsluice.keystore import rotation
from memsluice.keystore.store import KeyStore
from memsluice.operations.provenance.key_usage import KEPT_MAX, key_usage
from memsluice.operations.trace.life import EntryStanding
from memsluice.readers.local import LocalTopic


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    """A home where one person's app wrote two notes and three that are held, one of which was released."""
    shop = Shop(tmp_path_factory.mktemp("keys") / "home")
    for number in range(2):
        shop.note(f"n{number}")
    for number, session in enumerate(("s-1", "s-2", "s-2")):
        shop.write(f"{BAD} {number}", event_id=f"h{number}", session=session)
    assert shop.command("quarantine", "release", "h0", "--yes").exit_code == 0
    assert shop.command("quarantine", "reject", "h1", "--yes").exit_code == 0
    return shop


def revoke(shop: Shop, kid: str, *words: str, stdin: str = "") -> Shown:
    """Run ``memsluice keys revoke`` on the home."""
    return run("keys", "revoke", kid, *words, "--home", str(shop.home.path), stdin=stdin)


def counted(shop: Shop, kid: str, tenants: tuple[str, ...] | None = None, after: int | None = None):  # type: ignore[no-untyped-def]
    """Return what a key signed; ``after``: stop after so many records."""
    log, read = shop.assembly.local_log(), iter(range(10**9))
    try:
        ended = bool if after is None else (lambda: next(read) >= after)
        return key_usage(LocalTopic(log, name="log"), shop.keys.keyring(), kid, tenants, wall_ms(), 8, ended)
    finally:
        log.close()


def state(shop: Shop, kid: str) -> str:
    """Return what a key can do now."""
    return rotation.standing(KeyStore(shop.home.path).load_keyring().get(kid), wall_ms()).value


def test_a_credentials_preview_says_what_it_signed_and_nothing_is_revoked_without_a_yes(shop: Shop) -> None:
    """Entries in memory, held and refused writes, sessions; that held ones stay; what to do to take it back."""
    for stdin in ("", "n\n"):
        shown = revoke(shop, "user", stdin=stdin)
        assert (shown.code, state(shop, "user")) == (1, "active"), shown.out
    for told in (
        "user  user_channel of acme, globex, channel user",
        "signed: 5 memory.write.v1; 2 sessions; the last one decided at ",
        "of its writes: 3 in memory, 1 held and waiting, 1 refused",
        "memsluice revoke key:user --remove",
        "no other user_channel credential is for acme, globex: nobody signs for it until you make one",
    ):
        assert told in shown.out
    assert BAD[:20] not in shown.out


def test_the_counts_follow_what_became_of_the_writes(shop: Shop) -> None:
    """Counted by where they are now; of the tenants that the key is for alone; other keys' events count for nothing."""
    usage = counted(shop, "user")
    wrote = {one: usage.wrote[one] for one in EntryStanding if usage.wrote[one]}
    assert wrote == {EntryStanding.GUIDANCE: 3, EntryStanding.HELD: 1, EntryStanding.REFUSED: 1}
    assert (counted(shop, "user", ("globex",)).signed, counted(shop, "web").signed) == ({}, {})
    reviewers = [counted(shop, kid) for kid in ("reviewer", "reviewer-2")]
    assert sum((one.signed for one in reviewers), Counter()) == {"memory.command.v1": 2}
    assert [(one.sessions, one.wrote[EntryStanding.GUIDANCE]) for one in reviewers] == [(0, 0)] * 2


def test_a_gate_keys_preview_counts_what_readers_would_lose(shop: Shop) -> None:
    """Entries that its admission let in and writes that wait under its seal: they verify no more."""
    keys = {key.purpose: key.kid for key in shop.keys.load_keyring()}
    assert counted(shop, keys[Purpose.ADMISSION]).admitted == 3
    sealed = counted(shop, keys[Purpose.SEAL])
    assert (sealed.held, sealed.sealed) == (1, sealed.read)


def test_a_count_that_was_cut_short_says_so(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stolen key is not left valid while a long audit is read: the counts are of what was read by then."""
    usage = counted(shop, "user", after=3)
    assert (usage.read, usage.whole) == (3, False)
    assert counted(shop, "user").whole
    monkeypatch.setattr(screen, "READ_S_MAX", -1.0)
    assert "there may be more: of the audit 0 records were read" in revoke(shop, "user", stdin="n\n").out
    monkeypatch.setattr("memsluice.operations.provenance.key_usage.KEPT_MAX", 1)
    assert not counted(shop, "user").whole
    assert KEPT_MAX > 1


def test_where_there_is_no_audit_the_key_is_revoked_all_the_same(tmp_path: Path) -> None:
    """A home with keys alone: what is not counted is said, and --yes revokes."""
    home = str(tmp_path / "keys")
    assert run("keys", "init", "--home", home).code == 0
    kid = run("keys", "new", "producer", "--tenant", "acme", "--home", home).out.split()[3].rstrip(";")
    shown = run("keys", "revoke", kid, "--yes", "--home", home)
    assert (shown.code, "what it signed is not counted: There is no memory at" in shown.out) == (0, True), shown.out
    assert "no longer signs" in shown.out
    again = run("keys", "revoke", kid, "--yes", "--home", home)
    assert (again.code, "is revoked, and a revocation cannot be undone" in again.said) == (1, True)


def test_records_that_do_not_verify_are_told_and_not_counted(shop: Shop) -> None:
    """Whoever writes to the audit without the gate's key makes no key look used."""
    log = shop.assembly.local_log()
    topic = LocalTopic(log, name="log")
    records = [replace(one, value=(one.value or b"").replace(b'"sig":"', b'"sig":"AAAA'))
               for part in range(8) for one in topic.read(part)]  # fmt: skip
    log.close()

    class Forged:
        """The same records, none of which verifies."""

        def read(self, partition: int, from_offset: int = 0):  # type: ignore[no-untyped-def]
            """Yield those of a partition."""
            return (one for one in records if one.partition == partition)

    usage = key_usage(Forged(), shop.keys.keyring(), "user", None, wall_ms(), 8)  # type: ignore[arg-type]
    assert (usage.signed, usage.unverified) == ({}, len(records))


def test_yes_revokes_after_the_preview(shop: Shop) -> None:
    """The counts are printed for the log of whoever scripts it; then the key signs no more."""
    shown = revoke(shop, "web", "--yes")
    assert (shown.code, state(shop, "web")) == (0, "revoked")
    assert "signed: nothing that the audit has" in shown.out
