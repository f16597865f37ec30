"""One interpreter for the Python blocks of a page, which build on each other: what they import is imported once, and
most of it by the server of preloaded processes.

As a program it runs in the folder of its argument, reads blocks from standard input, a JSON string a line, and prints
after each a line that says how it ended.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.preloaded.client import Preloaded
from tests.preloaded.serving import Server

END = "\x00ended "
HANG_GUARD_S = 900.0


class Interpreter:
    """The parent's side. ``run`` returns what one block printed."""

    def __init__(self, process: Preloaded, given: IO[str], printed: IO[str], errors: Path) -> None:
        self._process, self._given, self._printed, self._errors = process, given, printed, errors

    def run(self, text: str) -> "subprocess.CompletedProcess[str]":
        """Run a block after those before it; the exit code is 1 where it raised, -9 where it hung and was killed."""
        guard = threading.Timer(HANG_GUARD_S, self._process.send_signal, [signal.SIGKILL])
        guard.start()
        try:
            return self._ran(text)
        finally:
            guard.cancel()

    def _ran(self, text: str) -> "subprocess.CompletedProcess[str]":
        self._given.write(json.dumps(text) + "\n")
        self._given.flush()
        said = ""
        for line in self._printed:
            before, ended, code = line.partition(END)
            said += before
            if ended:
                return subprocess.CompletedProcess([], int(code), said, self._errors.read_text())
        return subprocess.CompletedProcess([], self._process.wait(), said, self._errors.read_text())


@contextmanager
def interpreter(preloaded: Server, folder: Path, environment: Mapping[str, str]) -> Iterator[Interpreter]:
    """Run an interpreter in a folder until the block ends."""
    (its_input, given), (printed, its_output) = os.pipe(), os.pipe()
    with tempfile.NamedTemporaryFile() as errors, os.fdopen(printed) as read:
        streams = (its_input, its_output, errors.fileno())
        process = Preloaded(preloaded.socket, [str(folder)], environment, streams, program=__file__)
        os.close(its_input)
        os.close(its_output)
        try:
            with os.fdopen(given, "w") as write:
                yield Interpreter(process, write, read, Path(errors.name))
        finally:
            process.wait()


def main() -> None:
    """Run what comes in, in one namespace."""
    os.chdir(sys.argv[1])
    sys.path[0] = ""  # as with `python -c`: the folder it runs in, not this file's
    space: dict[str, object] = {"__name__": "__main__"}
    for line in sys.stdin:
        code = 0
        try:
            exec(json.loads(line), space)  # noqa: S102 - blocks of our own pages
        except BaseException:
            traceback.print_exc()
            code = 1
        print(f"{END}{code}", flush=True)


if __name__ == "__main__":
    main()
