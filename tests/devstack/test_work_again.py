"""A worker that failed on a full disk begins anew once there is room; any other failure ends it."""

import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.devstack.small_disk import Filler, mounted

from memsluice.cli import work
from memsluice.deployment.home import Home
from memsluice.runtimes.kafka.worker import EXIT_FAILED, EXIT_HUNG

DISK_MIB = 260


@pytest.mark.mounts
def test_a_worker_that_failed_on_a_full_disk_waits_for_room_and_begins_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same command line, in the same process, so that who started it sees no end; with growing pauses, and two
    lines of the log. Until there is room it does nothing."""
    begun: list[list[str]] = []
    pauses: list[float] = []
    with mounted(tmp_path / "disk", DISK_MIB) as disk:
        filler = Filler(disk)
        filler.leave(0)

        def sleep(seconds: float) -> None:
            assert begun == []
            pauses.append(seconds)
            if len(pauses) == 6:
                filler.free()

        monkeypatch.setattr(work.time, "sleep", sleep)
        monkeypatch.setattr(work.os, "execv", lambda _program, words: begun.append(words))
        monkeypatch.setattr(work.sys, "orig_argv", ["python", "-m", "memsluice.cli.main", "work", "seal"])
        with capture_logs() as lines:
            work._again_once_there_is_room(Home.at(disk / "home"))
    assert begun == [[work.sys.executable, "-m", "memsluice.cli.main", "work", "seal"]]
    assert pauses == [1.0, 2.0, 4.0, 8.0, 15.0, 15.0]
    assert [line["log_level"] for line in lines] == ["error", "warning"]


def test_a_worker_that_failed_with_room_on_the_disk_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A failure that is none of the disk's is told by the exit code, and not repeated in a loop."""
    begun: list[list[str]] = []
    monkeypatch.setattr(work.os, "execv", lambda _program, words: begun.append(words))
    work._again_once_there_is_room(Home.at(tmp_path))
    assert begun == []


@pytest.mark.mounts
def test_a_worker_that_hung_on_a_full_disk_begins_anew_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its threads hang: only a fresh process can wait for room and be stopped meanwhile. One that hung with room, or
    when it was told to stop, ends."""
    begun: list[list[str]] = []
    monkeypatch.setattr(work.os, "execv", lambda _program, words: begun.append(words))
    with mounted(tmp_path / "disk", DISK_MIB) as disk:
        place = Home.at(disk / "home")
        work._again_if_cut_off_on_a_full_disk(place, EXIT_FAILED)
        Filler(disk).leave(0)
        work._again_if_cut_off_on_a_full_disk(place, EXIT_HUNG)
        assert begun == []
        work._again_if_cut_off_on_a_full_disk(place, EXIT_FAILED)
    assert len(begun) == 1


HANGS = """
import os, sys, time
from memsluice.runtimes.kafka.worker import _Watchdog
if "anew" in sys.argv:
    print("anew", flush=True)
    sys.exit(3)
def on_cut_off(code):
    print(code, flush=True)
    if "fails" in sys.argv:
        raise OSError
    os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:], "anew"])
_Watchdog(0.1, 70, on_cut_off)
while True:
    time.sleep(1)
"""


@pytest.mark.parametrize(("words", "said", "code"), [((), ["70", "anew"], 3), (("fails",), ["70"], EXIT_FAILED)])
def test_a_worker_that_is_cut_off_may_begin_anew(words: tuple[str, ...], said: list[str], code: int) -> None:
    """From beside the thread that hangs; where that fails the process ends all the same, with its code."""
    run = subprocess.run(
        [sys.executable, "-c", HANGS, *words], capture_output=True, text=True, check=False, timeout=600
    )
    assert [line for line in run.stdout.splitlines() if line in {"70", "anew"}] == said
    assert run.returncode == code
