"""Runs ``memsluice``: a command whole, in this process, with errors, logging and exit code; or a worker beside it.

A process of its own costs seconds for what is the same each time, the interpreter and the imports; that every command
starts in one is what tests/cli, the demo's and the documentation's tests are for.
"""

import io
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import structlog

from memsluice import log as logs
from memsluice.cli import main
from memsluice.cli.exit_codes import ExitCode

STOPPED = (ExitCode.DONE, ExitCode.WORKER_HUNG)
"""What a worker ends with that is told to: on a busy machine it may be cut off at its bound, which loses nothing."""
PREFIX = "MEMSLUICE_"
"""How the variables begin that a command looks at; it is given those that a test names, and no others."""


@dataclass(frozen=True)
class Shown:
    """What a command printed, and what it exited with."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """The standard error on one line."""
        return " ".join(self.err.split())


@contextmanager
def logging_to(stream: io.TextIOBase) -> Iterator[None]:
    """Log as the command line does, but to a stream; everything is as it was afterwards."""
    root, error, hook, stderr = logging.getLogger(), structlog.get_config(), sys.excepthook, sys.stderr
    handlers, level = root.handlers[:], root.level
    sys.stderr = stream
    logs.configure()
    try:
        yield
    finally:
        sys.stderr, sys.excepthook = stderr, hook
        structlog.configure(**error)
        root.handlers[:] = handlers
        root.setLevel(level)


def run(
    *words: str,
    stdin: str = "",
    columns: int = 120,
    colours: bool = False,
    environment: Mapping[str, str] | None = None,
) -> Shown:
    """Run ``memsluice``; ``colours`` as on a terminal that shows them, ``stdin`` is what is typed.

    The streams refuse what no terminal could be sent (lone surrogates).
    """
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2)]
    with pytest.MonkeyPatch.context() as patch, logging_to(io.StringIO()):
        patch.setattr(sys, "argv", ["memsluice", *words])
        patch.setattr(sys, "stdin", io.StringIO(stdin))
        patch.setattr(sys, "stdout", streams[0])
        patch.setattr(sys, "stderr", streams[1])
        for name in [name for name in os.environ if name.startswith(PREFIX)]:
            patch.delenv(name)
        patch.setenv("COLUMNS", str(columns))
        patch.setenv(*(("FORCE_COLOR", "1") if colours else ("NO_COLOR", "1")))
        for name, value in (environment or {}).items():
            patch.setenv(name, value)
        try:
            main.app()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
    out, err = ((stream.flush(), stream.buffer.getvalue().decode())[1] for stream in streams)  # type: ignore[attr-defined]
    return Shown(code, out, err)


@contextmanager
def working(home: str) -> Iterator[None]:
    """Run all stages in one worker until the block ends, and stop it as an operator would."""
    command = [sys.executable, "-m", "memsluice.cli.main", "work", "seal", "screen", "land", "--replica", "shared"]
    process = subprocess.Popen(
        [*command, "--home", home], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        process.terminate()
        assert process.wait(240) in STOPPED
