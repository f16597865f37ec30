"""What commands import: those that list and show answer within a second, so they load none of the heavy libraries."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memsluice_lab.figures.cli_start import COMMANDS, small_home

HEAVY = frozenset(
    ("numba", "scipy", "torch", "faust", "faiss", "weaviate", "sklearn", "transformers", "numpy", "structlog", "psutil")
)
PROBE = """
import sys
from memsluice.cli.main import app
try:
    app()
except SystemExit as done:
    print(f"exit {done.code}", file=sys.stderr)
print("loaded", *sorted({name.split(".")[0] for name in sys.modules}), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a small embedded home: one write that landed, one that is held, and that was listed before.

    What is new since the last listing is taken into the index by its vectors, for which numpy is loaded once.
    """
    folder = tmp_path_factory.mktemp("start") / "home"
    small_home(folder)
    environment = {**os.environ, "MEMSLUICE_HOME": str(folder)}
    subprocess.run([sys.executable, "-c", PROBE, "quarantine", "list"], check=True, env=environment, timeout=600)
    return folder


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_that_list_and_show_load_no_heavy_library(home: Path, words: tuple[str, ...]) -> None:
    """What is in a log is shown without the libraries of the detectors, the stores or the stages."""
    environment = {**os.environ, "MEMSLUICE_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *words], capture_output=True, text=True, timeout=600, env=environment
    )
    assert "exit 0" in done.stderr, done.stderr
    (loaded,) = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("loaded ")]
    assert not HEAVY & set(loaded)
