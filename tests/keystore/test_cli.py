"""``memsluice keys`` as a person types it."""

import errno
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.command import run as whole
from typer.testing import CliRunner

from memsluice.cli.keys import app
from memsluice.cli.options import duration_ms
from memsluice.errors import InvalidArgument
from memsluice.keystore.store import KeyStore


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Give a function that runs one command in a fresh home and returns (exit code, output)."""
    monkeypatch.setenv("MEMSLUICE_HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "100")

    def run(*words: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, list(words))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        return result.exit_code, result.output

    assert run("init")[0] == 0
    return run


def kid_of(output: str) -> str:
    """Return the first key id in a command's answer."""
    found = re.search(r"\b[a-z-]+-[0-9a-f]{8}\b", output)
    assert found
    return found[0]


def secrets(home: Path) -> list[str]:
    """Return every secret below a home, in base64."""
    rows = orjson.loads((home / "keyring.json").read_bytes())["keys"]
    files = [orjson.loads(path.read_bytes()) for path in (home / "credentials").glob("*.json")]
    return [row["secret"] for row in rows + files if row["secret"]]


def test_a_life_of_a_credential(keys: Any, tmp_path: Path) -> None:
    """Issued, listed, rotated, retired, revoked: each is told in one line, and no secret is ever printed."""
    said = [keys("new", "producer", "--tenant", "acme", "--days", "30", "--note", "helpdesk")]
    kid = kid_of(said[0][1])
    said += [keys("rotate", kid, "--overlap", "30m"), keys("retire", kid), keys("list"),
             keys("revoke", kid, "--yes")]  # fmt: skip
    said += [keys("new", "operator", "--tenant", "*"), keys("list"), keys("list", "--json")]
    assert [code for code, _ in said] == [0] * len(said)
    rows = {row["kid"]: row for row in json.loads(said[-1][1])}
    assert rows[kid]["state"] == "revoked"
    assert rows[kid]["tenants"] == ["acme"]
    assert {row["for"] for row in rows.values()} == {"producer", "operator", "seal", "digest", "admission"}
    assert kid in said[3][1]
    assert "retired" in said[3][1]
    printed = "".join(text for _, text in said)
    assert not [secret for secret in secrets(tmp_path) if secret in printed]


def test_the_table_shows_what_people_ask_for(keys: Any) -> None:
    """Key id, role, channel and tier, tenants, state, end and fingerprint, on one line at 100 columns."""
    kid = kid_of(keys("new", "user-channel", "--tenant", "acme", "--tier", "3")[1])
    (line,) = [line for line in keys("list")[1].splitlines() if kid in line]
    assert re.search(rf"{kid}\s+user_channel\s+user/3\s+acme\s+active\s+open\s+[0-9a-f]{{8}}", line)


def test_what_is_listed_cannot_act_on_the_terminal(keys: Any, tmp_path: Path) -> None:
    """A name in a file that was edited by hand is shown, and neither obeyed as an escape nor read as markup."""
    store = KeyStore(tmp_path)
    seal = next(key for key in store.load_keyring() if key.purpose.value == "seal")
    store.save_keyring(store.load_keyring().with_key(replace(seal, kid="k\x1b[2J\x9b[/x]")))
    code, output = keys("list")
    assert code == 0
    assert re.findall(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", output) == []
    assert "k<U+001B>[2J<U+009B>[/x]" in output


@pytest.mark.parametrize(
    ("words", "named", "code"),
    [
        (["new", "banana"], "producer, reader, runtime, user-channel, operator", 2),
        (["new", "producer"], "--tenant", 2),
        (["new", "producer", "--tenant", "a", "--channel", "fax"], "not a channel", 2),
        (["new", "producer", "--tenant", "a", "--channel", "user"], "may not use channel user", 1),
        (["new", "producer", "--tenant", "a", "--tier", "1"], "error: tier: channel agent gives tier", 1),
        (["new", "operator", "--tenant", "a", "--algorithm", "hmac-sha256"], "must be signed with Ed25519", 1),
        (["new", "digest"], "never changes", 1),
        (["new", "producer", "--tenant", "Bad Tenant"], "--tenant: ", 2),
        (["new", "producer", "--tenant", "acme", "--tenant", ""], "--tenant: ", 2),
        (["new", "producer", "--tenant", "a\x1b[2J"], "--tenant: ", 2),
        (["new", "producer", "--tenant", "a", "--agent", ""], "--agent: ", 2),
        (["new", "producer", "--tenant", "a", "--agent", "a\x1b]0;x"], "--agent: ", 2),
        (["new", "producer", "--tenant", "a", "--principal", "p" * 129], "--principal: ", 2),
        (["rotate", "nobody"], "keys list", 5),
        (["rotate", "nobody", "--overlap", "soon"], "not a duration", 2),
    ],
)
def test_a_mistake_is_one_line_that_says_what_to_do(keys: Any, words: list[str], named: str, code: int) -> None:
    """A message, no traceback, and exit code 2 for a command line that is not valid, 5 for no such key."""
    given, output = keys(*words)
    assert given == code
    assert named in output.replace("\n", " ")
    assert "Traceback" not in output
    assert "\x1b" not in output


def test_the_table_is_not_fooled_by_a_registry_or_keyring_that_somebody_edited(keys: Any, tmp_path: Path) -> None:
    """Escapes and markup in a key id are shown, not acted on; `new` puts none there, another hand may."""
    kid = kid_of(keys("new", "reader", "--tenant", "acme")[1])
    for file in (tmp_path / "keyring.json", tmp_path / "registry.yaml"):
        text = file.read_text().replace(f'"{kid}"', '"[/x]\\u001b[2J"').replace(kid, '"[/x]\\e[2J"')
        file.write_text(text)
    code, output = keys("list")
    assert code == 0
    assert "\x1b" not in output
    assert "[/x]<U+001B>[2J" in output


def test_gate_keys_are_added_and_the_public_ones_exported(keys: Any, tmp_path: Path) -> None:
    """A new seal key joins the ring; the file for readers verifies and holds no secret."""
    assert keys("new", "seal")[0] == 0
    assert len([key for key in KeyStore(tmp_path).keyring() if key.purpose.value == "seal"]) == 2
    assert keys("public", str(tmp_path / "readers.json"))[0] == 0
    (row,) = orjson.loads((tmp_path / "readers.json").read_bytes())["keys"]
    assert (row["purpose"], row["secret"]) == ("admission", None)


def test_the_file_of_one_tenants_readers(keys: Any, tmp_path: Path) -> None:
    """--tenant adds that tenant's digest key; the file is its owner's alone; a name that is none is refused."""
    file = tmp_path / "readers.json"
    assert keys("public", str(file), "--tenant", "acme")[0] == 0
    rows = orjson.loads(file.read_bytes())["keys"]
    assert {row["purpose"]: row.get("tenant") for row in rows} == {"admission": None, "digest": "acme"}
    assert file.stat().st_mode & 0o777 == 0o600
    code, output = keys("public", str(file), "--tenant", "*")
    assert code == 2
    assert "not a valid tenant name" in output


def test_a_gate_key_in_use_is_not_revoked(keys: Any, tmp_path: Path) -> None:
    """The refusal says what to run instead; --drained is what the last step says."""
    kid = next(key.kid for key in KeyStore(tmp_path).keyring() if key.purpose.value == "seal")
    code, output = keys("revoke", kid, "--drained")
    assert code == 1
    assert f"memsluice keys rotate {kid}" in output.replace("\n", " ")
    assert keys("new", "seal")[0] == 0


def test_a_keyring_that_others_can_read_stops_every_command(keys: Any, tmp_path: Path) -> None:
    """The message is the command that mends it."""
    (tmp_path / "keyring.json").chmod(0o644)
    code, output = keys("list")
    assert code == 1
    assert "chmod 600" in output


@pytest.mark.parametrize(
    ("text", "expected"), [("90s", 90_000), ("30m", 1_800_000), ("24h", 86_400_000), ("7d", 604_800_000)]
)
def test_durations(text: str, expected: int) -> None:
    """Seconds, minutes, hours, days; nothing else, and the option is named."""
    assert duration_ms(text, "--overlap") == expected
    with pytest.raises(InvalidArgument, match="--overlap"):
        duration_ms(text[:-1], "--overlap")


@pytest.mark.parametrize("words", [("keys", "init"), ("keys", "new", "seal"), ("stack", "up"), ("demo",)])
def test_a_home_that_is_a_file_is_said_with_what_to_do(words: tuple[str, ...], tmp_path: Path) -> None:
    """Whoever names a file for a home reads that it is one, and how to name another: no error number."""
    (tmp_path / "file").touch()
    shown = whole(*words, "--home", str(tmp_path / "file"))
    assert shown.code in (1, 2)
    if words != ("demo",):  # typer itself refuses that one
        assert "is a file and not a folder: choose another home with --home FOLDER or MEMSLUICE_HOME" in shown.said
    assert "Errno" not in shown.said


@pytest.mark.parametrize(
    ("lock", "words"), [("keys.lock", ("keys", "init")), ("stack.lock", ("stack", "up")), ("demo.lock", ("demo",))]
)
def test_a_lock_that_cannot_be_opened_is_named_with_what_to_do(
    lock: str, words: tuple[str, ...], tmp_path: Path
) -> None:
    """The file, what happened and what to do: no error number of the operating system."""
    (tmp_path / lock).mkdir()  # whatever the reason is: a mode does not stop the root user
    shown = whole(*words, "--home", str(tmp_path))
    assert shown.code == 1
    assert f"{tmp_path / lock} cannot be used: is a directory;" in shown.said
    assert "Errno" not in shown.said


def test_a_home_below_a_folder_that_cannot_be_written_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A home that cannot be made: which, why in words, and where else it may be."""

    def refuse(path: Path, *_: Any, **__: Any) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refuse)
    shown = whole("keys", "init", "--home", str(tmp_path / "new"))
    assert shown.code == 1
    assert f"{tmp_path / 'new'} cannot be used: permission denied; make it writable for this user" in shown.said
    assert "--home FOLDER" in shown.said
    assert "Errno" not in shown.said


def test_an_empty_home_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--home "$UNSET"` makes no keys in the folder that one stands in: nothing is done, and exit code 2 says so."""
    monkeypatch.chdir(tmp_path)
    for words in (("keys", "init"), ("stack", "status"), ("doctor",), ("demo",)):
        shown = whole(*words, "--home", "")
        assert (shown.code, list(tmp_path.iterdir())) == (2, []), words
        assert "--home is empty" in shown.said


@pytest.mark.parametrize(("file", "data"), [("keyring.json", "{"), ("registry.yaml", "a: [")])
def test_a_damaged_key_file_says_what_to_do(file: str, data: str, keys: Any, tmp_path: Path) -> None:
    """A keyring or registry that cannot be read any more is restored: every command says so, the doctor too."""
    (tmp_path / file).write_text(data)
    for words in (("keys", "list"), ("doctor",)):
        shown = whole(*words, "--home", str(tmp_path))
        assert "restore it from your backup" in shown.out + shown.err


@pytest.mark.parametrize(
    ("words", "option"),
    [
        (("keys", "new", "producer", "--tenant", "a b"), "--tenant"),
        (("keys", "new", "producer", "--tenant", ""), "--tenant"),
        (("keys", "new", "producer", "--tenant", "acme", "--agent", ""), "--agent"),
        (("keys", "new", "producer", "--tenant", "acme", "--principal", "x" * 200), "--principal"),
        (("recall", "acme", ""), "QUESTION"),
        (("recall", "acme", "why?", "--agent", ""), "--agent"),
    ],
)
def test_a_name_that_no_event_could_have_is_a_mistake_in_the_command_line(
    words: tuple[str, ...], option: str, keys: Any, tmp_path: Path
) -> None:
    """Plain words that name the option, exit code 2, and nothing is made: not a validator's own text."""
    shown = whole(*words, "--home", str(tmp_path))
    assert (shown.code, f"error: {option}: " in shown.said) == (2, True), shown.said
    assert not any(raw in shown.said for raw in ("String should", "tenants.0", "malformed"))
    assert not (tmp_path / "credentials").exists()
