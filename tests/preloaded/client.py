"""Asks the server for a process, and stands for it: as a class, or, run as a script, as the command ``memsluice``.

Needs nothing but the standard library, and starts in a fiftieth of a second with ``python -IS``.
"""

import array
import json
import os
import signal
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from subprocess import TimeoutExpired

SOCKET_VARIABLE = "MEMSLUICE_TEST_PRELOADED"
"""Path of the server's socket, for the script."""
COMMAND = "memsluice"
ENDED_BYTES = 4


class Preloaded:
    """A process that runs ``memsluice``, or the Python file ``program``, as ``subprocess.Popen`` shows one."""

    def __init__(
        self,
        path: str,
        words: Sequence[str],
        environment: Mapping[str, str],
        descriptors: tuple[int, int, int],
        program: str = COMMAND,
    ) -> None:
        self._asked = socket.socket(socket.AF_UNIX)
        self._asked.connect(path)
        asked = {"program": program, "words": list(words), "environment": dict(environment), "folder": str(Path.cwd())}
        said = json.dumps(asked).encode()
        passed = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
        self._asked.sendmsg([len(said).to_bytes(4, "big")], passed)
        self._asked.sendall(said)
        self.pid = int.from_bytes(self._exactly(4), "big")
        self.returncode: int | None = None

    def _exactly(self, number: int) -> bytes:
        found = b""
        while len(found) < number and (more := self._asked.recv(number - len(found))):
            found += more
        return found

    def poll(self) -> int | None:
        """Return the exit code, or None while it runs."""
        if self.returncode is None:
            self._asked.setblocking(False)
            with suppress(BlockingIOError):
                self._ended()
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code. Raises TimeoutExpired."""
        if self.returncode is None:
            self._asked.settimeout(timeout)
            try:
                self._ended()
            except TimeoutError:
                raise TimeoutExpired(COMMAND, timeout or 0) from None
        assert self.returncode is not None
        return self.returncode

    def _ended(self) -> None:
        found = self._asked.recv(ENDED_BYTES)  # four bytes are one packet of a local socket
        self.returncode = int.from_bytes(found, "big", signed=True) if found else -signal.SIGKILL
        self._asked.close()

    def send_signal(self, number: int) -> None:
        """Send a signal to it while it runs."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        """Ask it to end."""
        self.send_signal(signal.SIGTERM)


def command() -> int:
    """Run the command of this process's arguments in its place; return the exit code."""
    process = Preloaded(os.environ[SOCKET_VARIABLE], sys.argv[1:], os.environ, (0, 1, 2))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda caught, _frame: os.kill(process.pid, caught))
    code = process.wait()
    return code if code >= 0 else 128 - code  # as a shell says it


if __name__ == "__main__":
    sys.exit(command())
