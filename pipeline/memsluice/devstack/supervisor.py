"""The process that owns the servers: ``python -m memsluice.devstack.supervisor``.

It reads a :class:`StackPlan` as one line from standard input, starts the servers and stays. Three rules keep anything
from being left behind:

* Until the starter has written the line ``keep``, the end of standard input means that the starter died: everything
  is stopped again.
* The kernel sends SIGTERM to the servers when the supervisor dies, however it dies (PR_SET_PDEATHSIG).
* SIGTERM stops the servers in reverse order, each with its grace period, then SIGKILL.

A server that dies is started again (:mod:`memsluice.devstack.child`). A full disk ends the servers and not the
supervisor: what it cannot write it writes later, and it starts them again once there is room.
"""

import contextlib
import os
import select
import signal
import time
from dataclasses import asdict
from pathlib import Path

from memsluice.deployment.paths import write_private
from memsluice.deployment.space import Room
from memsluice.devstack.child import Child
from memsluice.devstack.processes import ProcessId
from memsluice.devstack.services import StackPlan, StackReport

TICK_S = 0.2
PLAN_BYTES_MAX = 1024 * 1024
REPORT_BYTES = 4096
"""The report is padded to whole blocks, so that on a full disk it can be written over in place."""
REPORT_AGAIN_S = 5.0
"""How often a report that could not be written is tried again."""


class Supervisor:
    """Runs a plan until SIGTERM, or until the starter dies before it said ``keep``."""

    def __init__(self, plan: StackPlan, pending: bytes) -> None:
        self._run_file = Path(plan.run_file)
        self._children = [Child(service, self._room) for service in plan.services]
        self._unwritten_s: float | None = None
        """When the report that could not be written is to be tried again; None where the file is as it should be."""
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
                due = self._unwritten_s is not None and time.monotonic() >= self._unwritten_s
                if any(changes) or due:
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

    def _room(self) -> Room | None:
        """Return the room of the disk on which the home lies; None where it cannot be told."""
        try:
            return Room.of(self._run_file.parent)
        except OSError:
            return None

    def _report(self) -> None:
        """Write the run file; on a disk that takes no new file, over the one that is there."""
        own = ProcessId.of(os.getpid())
        services = {child.service.name: child.report for child in self._children}
        report = StackReport(**asdict(own), kept=self._kept, services=services)
        text = report.model_dump_json(indent=1)
        padded = text + " " * (-len(text.encode()) % REPORT_BYTES)
        self._unwritten_s = None
        try:
            write_private(self._run_file, padded)
        except OSError:
            with contextlib.suppress(OSError):
                _write_over(self._run_file, padded.encode())
            self._unwritten_s = time.monotonic() + REPORT_AGAIN_S


def _write_over(path: Path, text: bytes) -> None:
    """Write over a file's own blocks, which takes no room. A reader that comes in between asks again."""
    file = os.open(path, os.O_WRONLY)
    try:
        os.pwrite(file, text, 0)
        os.ftruncate(file, len(text))
    finally:
        os.close(file)


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
