"""The process that owns the servers: ``python -m memsluice.devstack.supervisor``.

It reads a :class:`StackPlan` as one line from standard input, starts the servers and stays. Three rules keep anything
from being left behind:

* Until the starter has written the line ``keep``, the end of standard input means that the starter died: everything
  is stopped again.
* The kernel sends SIGTERM to the servers when the supervisor dies, however it dies (PR_SET_PDEATHSIG).
* SIGTERM stops the servers in reverse order, each with its grace period, then SIGKILL.

A server that dies is started again after a back-off, at most :data:`RESTARTS_MAX` times within
:data:`RESTART_WINDOW_S`; after that it is reported as failed and stays down. Logs are cut at :data:`LOG_BYTES_MAX`.
"""

import contextlib
import ctypes
import os
import select
import shutil
import signal
import subprocess
import time
from collections import deque
from pathlib import Path

from memsluice.deployment.paths import write_private
from memsluice.devstack.processes import ProcessId
from memsluice.devstack.services import Service, ServiceReport, StackPlan, StackReport

RESTARTS_MAX = 5
RESTART_WINDOW_S = 600.0
BACK_OFF_S = (0.5, 1.0, 2.0, 4.0, 8.0)
TICK_S = 0.2
LOG_BYTES_MAX = 16 * 1024 * 1024
PLAN_BYTES_MAX = 1024 * 1024
PR_SET_PDEATHSIG = 1


def _die_with_parent(parent: int) -> None:
    """Run in the child before exec: ask the kernel for SIGTERM when the supervisor is gone."""
    with contextlib.suppress(OSError, AttributeError):  # only Linux has prctl
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    if os.getppid() != parent:
        os._exit(1)


class Child:
    """One server: its process, its report, its restarts."""

    def __init__(self, service: Service) -> None:
        self.service = service
        self.report = ServiceReport(state="starting")
        self._process: subprocess.Popen[bytes] | None = None
        self._starts: deque[float] = deque(maxlen=RESTARTS_MAX)
        self._due = 0.0

    def start(self) -> None:
        """Start the process, its output appended to its log."""
        parent = os.getpid()
        with Path(self.service.log).open("ab") as log:
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
        self.report = self.report.model_copy(
            update={"state": "running", "pid": identity.pid, "create_time": identity.create_time}
        )

    def tick(self, now: float, restart: bool) -> bool:
        """Notice an exit, or start again when due. Return whether the report changed. ``now`` in monotonic seconds."""
        if self.report.state == "running" and self._process is not None:
            code = self._process.poll()
            if code is None:
                return False
            self._note_exit(now, code, restart)
            return True
        if self.report.state == "restarting" and now >= self._due:
            self._starts.append(now)
            self.start()
            self.report.restarts += 1
            return True
        return False

    def _note_exit(self, now: float, code: int, restart: bool) -> None:
        recent = [start for start in self._starts if now - start < RESTART_WINDOW_S]
        allowed = restart and len(recent) < RESTARTS_MAX
        self.report = ServiceReport(
            state="restarting" if allowed else "failed", restarts=self.report.restarts, exit_code=code
        )
        self._due = now + BACK_OFF_S[min(len(recent), len(BACK_OFF_S) - 1)]

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
        self.report = ServiceReport(state="stopped", restarts=self.report.restarts, exit_code=code)

    def rotate_log(self) -> None:
        """Keep one older copy of a log that has grown too long. The server appends, so cutting it is safe."""
        log = Path(self.service.log)
        if log.stat().st_size > LOG_BYTES_MAX:
            shutil.copyfile(log, log.with_suffix(".log.1"))
            log.with_suffix(".log.1").chmod(0o600)
            os.truncate(log, 0)


class Supervisor:
    """Runs a plan until SIGTERM, or until the starter dies before it said ``keep``."""

    def __init__(self, plan: StackPlan, pending: bytes) -> None:
        self._run_file = Path(plan.run_file)
        self._children = [Child(service) for service in plan.services]
        self._pending = pending
        self._kept = False
        self._ended = False

    def run(self) -> None:
        """Start, watch, stop."""
        signal.signal(signal.SIGTERM, lambda *_: self._end())
        for ignored in (signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(ignored, signal.SIG_IGN)
        try:
            self._report()  # before the first child, so that there is no moment at which one is unknown
            for child in self._children:
                child.start()
                self._report()
            while not self._ended:
                self._wait()
                changes = [child.tick(time.monotonic(), self._kept) for child in self._children]
                for child in self._children:
                    child.rotate_log()
                if any(changes):
                    self._report()
        finally:
            for child in reversed(self._children):
                child.stop()
            self._run_file.unlink(missing_ok=True)

    def _end(self) -> None:
        self._ended = True

    def _wait(self) -> None:
        """Sleep one tick, listening to the starter until it has said ``keep``."""
        if self._kept:
            time.sleep(TICK_S)
            return
        ready, _, _ = select.select([0], [], [], TICK_S)
        if ready:
            chunk = os.read(0, 64)
            self._pending += chunk
            if b"keep\n" in self._pending:
                self._kept = True
                self._report()
            elif not chunk:
                self._ended = True

    def _report(self) -> None:
        own = ProcessId.of(os.getpid())
        services = {child.service.name: child.report for child in self._children}
        report = StackReport(pid=own.pid, create_time=own.create_time, kept=self._kept, services=services)
        write_private(self._run_file, report.model_dump_json(indent=1))


def _read_plan() -> tuple[StackPlan, bytes]:
    """Read the plan's line from standard input; return it and what came after it."""
    text = b""
    while b"\n" not in text:
        chunk = os.read(0, 65536)
        text += chunk
        if not chunk or len(text) > PLAN_BYTES_MAX:
            raise SystemExit("supervisor: no plan on standard input (it is started by `memsluice stack up`)")
    line, rest = text.split(b"\n", 1)
    return StackPlan.model_validate_json(line), rest


def main() -> None:
    """Entry point of the supervisor process."""
    os.umask(0o077)
    plan, rest = _read_plan()
    Supervisor(plan, rest).run()


if __name__ == "__main__":
    main()
