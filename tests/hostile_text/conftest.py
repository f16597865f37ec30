"""The home that was played once, and the command line as somebody at a terminal runs it."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import structlog
from tests.hostile_text.town import Town, logging_to

from memsluice.cli import main

WIDTH = 110
"""Columns; the demo takes as many where it writes to no terminal."""
ODD_FOLDER = "ho\x1b[2Jme \u202e[red]x\u2066"


@dataclass(frozen=True)
class Shown:
    """What a command printed."""

    code: int
    out: str
    err: str


Run = Callable[..., Shown]


@pytest.fixture(scope="session")
def town(tmp_path_factory: pytest.TempPathFactory) -> Town:
    """A home, whose very folder is named to attack, after everybody has published."""
    town = Town(tmp_path_factory.mktemp("town") / ODD_FOLDER)
    town.live()
    return town


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run ``memsluice`` in this process, whole: its errors, its logging, its exit code.

    ``colours`` as on a terminal that shows them; ``stdin`` is what is typed. The streams refuse what no terminal could
    be sent (lone surrogates).
    """

    def run(*words: str, stdin: str = "n\n", colours: bool = False) -> Shown:
        streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", newline="\n") for _ in range(2)]
        with monkeypatch.context() as patch, logging_to(io.StringIO()):
            patch.setattr(sys, "argv", ["memsluice", *words])
            patch.setattr(sys, "stdin", io.StringIO(stdin))
            patch.setattr(sys, "stdout", streams[0])
            patch.setattr(sys, "stderr", streams[1])
            patch.setenv("COLUMNS", str(WIDTH))
            patch.setenv("MEMSLUICE_HOME", str(Path("/nonexistent/memsluice")))
            patch.setenv(*(("FORCE_COLOR", "1") if colours else ("NO_COLOR", "1")))
            try:
                main.app()
                code = 0
            except SystemExit as end:
                code = int(end.code or 0)
            finally:
                structlog.reset_defaults()
        out, err = ((stream.flush(), stream.buffer.getvalue().decode())[1] for stream in streams)  # type: ignore[attr-defined]
        return Shown(code, out, err)

    return run
