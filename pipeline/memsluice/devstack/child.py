"""One server of the stack under its supervisor: started, watched, started again, stopped.

A server that dies is started again after a back-off, at most :data:`RESTARTS_MAX` times within
:data:`RESTART_WINDOW_S`; after that it is reported as failed and stays down. One that ended for want of room on the
disk is another matter: it is started again once there is room, however often and long that takes.
"""

import contextlib
import ctypes
import os
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final

from memsluice.deployment.space import Room
from memsluice.devstack.endings import OUT_OF_ROOM, last_words, why_ended
from memsluice.devstack.processes import ProcessId
from memsluice.devstack.services import Service, ServiceReport

RESTARTS_MAX: Final = 5
RESTART_WINDOW_S: Final = 600.0
BACK_OFF_S: Final = (0.5, 1.0, 2.0, 4.0, 8.0)
ROOM_PAUSES_S: Final = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Least time between two starts of a server that ended for want of room; the last one for every further start."""
LOG_BYTES_MAX: Final = 16 * 1024 * 1024
PR_SET_PDEATHSIG: Final = 1
RUNNING, RESTARTING, NO_ROOM, FAILED = "running", "restarting", "waiting for room", "failed"


def _die_with_parent(parent: int) -> None:
    """Run in the child before exec: ask the kernel for SIGTERM when the supervisor is gone."""
    with contextlib.suppress(OSError, AttributeError):  # only Linux has prctl
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if os.getppid() != parent:
        os._exit(1)


class Child:
    """One server: its process, its report, its restarts. ``room`` measures the disk; None where that fails."""

    def __init__(self, service: Service, room: Callable[[], Room | None]) -> None:
        self.service = service
        self.report = ServiceReport(state="starting")
        self._room = room
        self._process: subprocess.Popen[bytes] | None = None
        self._starts: deque[float] = deque(maxlen=RESTARTS_MAX)
        self._due = 0.0
        self._log = Path(service.log)
        self._log_begins = 0
        self._ended_for_room = 0
        """Ends for want of room, one after the other; a start that lasted begins anew."""
        self._pinched = False
        """Whether the disk was so full that the server may have closed its data to writes, for good."""

    def start(self) -> None:
        """Start the process, its output appended to its log; where not even that can be opened, to nowhere."""
        parent = os.getpid()
        with contextlib.ExitStack() as opened:
            try:
                log = opened.enter_context(self._log.open("ab"))
                self._log_begins = self._log.stat().st_size
            except OSError:
                log = opened.enter_context(Path(os.devnull).open("ab"))
            self._process = subprocess.Popen(
                self.service.command,
                env=self.service.environment,
                cwd=self.service.directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: _die_with_parent(parent),  # noqa: PLW1509 - this process has one thread
            )
        identity = ProcessId.of(self._process.pid)
        self._pinched = False
        self.report = self.report.model_copy(update={"state": RUNNING, **asdict(identity)})

    def tick(self, now: float, restart: bool) -> bool:
        """Notice an exit, or start again when due. Return whether the report changed. ``now`` in monotonic seconds."""
        if self.report.state == RUNNING and self._process is not None:
            code = self._process.poll()
            if code is None:
                return restart and self._mind_the_room(now)
            self._note_exit(now, code, restart)
            return True
        if self.report.state == NO_ROOM and now >= self._due:
            room = self._room()
            if room is None or room.enough_again:
                return self._again(now)
        if self.report.state == RESTARTING and now >= self._due:
            return self._again(now)
        return False

    def _again(self, now: float) -> bool:
        try:
            self.start()
        except OSError as error:  # no memory for a process, no file left to open: as if it had ended at once
            self._due = now + BACK_OFF_S[-1]
            self.report = self.report.model_copy(update={"why": f"could not be started: {error}"})
            return True
        self.report.restarts += 1
        return True

    def _note_exit(self, now: float, code: int, restart: bool) -> None:
        why = why_ended(code, last_words(self._log, self._log_begins), self._room())
        if restart and why.startswith(OUT_OF_ROOM):
            self._wait_for_room(now, code, why)
            return
        recent = [start for start in self._starts if now - start < RESTART_WINDOW_S]
        allowed = restart and len(recent) < RESTARTS_MAX
        self._note(RESTARTING if allowed else FAILED, code, why)
        self._due = now + BACK_OFF_S[min(len(recent), len(BACK_OFF_S) - 1)]
        if allowed:
            self._starts.append(self._due)

    def _wait_for_room(self, now: float, code: int | None, why: str) -> None:
        self._due = now + ROOM_PAUSES_S[min(self._ended_for_room, len(ROOM_PAUSES_S) - 1)]
        self._ended_for_room += 1
        self._note(NO_ROOM, code, why)

    def _note(self, state: str, code: int | None, why: str) -> None:
        self.report = ServiceReport(state=state, restarts=self.report.restarts, exit_code=code, why=why)

    def _mind_the_room(self, now: float) -> bool:
        """Stop a server that must not run into a full disk; start one anew that closed its data on a full one."""
        room = self._room()
        if room is None:
            return False
        if self.service.stop_when_full and room.too_little:
            self.stop()
            self._wait_for_room(now, self.report.exit_code, f"{OUT_OF_ROOM}: stopped before a write fails ({room})")
            return True
        self._pinched = self._pinched or room.share < self.service.closes_below_share
        if self._pinched and room.enough_again and room.share >= self.service.opens_from_share:
            self.stop()
            self._note(RESTARTING, None, "it had closed its data to writes on a full disk, and opens it anew")
            self._due = now
            return True
        if now - self._due > RESTART_WINDOW_S:  # it has lasted
            self._ended_for_room = 0
        return False

    def stop(self) -> None:
        """SIGTERM, the grace period, SIGKILL; returns when the process is gone."""
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(self.service.grace_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        code = self._process.returncode if self._process is not None else None
        self._note("stopped", code, "")

    def rotate_log(self) -> None:
        """Keep one older copy of a log that has grown too long. The server appends, so cutting it is safe.

        On a full disk the copy fails, and the log is cut all the same: its end is what an operator asks for, and that
        is kept in the report.
        """
        with contextlib.suppress(OSError):
            if self._log.stat().st_size <= LOG_BYTES_MAX:
                return
            older = self._log.with_suffix(".log.1")
            try:
                shutil.copyfile(self._log, older)
                older.chmod(0o600)
            except OSError:
                older.unlink(missing_ok=True)
            os.truncate(self._log, 0)
            self._log_begins = 0
