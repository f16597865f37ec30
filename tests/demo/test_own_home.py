"""What ``--fresh`` deletes, and what it leaves."""

from pathlib import Path

import pytest
from tests.command import run

from memsluice.deployment.home import Home
from memsluice.envelope.registry import Role
from memsluice.errors import ConfigError
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice_lab.demo.own_home import alone, wipe


def files(folder: Path) -> set[str]:
    """Return the names of all files below a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def furnish(home: Home) -> None:
    """Put into a home what a demo leaves there."""
    keys = KeyStore.init(home.path, 1)
    issue_credential(keys, Role.READER, "agent", ["acme"], now_ms=1, kid="acme.reader")
    for name in ("embedded.db", "embedded.db-wal", "embedded.db-shm", "store.db"):
        (home.path / name).touch()


def test_a_demos_own_home_is_emptied_by_exact_names(tmp_path: Path) -> None:
    """Log, store, keys and the registry's credentials go; a neighbour with a similar name is somebody's file."""
    home = Home(tmp_path / "home")
    with alone(home):
        furnish(home)
        kept = {"store.db.mine", "keyring.json.bak", "credentials/aws.json"}
        for name in kept:
            (home.path / name).write_text("mine")
        wipe(home, named=True)
    assert files(home.path) == kept | {"demo.lock", "keys.lock"}


def test_a_folder_that_was_there_before_is_never_emptied(tmp_path: Path) -> None:
    """A real home keeps its keys, also after a demo was once played in it: --fresh ends with one line."""
    home = Home(tmp_path)
    furnish(home)
    with alone(home):
        pass
    before = files(tmp_path)
    shown = run("demo", "--fresh", "--home", str(tmp_path))
    assert shown.code == 1
    assert "was not made by a demo" in shown.said
    assert "Traceback" not in shown.err
    assert files(tmp_path) == before


@pytest.mark.parametrize("named", [True, False])
def test_a_stacks_home_is_never_emptied(tmp_path: Path, named: bool) -> None:
    """A stack that is down still needs its keys and credentials, also in a home that a demo made."""
    home = Home(tmp_path / "home")
    with alone(home):
        furnish(home)
        (home.path / "stack.json").touch()
        before = files(home.path)
        with pytest.raises(ConfigError, match="stack's home"):
            wipe(home, named=named)
    assert files(home.path) == before
