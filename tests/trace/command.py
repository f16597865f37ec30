"""Runs the command line as a person would."""

import subprocess
import sys
from pathlib import Path

COMMAND = [sys.executable, "-m", "memsluice.cli.main"]


def run(*arguments: str, environment: dict[str, str] | None = None) -> tuple[int, str, str]:
    """Run a command in a process of its own; return (exit code, standard output, standard error on one line)."""
    variables = {"PATH": "/usr/bin:/bin", "COLUMNS": "120", **(environment or {})}
    variables |= {"PYTHONPATH": str(Path(sys.modules["memsluice"].__file__ or "").parents[1])}
    done = subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=300, env=variables)
    return done.returncode, done.stdout, " ".join(done.stderr.split())
