"""Why a server stopped, in one sentence: from its exit code, its last words and the disk."""

import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from memsluice.deployment.space import GIB, LOW_BYTES, MIB, RESUME_BYTES, SCARCE_BYTES, STOP_BYTES, Room, RoomState
from memsluice.devstack.endings import OUT_OF_ROOM, last_words, why_ended, why_silent

PLENTY = Room(Path("/home"), 500 * GIB, 1_000 * GIB)


@pytest.mark.parametrize(
    ("code", "words", "told"),
    [
        (1, b"java.io.IOException: No space left on device\n", OUT_OF_ROOM),
        (1, b'{"level":"fatal","msg":"write wal: no space left on device"}\n', OUT_OF_ROOM),
        (1, b"ok\nbind: address already in use\nbye\n", "a port that it needs is taken"),
        (1, b"Terminating due to java.lang.OutOfMemoryError: Java heap space\n", "out of memory"),
        (-signal.SIGKILL, b"", "killed by signal 9, SIGKILL"),
        (-signal.SIGSEGV, b"", "killed by signal 11, SIGSEGV"),
        (3, b"starting\nERROR the store is broken\ngood bye\n", "exit code 3: ERROR the store is broken"),
        (3, b"starting\ngood bye\n", "exit code 3: good bye"),
        (7, b"", "exit code 7"),
    ],
)
def test_an_end_is_told_by_what_ended_it(code: int, words: bytes, told: str) -> None:
    """Exit codes and signals are named, and of a log the line that says most."""
    assert told in why_ended(code, words, PLENTY)


def test_a_full_disk_is_named_though_the_log_could_not_be_written() -> None:
    """A server that cannot write has no last words: what the disk says then counts, unless the server ended well."""
    full = Room(Path("/home"), 0, GIB)
    assert why_ended(1, b"", full).startswith(OUT_OF_ROOM)
    assert why_ended(-signal.SIGBUS, b"", full).startswith(OUT_OF_ROOM)
    assert not why_ended(0, b"", full).startswith(OUT_OF_ROOM)
    assert not why_ended(1, b"", PLENTY).startswith(OUT_OF_ROOM)


def test_the_words_are_those_of_this_start(tmp_path: Path) -> None:
    """A log goes on over restarts: what ended the process before is not why this one ended."""
    log = tmp_path / "kafka.log"
    log.write_bytes(b"no space left on device\n")
    begins = log.stat().st_size
    assert why_ended(1, last_words(log, begins), PLENTY) == "exit code 1"
    with log.open("ab") as file:
        file.write(b"ERROR another one\n")
    assert "another one" in why_ended(1, last_words(log, begins), PLENTY)
    log.write_bytes(b"cut\n")  # the supervisor cut it meanwhile
    assert last_words(log, begins) == b""
    assert last_words(tmp_path / "none") == b""


def test_a_process_that_was_stopped_by_a_signal_is_told_apart() -> None:
    """What lets it go on is another command than what mends a server that hangs by itself."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        try:
            seen = psutil.Process(process.pid)
            assert "does not answer" in why_silent(seen)
            seen.suspend()
            while seen.status() != psutil.STATUS_STOPPED:
                pass
            assert f"kill -CONT {process.pid}" in why_silent(seen)
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("free", "total", "state"),
    [
        (LOW_BYTES, 20 * GIB, RoomState.OK),
        (LOW_BYTES - 1, 20 * GIB, RoomState.LOW),
        (49 * GIB, 1_000 * GIB, RoomState.LOW),
        (29 * GIB, 1_000 * GIB, RoomState.SCARCE),
        (SCARCE_BYTES - 1, 20 * GIB, RoomState.SCARCE),
        (0, 0, RoomState.SCARCE),
    ],
)
def test_room_is_judged_by_bytes_and_by_share(free: int, total: int, state: RoomState) -> None:
    """On a large disk the store refuses writes with many GiB left; on a small one a share of it is nothing."""
    assert Room(Path("/home"), free, total).state is state


def test_what_stops_for_want_of_room_does_not_start_at_the_same_line() -> None:
    """Between stopping and starting lies a margin: a broker that flaps at the threshold would serve nobody."""
    assert STOP_BYTES < RESUME_BYTES
    for free in (STOP_BYTES, RESUME_BYTES - 1):
        room = Room(Path("/home"), free, GIB)
        assert (room.too_little, room.enough_again) == (False, False)
    assert Room(Path("/home"), STOP_BYTES - MIB, GIB).too_little
    assert Room(Path("/home"), RESUME_BYTES, GIB).enough_again
