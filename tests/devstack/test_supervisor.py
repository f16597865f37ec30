"""Nothing is left behind, whoever dies when. The servers here are small programs; the supervisor is the real one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from pydantic import ValidationError
from tests.devstack.small_disk import Filler, mounted

from memsluice.devstack.processes import ProcessId, find, stop
from memsluice.devstack.services import Service, ServiceReport, StackPlan, StackReport

HANG_GUARD_S = 240.0
TRIES = 3
DISK_MIB = 260
"""Above what the supervisor wants free to start a server that ended for want of room."""


def _happens(condition: Callable[[], object]) -> bool:
    deadline = time.monotonic() + HANG_GUARD_S
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def _until(condition: Callable[[], object]) -> None:
    assert _happens(condition), "did not happen"


class Running:
    """A supervisor with its plan, and what it reports."""

    def __init__(
        self, folder: Path, scripts: dict[str, str], grace_s: float = 5.0, on: Path | None = None, **options: float
    ) -> None:
        folder = on or folder
        self.run_file = folder / "supervisor.json"
        services = tuple(
            Service(
                name=name,
                command=("/bin/sh", "-c", script),
                environment={"PATH": "/usr/bin:/bin"},
                directory=str(folder),
                log=str(folder / f"{name}.log"),
                grace_s=grace_s,
                **options,
            )
            for name, script in scripts.items()
        )
        self.process = subprocess.Popen(
            [sys.executable, "-m", "memsluice.devstack.supervisor"],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        self.say(StackPlan(run_file=str(self.run_file), services=services).model_dump_json())
        _until(lambda: self.report() and all(s.pid or s.state == "failed" for s in self.report().services.values()))

    def say(self, line: str) -> None:
        """Write a line to the supervisor's standard input."""
        self.process.stdin.write(line.encode() + b"\n")
        self.process.stdin.flush()

    def report(self) -> StackReport | None:
        """Return the run file's content, None where there is none."""
        try:
            return StackReport.model_validate_json(self.run_file.read_text())
        except (FileNotFoundError, ValidationError):  # none, or it is being written over on a full disk
            return None

    def state(self, name: str) -> str:
        """Return a server's state as it is reported."""
        report = self.report()
        return report.services[name].state if report else ""

    def told(self, name: str) -> ServiceReport:
        """Return what is reported of a server, once the report is not just being written over."""
        _until(self.report)
        return self.report().services[name]

    def servers(self) -> list[ProcessId]:
        """Return the servers that are reported now."""
        return [service.identity() for service in self.report().services.values()]

    def end(self) -> None:
        """Make sure that the supervisor is gone."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(HANG_GUARD_S)
        self.process.stdin.close()


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Start supervisors that are gone after the test, whatever happened."""
    started: list[Running] = []

    def start(scripts: dict[str, str], **options: Any) -> Running:
        started.append(Running(tmp_path, scripts, **options))
        return started[-1]

    yield start
    for one in started:
        one.end()


def _gone(identities: list[ProcessId]) -> bool:
    return not any(find(identity) for identity in identities)


def test_everything_stops_when_the_starter_dies_half_way(run):
    """The end of standard input before ``keep`` is the starter's death: no orphan stays."""
    running = run({"a": "exec sleep 1000", "b": "exec sleep 1000"})
    servers = running.servers()
    assert not _gone(servers)
    running.process.stdin.close()
    _until(lambda: running.process.poll() is not None)
    assert _gone(servers)
    assert not running.run_file.exists()


def test_everything_stays_when_the_starter_ends_as_it_should(run):
    """After ``keep`` the starter may go; SIGTERM then ends it all cleanly."""
    running = run({"a": "exec sleep 1000"})
    servers = running.servers()
    assert not running.report().kept
    running.say("keep")
    running.process.stdin.close()
    _until(lambda: running.report().kept)
    time.sleep(1.0)  # several ticks in which it could wrongly take the end of input for a death
    assert not _gone(servers)
    running.process.terminate()
    assert running.process.wait(HANG_GUARD_S) == 0
    assert _gone(servers)


def test_servers_die_with_a_killed_supervisor(run):
    """SIGKILL gives the supervisor no chance to clean up, so the kernel does."""
    running = run({"a": "exec sleep 1000", "b": "exec sleep 1000"})
    running.say("keep")
    servers = running.servers()
    running.process.kill()
    _until(lambda: _gone(servers))


def test_a_server_that_ignores_sigterm_is_killed_after_its_grace(run):
    """A hanging server can't block ``down`` for ever."""
    running = run({"a": "trap '' TERM; while :; do sleep 1; done"}, grace_s=0.5)
    running.say("keep")
    servers = running.servers()
    running.process.terminate()
    running.process.wait(HANG_GUARD_S)
    assert _gone(servers)


def test_a_server_that_dies_is_started_again(run):
    """Supervised means that one crash is not the end, and that it is counted."""
    running = run({"a": "exec sleep 1000"})
    _kept(running)  # before it, a death fails the start instead
    before = running.servers()
    os.kill(before[0].pid, signal.SIGKILL)
    _until(lambda: running.report().services["a"].restarts == 1 and running.report().services["a"].pid)
    assert running.servers() != before
    assert running.report().services["a"].state == "running"


def test_a_death_during_the_start_is_reported_not_repeated(run):
    """The starter shows the first failure; it does not wait through five more."""
    running = run({"a": "exit 7"})
    _until(lambda: running.report().services["a"].state == "failed")
    assert running.report().services["a"].exit_code == 7
    assert running.report().services["a"].restarts == 0


def test_a_recycled_pid_is_never_signalled():
    """A stale run file names a pid that is somebody else's by now: it is told apart by its create time."""
    with subprocess.Popen(["sleep", "1000"]) as bystander:
        try:
            own = ProcessId.of(bystander.pid)
            for stale in (replace(own, started_s=own.started_s - 1), replace(own, boot="before")):
                assert find(stale) is None
                assert stop([stale], grace_s=1.0) == 0
            assert bystander.poll() is None
            assert find(ProcessId.of(bystander.pid)) is not None
        finally:
            bystander.kill()


@pytest.mark.parametrize("step_s", [-3600.0, -1.0, 1.0, 3600.0])
def test_a_clock_that_is_set_makes_no_running_process_another_one(monkeypatch: pytest.MonkeyPatch, step_s: float):
    """By a time service, say: `stack down` would leave the servers alone, and `up` start others beside them."""
    identity, booted = ProcessId.of(os.getpid()), psutil.boot_time()
    monkeypatch.setattr("psutil._pslinux.boot_time", lambda: booted + step_s)
    monkeypatch.setattr("psutil.boot_time", lambda: booted + step_s)
    found = find(identity)
    assert found is not None
    assert found.pid == os.getpid()


def test_a_server_sees_only_its_own_environment(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Secrets of the caller's shell don't reach the servers."""
    monkeypatch.setenv("CALLERS_SECRET", "x")
    running = run({"a": "env > seen; exec sleep 1000"})
    _until((tmp_path / "seen").exists)
    assert "CALLERS_SECRET" not in (tmp_path / "seen").read_text()
    assert json.loads(running.run_file.read_text())["pid"] == running.process.pid


def _killed(running: Running, name: str) -> None:
    """Kill a server, unless it has ended by itself."""
    process = find(running.told(name).identity())
    if process is not None:
        with suppress(psutil.NoSuchProcess):
            process.kill()


def _kept(running: Running) -> None:
    running.say("keep")
    _until(lambda: (report := running.report()) is not None and report.kept)


@pytest.mark.mounts
def test_a_full_disk_ends_a_server_and_not_its_supervisor(run, tmp_path: Path):
    """A server that cannot write waits for room, however long, and runs again once there is some; the report says why,
    though the disk took no new file meanwhile."""
    script = (
        "while :; do dd if=/dev/zero of=data bs=65536 count=1 conv=notrunc,fsync status=none || exit 1; sleep .1; done"
    )
    with mounted(tmp_path / "disk", DISK_MIB) as disk:
        running = run({"a": f"rm -f data; {script}"}, on=disk)
        filler = Filler(disk)
        _kept(running)
        (disk / "data").unlink(missing_ok=True)
        filler.leave(0)
        _killed(running, "a")  # whatever it was doing: the disk is full when it ends
        _until(lambda: running.state("a") == "waiting for room")
        assert running.process.poll() is None
        assert "out of disk space" in running.told("a").why
        time.sleep(3.0)  # several pauses in which it could wrongly be started, and given up
        assert running.state("a") == "waiting for room"
        filler.free()
        _until(lambda: running.state("a") == "running")
        running.process.terminate()
        assert running.process.wait(HANG_GUARD_S) == 0


@pytest.mark.mounts
def test_a_server_that_asks_for_it_is_stopped_before_the_disk_is_full(run, tmp_path: Path):
    """A broker whose write fails in the middle ends hard; so it is stopped in good order while there is some room, and
    one that serves reads on a full disk is left alone."""
    wait = "trap 'exit 0' TERM; while :; do sleep .1; done"
    with mounted(tmp_path / "disk", DISK_MIB) as disk:
        services = {"broker": wait}
        running = run(services, on=disk, stop_when_full=True)
        _kept(running)
        filler = Filler(disk)
        filler.leave(60 << 20)
        _until(lambda: running.state("broker") == "waiting for room")
        assert "before a write fails" in running.told("broker").why
        filler.free()
        _until(lambda: running.state("broker") == "running")
        assert running.told("broker").restarts == 1


@pytest.mark.mounts
def test_a_store_that_closed_its_data_is_started_anew_once_there_is_room(run, tmp_path: Path):
    """Weaviate makes its shards read-only on a full disk, and never looks again: only a new start opens them."""
    with mounted(tmp_path / "disk", DISK_MIB) as disk:
        running = run({"store": "exec sleep 1000"}, on=disk, closes_below_share=0.3, opens_from_share=0.5)
        _kept(running)
        before = running.servers()
        filler = Filler(disk)

        def anew() -> bool:
            return running.state("store") == "running" and running.servers() != before

        for _ in range(TRIES):  # a supervisor that stood still meanwhile has not seen that the disk was full
            filler.leave(60 << 20)
            time.sleep(1.0)  # several ticks: it goes on serving reads meanwhile
            assert running.servers() == before
            filler.free()
            if _happens(anew):
                return
        raise AssertionError("it was not started anew")
