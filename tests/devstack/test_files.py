"""The stack's own files: modes, secrets, restarts."""

import json
import stat
from pathlib import Path

import pytest

from memsluice.deployment.home import Home
from memsluice.deployment.layout import Layout
from memsluice.deployment.paths import cache_dir, home_dir, write_private
from memsluice.devstack.stackfile import StackFile, next_start
from memsluice.errors import ConfigError, StackError
from memsluice.keystore.store import KeyStore


def _mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_directories_and_files_are_private(tmp_path: Path):
    """Other users of the machine read neither data nor passwords, even where the home existed with a wider mode."""
    home = tmp_path / "home"
    home.mkdir(mode=0o755)
    layout = Layout(home)
    layout.prepare()
    next_start(None).write(layout)
    assert {_mode(path) for path in (home, layout.data, layout.config, layout.logs)} == {0o700}
    assert _mode(layout.stack_file) == 0o600


def test_a_folder_with_other_things_in_it_is_made_no_home(tmp_path: Path):
    """A home that was meant to be named and was not (an unset variable) is the folder one stands in: nothing is written
    there, and its mode stays."""
    checkout = tmp_path / "checkout"
    checkout.mkdir(mode=0o755)
    (checkout / "pyproject.toml").write_text("")
    for prepare in (Home(checkout).prepare, Layout(checkout).prepare, lambda: KeyStore.init(checkout, 0)):
        with pytest.raises(ConfigError, match="is no memsluice home"):
            prepare()
    assert [path.name for path in checkout.iterdir()] == ["pyproject.toml"]
    assert _mode(checkout) == 0o755


def test_write_private_leaves_no_draft(tmp_path: Path):
    """A reader sees the old file or the new one, and no third."""
    write_private(tmp_path / "file", "one")
    write_private(tmp_path / "file", "two")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_text() == "two"


def test_credentials_survive_a_restart_and_differ_between_stacks(tmp_path: Path):
    """The data was formatted with the passwords, so a restart keeps them; no two stacks share them."""
    layout = Layout(tmp_path)
    first = next_start(None)
    first.write(layout)
    again = next_start(StackFile.read(layout))
    assert again.connection.users == first.connection.users
    assert again.connection.weaviate_keys == first.connection.weaviate_keys
    assert again.cluster_id == first.cluster_id
    secrets = [secret.get_secret_value() for secret in first.connection.users.values()]
    assert len(set(secrets)) == len(secrets)
    assert next_start(None).connection.users["admin"] != first.connection.users["admin"]


def test_secrets_are_not_in_the_representation():
    """A logged or printed stack file shows no password."""
    file = next_start(None)
    shown = repr(file) + str(file) + repr(file.connection)
    values = [*file.connection.users.values(), *file.connection.weaviate_keys.values(), file.cluster_password]
    assert not [value for value in values if value.get_secret_value() in shown]


def test_a_damaged_file_is_an_error_that_says_what_to_do(tmp_path: Path):
    """No traceback and no silent new start over data that the old passwords guard."""
    layout = Layout(tmp_path)
    next_start(None).write(layout)
    raw = json.loads(layout.stack_file.read_text())
    secret = raw["connection"]["users"]["admin"]
    del raw["cluster_id"]
    layout.stack_file.write_text(json.dumps(raw))
    with pytest.raises(StackError, match="cluster_id") as caught:
        StackFile.read(layout)
    assert "down --wipe" in str(caught.value)
    assert secret not in str(caught.value)


def test_data_of_another_version_is_not_started(tmp_path: Path):
    """A changed pin never runs over data it was not tested with."""
    old = next_start(None).model_copy(update={"kafka_version": "3.9.0"})
    with pytest.raises(StackError, match=r"3\.9\.0"):
        next_start(old)


def test_an_account_without_a_home_names_its_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Whoever said where the cache and the home are is not asked for a home directory besides."""

    def nobody(path: Path) -> Path:
        raise RuntimeError(f"no home directory for {path}")

    monkeypatch.setattr(Path, "expanduser", lambda self: nobody(self) if str(self).startswith("~") else self)
    monkeypatch.setattr(Path, "home", nobody)
    for variable, folder in (("MEMSLUICE_CACHE", cache_dir), ("MEMSLUICE_HOME", home_dir)):
        monkeypatch.setenv(variable, str(tmp_path))
        assert folder() == tmp_path.resolve()
        monkeypatch.delenv(variable)
        with pytest.raises(RuntimeError):
            folder()
