"""An HTTP service as a process of its own, on the real stack."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.command import PREFIX
from tests.patience import HANG_S

from memsluice.deployment.connection import FILE_VARIABLE

LATE = ("did not answer", "cannot be read from the broker")
"""What a service says that does not start because the broker is late: whoever runs it starts it again."""


@contextmanager
def running(command: str, begins: str, home: Path, connection: Path) -> Iterator[str]:
    """Give the address that a service tells behind ``begins``, and stop it as an operator would."""
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(PREFIX)},
        "MEMSLUICE_HOME": str(home),
        FILE_VARIABLE: str(connection),
    }
    words = [sys.executable, "-m", "memsluice.cli.main", command, "--port", "0"]
    deadline = time.monotonic() + HANG_S
    while True:
        process = subprocess.Popen(words, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        address, said = _address(process, begins)
        assert process.stderr is not None
        if address or time.monotonic() > deadline or not any(word in said for word in LATE):
            break
        process.wait(HANG_S)
        process.stderr.close()
    try:
        if not address:
            pytest.fail(said)
        yield address
    finally:
        process.terminate()
        code = process.wait(HANG_S)
        process.stderr.close()
    assert code == 0


def _address(process: "subprocess.Popen[str]", begins: str) -> tuple[str, str]:
    """Return the address, "" where the process ends without one, and what it said until then."""
    said = ""
    for line in process.stderr or ():
        said += line
        if line.startswith(begins):
            return line.removeprefix(begins).strip(), said
    return "", said
