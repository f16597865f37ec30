"""Processes recognised by pid *and* start, so that a recycled pid is never signalled.

The start is counted from the machine's own: a create time in Unix seconds is another one after each step of the clock,
and a running stack would be taken for one that is gone.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psutil

START_TOLERANCE_S = 0.05
"""The kernel counts start times in ticks of 10 ms; anything further apart is another process."""
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process, named beyond doubt. ``started_s``: in seconds after the machine's start ``boot`` ("" where the machine
    does not tell one from another)."""

    pid: int
    started_s: float
    boot: str = ""

    @classmethod
    def of(cls, pid: int) -> "ProcessId":
        """Return the identity of a live process. Raises psutil.NoSuchProcess."""
        return cls(pid, started_s(psutil.Process(pid)), _boot())


def started_s(process: psutil.Process) -> float:
    """Return when a process started, in seconds after the machine did. Raises psutil.NoSuchProcess."""
    while True:
        booted = psutil.boot_time()
        started = process.create_time() - booted
        if psutil.boot_time() == booted:  # both move when the clock is set
            return started


def _boot() -> str:
    try:
        return BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def find(identity: ProcessId | None) -> psutil.Process | None:
    """Return the process if it is still that very one and not a zombie, else None."""
    if identity is None:
        return None
    try:
        process = psutil.Process(identity.pid)
        if identity.boot != _boot() or abs(started_s(process) - identity.started_s) > START_TOLERANCE_S:
            return None
        return None if process.status() == psutil.STATUS_ZOMBIE else process
    except psutil.NoSuchProcess:
        return None


def stop(identities: Iterable[ProcessId | None], grace_s: float, clock: Callable[[], float] = time.monotonic) -> int:
    """Send SIGTERM to each, wait at most ``grace_s`` seconds in all, then SIGKILL. Return how many had to be killed."""
    alive = [process for identity in identities if (process := find(identity)) is not None]
    for process in alive:
        _ignore_gone(process.terminate)
    deadline = clock() + grace_s
    _, left = psutil.wait_procs(alive, timeout=max(0.0, deadline - clock()))
    for process in left:
        _ignore_gone(process.kill)
    psutil.wait_procs(left, timeout=10)
    return len(left)


def _ignore_gone(action: Callable[[], object]) -> None:
    try:
        action()
    except psutil.NoSuchProcess:
        return
