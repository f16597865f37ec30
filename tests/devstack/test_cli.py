"""``memsluice stack`` where there is no stack: every answer is a sentence and an exit code."""

import os
from dataclasses import asdict
from pathlib import Path

import psutil
import pytest
from typer.testing import CliRunner

from memsluice.cli.stack import app
from memsluice.deployment.layout import Layout
from memsluice.devstack import control
from memsluice.devstack.processes import ProcessId
from memsluice.devstack.services import ServiceReport, StackReport
from memsluice.devstack.stackfile import next_start


def test_status_without_a_stack_says_how_to_start_one(tmp_path: Path):
    """Exit code 6, unavailable, and the next command."""
    result = CliRunner().invoke(app, ["status", "--home", str(tmp_path / "none")])
    assert result.exit_code == 6
    assert "memsluice stack up" in result.stdout
    assert not (tmp_path / "none").exists()


def test_down_without_a_stack_does_nothing(tmp_path: Path):
    """``down`` is safe anywhere, and makes no directory."""
    result = CliRunner().invoke(app, ["down", "--wipe", "--home", str(tmp_path / "none")])
    assert result.exit_code == 0
    assert "nothing was running" in result.stdout
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize(
    ("arguments", "told", "code"),
    [
        (["logs", "zookeeper"], "kafka, weaviate", 2),
        (["logs"], "no stack was started there", 1),
        (["logs", "-f"], "needs one", 2),
    ],
)
def test_logs_explains_itself(tmp_path: Path, arguments: list[str], told: str, code: int):
    """A wrong or early question gets an answer that names the right one."""
    result = CliRunner().invoke(app, [*arguments, "--home", str(tmp_path)])
    assert result.exit_code == code
    assert told in result.stderr
    assert "Traceback" not in result.stderr


def test_missing_programs_are_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """First contact on a bare machine: what to install, no traceback, nothing running, nothing but empty folders."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = CliRunner().invoke(app, ["up", "--home", str(tmp_path / "h"), "--cache", str(tmp_path / "c")])
    assert result.exit_code == 1
    assert "openjdk-17-jre-headless" in result.stderr
    assert "maven" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "h" / "stack.json").exists()
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and path.name != "stack.lock"]


@pytest.mark.parametrize("option", ["--home", "--cache"])
def test_a_folder_that_cannot_be_used_is_a_message(tmp_path: Path, option: str):
    """A file where the folder should be, or a full or read-only disk: a sentence with the way out."""
    (tmp_path / "file").touch()
    arguments = {"--home": str(tmp_path / "home"), "--cache": str(tmp_path / "cache")} | {
        option: str(tmp_path / "file")
    }
    result = CliRunner().invoke(app, ["up", *(word for pair in arguments.items() for word in pair)])
    assert result.exit_code == 1
    assert "choose another " in result.stderr


def test_a_damaged_stack_file_is_a_message_and_wipe_is_the_way_out(tmp_path: Path):
    """Half a file after a full disk: status says so without a traceback, and down --wipe clears it."""
    (tmp_path / "stack.json").write_text("{")
    told = CliRunner().invoke(app, ["status", "--home", str(tmp_path)])
    assert told.exit_code == 1
    assert "down --wipe" in told.stderr
    assert CliRunner().invoke(app, ["down", "--wipe", "--home", str(tmp_path)]).exit_code == 0
    assert not (tmp_path / "stack.json").exists()


def test_doctor_names_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Before the first start, one command says whether it will work."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = CliRunner().invoke(app, ["doctor", "--cache", str(tmp_path)])
    assert result.exit_code == 1
    assert "apt-get install" in result.stderr


def test_wipe_takes_the_workers_state_and_leaves_the_keys(tmp_path: Path):
    """State of a broker that is gone would be taken for the new one's; keys belong to their owners."""
    (tmp_path / "workers" / "screen").mkdir(parents=True)
    (tmp_path / "keyring.json").touch()
    done = CliRunner().invoke(app, ["down", "--wipe", "--home", str(tmp_path)])
    assert done.exit_code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["keyring.json"]
    assert "keys and credentials stay" in done.stdout


@pytest.mark.parametrize(
    ("kept", "restarts", "age_s", "state"),
    [
        (True, 0, 10.0, "hung"),
        (True, 1, 10.0, "starting"),
        (True, 1, 1_000.0, "hung"),
        (False, 0, 10.0, "starting"),
        (False, 0, 1_000.0, "hung"),
    ],
)
def test_a_server_that_had_answered_and_is_silent_is_not_called_starting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool, restarts: int, age_s: float, state: str
):
    """A frozen broker is no broker that starts: `stack status` calls it hung, and says where to look."""
    own, began = ProcessId.of(os.getpid()), psutil.Process().create_time()
    layout = Layout(tmp_path)
    next_start(None).write(layout)
    told = ServiceReport(state="running", **asdict(own), restarts=restarts)
    report = StackReport(**asdict(own), kept=kept, services=dict.fromkeys(control.SERVICES, told))
    layout.run_file.write_text(report.model_dump_json())
    monkeypatch.setattr(control, "_PROBES", dict.fromkeys(control.SERVICES, lambda _connection: False))
    monkeypatch.setattr("memsluice.devstack.control.time.time", lambda: began + age_s)
    shown = CliRunner().invoke(app, ["status", "--home", str(tmp_path)], env={"COLUMNS": "200"})
    assert shown.exit_code == 6
    assert shown.stdout.count(state) == len(control.SERVICES)
    assert ("memsluice stack logs" in shown.stdout) == (state == "hung")
