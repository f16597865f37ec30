"""A worker process of the tests, and its log."""

import signal
import subprocess
from pathlib import Path

HANG_S = 240.0
"""Guards against hangs only; nothing is measured by it."""


class Worker:
    """A worker process and its log."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path) -> None:
        self.process = process
        self.log = log

    def text(self) -> str:
        """Return what it has written so far."""
        return self.log.read_text(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def wait(self, timeout_s: float = HANG_S) -> int:
        """Wait for the end and return the exit code."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"the worker did not end:\n{self.text()[-4000:]}") from None

    def ends_within(self, seconds: float) -> bool:
        """Tell whether the process ends by itself within that time."""
        try:
            self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> int:
        """SIGTERM and wait."""
        self.signal(signal.SIGTERM)
        return self.wait()

    def kill(self) -> None:
        """SIGKILL, if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait(HANG_S)
