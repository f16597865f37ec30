"""The processor time of processes and of their threads, as the kernel counts it, and how long cores were idle."""

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from memsluice.clock import wall_ms
from memsluice.errors import StackError

PROC = Path("/proc")
TICKS = os.sysconf("SC_CLK_TCK")
"""In a second."""
EVERY_S = 0.25
IDLE = "idle"
"""Stands among the processes for the cores' idle time."""


def cpu_s(stat: str) -> float:
    """Return user and system seconds from ``/proc/PID/stat``: of all threads, also of those that have ended.

    The name, second in the line, may have spaces and brackets in it.
    """
    fields = stat.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def idle_s(text: str, cores: set[int]) -> float:
    """Return how long some cores had nothing to do, from ``/proc/stat``; waiting for a disk is nothing to do."""
    lines = [line.split() for line in text.splitlines()]
    return sum((int(line[4]) + int(line[5])) / TICKS for line in lines if line[0] in {f"cpu{core}" for core in cores})


@dataclass(frozen=True, slots=True)
class ThreadTime:
    """A thread's name, as the kernel has it, and its processor seconds."""

    name: str
    cpu_s: float


def threads_of(pid: int, proc: Path = PROC) -> dict[int, ThreadTime]:
    """Return the threads that a process has now, by number; none where it has ended."""
    found = {}
    for file in (proc / str(pid) / "task").glob("*/stat"):
        try:
            stat = file.read_text(encoding="utf-8", errors="replace")
        except (FileNotFoundError, ProcessLookupError):  # this thread ended just now
            continue
        found[int(file.parent.name)] = ThreadTime(stat[stat.index("(") + 1 : stat.rindex(")")], cpu_s(stat))
    return found


def spent(before: Mapping[int, ThreadTime], after: Mapping[int, ThreadTime]) -> dict[int, ThreadTime]:
    """Return what each thread that is there now has spent since."""
    new = ThreadTime("", 0.0)
    return {number: ThreadTime(one.name, one.cpu_s - before.get(number, new).cpu_s) for number, one in after.items()}


@dataclass(frozen=True, slots=True)
class Memory:
    """What a process occupies, in MiB."""

    resident: float
    anonymous: float
    """… of it what lies in no file: weights that are used as they lie in theirs are shared between processes."""


def memory(pid: int, proc: Path = PROC) -> Memory:
    """Return what a process occupies now. Raises StackError where that cannot be read: it may have ended."""
    try:
        lines = (proc / str(pid) / "smaps_rollup").read_text(encoding="ascii", errors="replace").splitlines()[1:]
    except OSError as error:
        raise StackError(f"the memory of process {pid} cannot be read: {error.strerror}") from None
    mib = {name: int(rest.split()[0]) / 1_024 for name, _, rest in (line.partition(":") for line in lines)}
    return Memory(mib["Rss"], mib["Anonymous"])


@dataclass(frozen=True, slots=True)
class Reading:
    """Processor seconds at one time (Unix ms), by process; the cores' idle ones among them."""

    at_ms: int
    cpu_s: Mapping[str, float]


def reading(pids: Mapping[str, int], proc: Path = PROC) -> Reading:
    """Return how it is now. Raises StackError where a process is not there."""
    at_ms = wall_ms()
    found = {IDLE: idle_s((proc / "stat").read_text(encoding="utf-8"), os.sched_getaffinity(0))}
    for name, pid in pids.items():
        try:
            found[name] = cpu_s((proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace"))
        except (FileNotFoundError, ProcessLookupError):
            raise StackError(f"{name} (process {pid}) has ended while it was measured") from None
    return Reading(at_ms, found)


def passed(readings: Sequence[Reading], began_ms: int, ended_ms: int) -> tuple[float, dict[str, float]]:
    """Return the seconds, and the processor seconds, of the shortest window of readings around a time."""
    first = next((one for one in reversed(readings) if one.at_ms <= began_ms), readings[0])
    last = next((one for one in readings if one.at_ms >= ended_ms), readings[-1])
    return (last.at_ms - first.at_ms) / 1_000, {name: now - first.cpu_s[name] for name, now in last.cpu_s.items()}


@contextmanager
def watched(pids: Mapping[str, int]) -> Iterator[list[Reading]]:
    """Read the processes now, every quarter of a second, and at the end. Raises StackError where one has ended."""
    readings, ended = [reading(pids)], threading.Event()

    def watch() -> None:
        try:
            while not ended.wait(EVERY_S):
                readings.append(reading(pids))
        except StackError:  # the last reading says it, in a thread that can do something about it
            return

    watching = threading.Thread(target=watch, name="profile-watch", daemon=True)
    watching.start()
    try:
        yield readings
    finally:
        ended.set()
        watching.join()
    readings.append(reading(pids))
