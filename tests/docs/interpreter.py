"""One interpreter for the Python blocks of a page, which build on each other: what they import is imported once.

As a program it reads blocks from standard input, a JSON string a line, and prints after each a line that says how it
ended.
"""

import json
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

END = "\x00ended "
HANG_GUARD_S = 300.0


class Interpreter:
    """The parent's side. ``run`` returns what one block printed."""

    def __init__(self, process: "subprocess.Popen[str]", errors: Path) -> None:
        self._process, self._errors = process, errors

    def run(self, text: str) -> "subprocess.CompletedProcess[str]":
        """Run a block after those before it; the exit code is 1 where it raised, -9 where it hung and was killed."""
        guard = threading.Timer(HANG_GUARD_S, self._process.kill)
        guard.start()
        try:
            return self._ran(text)
        finally:
            guard.cancel()

    def _ran(self, text: str) -> "subprocess.CompletedProcess[str]":
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(text) + "\n")
        self._process.stdin.flush()
        said = ""
        for line in self._process.stdout:
            before, ended, code = line.partition(END)
            said += before
            if ended:
                return subprocess.CompletedProcess([], int(code), said, self._errors.read_text())
        return subprocess.CompletedProcess([], self._process.wait(), said, self._errors.read_text())


@contextmanager
def interpreter(folder: Path, environment: Mapping[str, str]) -> Iterator[Interpreter]:
    """Run an interpreter in a folder until the block ends."""
    with tempfile.NamedTemporaryFile(mode="w") as errors:
        process = subprocess.Popen(
            [sys.executable, __file__],
            cwd=folder, env=dict(environment), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
        )  # fmt: skip
        try:
            yield Interpreter(process, Path(errors.name))
        finally:
            process.communicate()


def main() -> None:
    """Run what comes in, in one namespace."""
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
