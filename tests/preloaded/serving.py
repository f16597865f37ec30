"""The server of one session of tests, and what is started by it: workers, and the command on a page's PATH."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from tests.preloaded import client

TOP = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Server:
    """A server that runs, and the folder of its socket."""

    folder: Path

    @property
    def socket(self) -> str:
        """Where it listens."""
        return str(self.folder / "socket")

    def launch(self, words: Sequence[str], variables: Mapping[str, str], log: IO[bytes]) -> client.Preloaded:
        """Start ``memsluice`` with these words; what it says goes to ``log``."""
        with Path(os.devnull).open("rb") as nothing:
            return client.Preloaded(self.socket, words, variables, (nothing.fileno(), log.fileno(), log.fileno()))

    def variables(self, path: str) -> dict[str, str]:
        """Return the variables under which the command ``memsluice`` is one of this server's; ``path`` is PATH."""
        return {"PATH": f"{self.folder}:{path}", client.SOCKET_VARIABLE: self.socket}


@contextmanager
def serving() -> Iterator[Server]:
    """Run a server until the block ends."""
    with tempfile.TemporaryDirectory(prefix="memsluice-pre-") as folder:
        server = Server(Path(folder))
        command = server.folder / "memsluice"
        command.write_text(f"#!/bin/sh\nexec '{sys.executable}' -IS '{client.__file__}' \"$@\"\n")
        command.chmod(0o700)
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.preloaded.server", server.socket],
            cwd=TOP,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == b"ready\n", "the server of preloaded processes did not start"
        try:
            yield server
        finally:
            process.stdin.close()
            assert process.wait(240) == 0
