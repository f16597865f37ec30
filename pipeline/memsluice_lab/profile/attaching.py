"""The sampling profiler (py-spy) on processes that run: whether it may attach, and what it saw."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from memsluice.errors import ConfigError, StackError
from memsluice_lab.figures.bed import tail

PROGRAM = "py-spy"
SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
TRIED_S_MAX, ATTACHED_S_MAX, WRITTEN_S_MAX = 60, 120, 120
POLL_S = 0.1
TAIL_CHARS = 600
_SLEEPER = "print(flush=True); import time; time.sleep(600)"
_ATTACHED = "Sampling process"


@dataclass(frozen=True, slots=True)
class Profiler:
    """How py-spy is run, and how often a second it looks.

    It looks at Python's functions alone. Tried with ``--native``, it took a busy machine for itself (the burst went 5.5
    times as long), took threads that waited for busy ones, and knew no names where most of the time was.
    """

    program: str
    rate: int

    @classmethod
    def found(cls, rate: int) -> "Profiler":
        """Return the installed one. Raises ConfigError where there is none, or where it may not attach."""
        places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        program = shutil.which(PROGRAM, path=places)
        if program is None:
            raise ConfigError(f"{PROGRAM} is not installed: `make install` brings it")
        _try(program)
        return cls(program, rate)

    def command(self, pid: int, output: Path) -> list[str]:
        """Return the command that samples a process until it is interrupted; threads that wait are left out."""
        fixed = ["--format", "raw", "--threads", "--nolineno", "--rate", str(self.rate), "--output", str(output)]
        return [self.program, "record", "--pid", str(pid), *fixed]

    @contextmanager
    def on(self, pids: Mapping[str, int], folder: Path) -> Iterator[dict[str, Path]]:
        """Sample processes; their stacks are in the files that are given, once this has been left.

        Raises StackError where a sampler ends by itself.
        """
        files = {name: folder / f"{name}.folded" for name in pids}
        for file in files.values():
            file.unlink(missing_ok=True)
        with ExitStack() as closing:
            running = {
                name: closing.enter_context(_sampler(self.command(pid, files[name]), folder / f"{name}.log"))
                for name, pid in pids.items()
            }
            for name, process in running.items():
                _until_attached(name, process, folder / f"{name}.log")
            yield files
            for name, process in running.items():
                _end(name, process, folder / f"{name}.log", files[name])


def _try(program: str) -> None:
    """Attach to a process that does nothing. Raises ConfigError, which names the setting that forbids it."""
    with subprocess.Popen([sys.executable, "-c", _SLEEPER], stdout=subprocess.PIPE) as sleeper:
        assert sleeper.stdout is not None
        sleeper.stdout.readline()
        try:
            tried = subprocess.run(
                [program, "dump", "--pid", str(sleeper.pid)],
                check=False,
                capture_output=True,
                text=True,
                timeout=TRIED_S_MAX,
            )
        except subprocess.TimeoutExpired:
            raise ConfigError(f"{PROGRAM} did not attach to a process of this user within {TRIED_S_MAX} s") from None
        finally:
            sleeper.kill()
    if tried.returncode != 0:
        scope = SCOPE.read_text(encoding="ascii").strip() if SCOPE.exists() else "not there"
        said = " ".join(tried.stderr.split())[-TAIL_CHARS:]
        raise ConfigError(
            f"{PROGRAM} may not attach to a process of this user ({said}). kernel.yama.ptrace_scope is {scope}: set it "
            "by `sysctl kernel.yama.ptrace_scope=0`, or run this as root; a container needs --cap-add SYS_PTRACE"
        )


@contextmanager
def _sampler(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _until_attached(name: str, process: subprocess.Popen[bytes], log: Path) -> None:
    began = time.monotonic()
    while _ATTACHED not in tail(log):
        if process.poll() is not None or time.monotonic() - began > ATTACHED_S_MAX:
            raise StackError(f"{PROGRAM} did not attach to {name}: {tail(log)}")
        time.sleep(POLL_S)


def _end(name: str, process: subprocess.Popen[bytes], log: Path, output: Path) -> None:
    if process.poll() is not None:
        raise StackError(f"{PROGRAM} on {name} ended while it was measured: {tail(log)}")
    process.send_signal(signal.SIGINT)
    try:
        code = process.wait(WRITTEN_S_MAX)
    except subprocess.TimeoutExpired:
        raise StackError(f"{PROGRAM} on {name} did not end within {WRITTEN_S_MAX} s") from None
    if code != 0 or not output.exists() or not output.stat().st_size:
        raise StackError(f"{PROGRAM} saw nothing of {name} ({code}): {tail(log)}")
