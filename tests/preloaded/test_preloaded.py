"""A preloaded process is the command: words, variables, folder, streams, signals and exit code are its own."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.preloaded.serving import Server


def _run(preloaded: Server, *words: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    given = {**os.environ, **preloaded.variables(os.environ["PATH"]), **variables}
    return subprocess.run(["memsluice", *words], env=given, capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("words", [["--version"], ["policy", "check", "/nowhere.yaml"], ["no-such-command"]])
def test_it_says_what_the_command_says(preloaded: Server, words: list[str]) -> None:
    """Output, errors and exit code are those of a process that was started the usual way."""
    usual = subprocess.run([sys.executable, "-m", "memsluice.cli.main", *words], capture_output=True, text=True)
    ours = _run(preloaded, *words)
    assert (ours.returncode, ours.stdout, ours.stderr) == (usual.returncode, usual.stdout, usual.stderr)


def test_variables_are_its_own(preloaded: Server, tmp_path: Path) -> None:
    """A variable that is set for one process is read by it, and by no later one."""
    assert str(tmp_path) in _run(preloaded, "keys", "list", MEMSLUICE_HOME=str(tmp_path / "none")).stderr
    assert str(tmp_path) not in _run(preloaded, "keys", "list", MEMSLUICE_HOME="/nowhere").stderr


def test_it_can_be_killed_and_waited_for(preloaded: Server, tmp_path: Path) -> None:
    """It has a number of its own, runs until it is killed, and says then that it was."""
    with (tmp_path / "log").open("ab") as log:
        process = preloaded.launch(["top", "--home", str(tmp_path)], os.environ, log)
        assert process.pid != os.getpid()
        process.send_signal(signal.SIGKILL)
        assert process.wait(240) in (-signal.SIGKILL, 1), "it may have ended by itself before: nothing runs there"
        assert process.poll() == process.returncode
