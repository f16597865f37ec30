"""A worker that failed on a full disk begins anew once there is room; any other failure ends it."""

from pathlib import Path

import pytest
from structlog.testing import capture_logs
from tests.devstack.small_disk import Filler, mounted

from memsluice.cli import work
from memsluice.deployment.home import Home

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
