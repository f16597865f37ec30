"""Processes recognised by pid *and* create time, so that a recycled pid is never signalled."""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import psutil

CREATE_TIME_TOLERANCE_S = 0.05
"""The kernel counts start times in ticks of 10 ms; anything further apart is another process."""


@dataclass(frozen=True, slots=True)
class ProcessId:
    """A process, named beyond doubt. ``create_time`` in Unix seconds."""

    pid: int
    create_time: float

    @classmethod
    def of(cls, pid: int) -> "ProcessId":
        """Return the identity of a live process. Raises psutil.NoSuchProcess."""
        return cls(pid, psutil.Process(pid).create_time())


def find(identity: ProcessId | None) -> psutil.Process | None:
    """Return the process if it is still that very one and not a zombie, else None."""
    if identity is None:
        return None
    try:
        process = psutil.Process(identity.pid)
        if abs(process.create_time() - identity.create_time) > CREATE_TIME_TOLERANCE_S:
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
