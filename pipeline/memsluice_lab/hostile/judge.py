"""Judges one input: read as something that is written again as it was, refused by an error of the project's tree, or a
failure. Work and memory are bounded, so that what would hang or swell is a failure and not the end of the run."""

import random
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from types import FrameType
from typing import Any, NoReturn

CPU_S_MAX = 2.0
"""Processor time of one input; the costliest valid one takes some hundredths of that."""
MEMORY_BYTES_MAX = 768 * 1024 * 1024
"""How much the whole process may grow while it judges; inputs have at most 2.5 MiB."""
SHOWN_CHARS = 160


class Judgement(StrEnum):
    """What became of an input."""

    READ = "read"
    WRITTEN = "written"
    """Read, written again and read as the same."""
    REFUSED = "refused"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Target:
    """One decoder.

    ``draw`` returns a hostile input, ``read`` takes it; what it returns is None where it refuses without a word.
    ``refusals`` are the errors by which it may refuse, and no other. ``again`` writes what was read and reads that: the
    same must come back. ``parts`` is its part of the inputs.
    """

    name: str
    parts: int
    draw: Callable[[random.Random], Any]
    read: Callable[[Any], Any]
    refusals: tuple[type[Exception], ...]
    again: Callable[[Any], Any] | None = None


@dataclass(frozen=True, slots=True)
class Judged:
    """What became of one input; why it failed is never the input itself."""

    judgement: Judgement
    why: str = ""


class _OverrunError(BaseException):
    """An input took more work than any may; no decoder catches it."""


def _overrun(_number: int, _frame: FrameType | None) -> NoReturn:
    raise _OverrunError


@contextmanager
def bounded(*, memory_bytes: int = MEMORY_BYTES_MAX) -> Iterator[None]:
    """Bound what this process may take of memory, and let :func:`judge` bound the work of each input.

    Of processor time, not of the clock: what else the machine does changes no verdict. For a process's main thread.
    """
    with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123 - no file, but the kernel's word
        held = int(file.read().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    handler = signal.signal(signal.SIGVTALRM, _overrun)
    resource.setrlimit(resource.RLIMIT_AS, (held + memory_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)
        signal.signal(signal.SIGVTALRM, handler)


def judge(target: Target, given: Any, cpu_s: float = CPU_S_MAX) -> Judged:
    """Return what a target makes of an input. Bounds hold within :func:`bounded` alone."""
    guarded = signal.getsignal(signal.SIGVTALRM) is _overrun
    try:
        if guarded:
            signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
        found = target.read(given)
        if target.again is not None and found is not None and target.again(found) != found:
            return Judged(Judgement.FAILED, "what was read is written as something else")
    except target.refusals:
        return Judged(Judgement.REFUSED)
    except _OverrunError:
        return Judged(Judgement.FAILED, f"took more than {cpu_s:g} s of processor time")
    except Exception as error:  # whatever else a decoder raises is what is looked for
        return Judged(Judgement.FAILED, f"{type(error).__name__}: {str(error)[:SHOWN_CHARS]!r} {_where(error)}")
    finally:
        if guarded:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    if found is None:
        return Judged(Judgement.REFUSED)
    return Judged(Judgement.READ if target.again is None else Judgement.WRITTEN)


def _where(error: BaseException) -> str:
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    return "" if trace is None else f"in {trace.tb_frame.f_code.co_filename.rpartition('/')[2]}:{trace.tb_lineno}"
