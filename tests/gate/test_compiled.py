"""Compiled arithmetic: the same with and without a place for its machine code."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import memsluice
from memsluice.errors import StateError
from memsluice.gate.detectors.memsad import scores
from memsluice.gate.detectors.numeric.compiled import compiled, say_alone
from memsluice.gate.detectors.numeric.vector_set import Kept, Limits

PIPELINE = Path(memsluice.__file__).parent.parent
SIGNATURE = "float64(float64[::1])"
SOURCE = "def total(values):\n    found = 0.0\n    for value in values:\n        found += value\n    return found\n"


def total() -> object:
    """A function of no file: there is no place for a cache of it."""
    names: dict[str, object] = {}
    exec(SOURCE, names)  # noqa: S102  # our own text
    say_alone.cache_clear()
    with pytest.warns(UserWarning, match="no code can be kept"):
        return compiled(SIGNATURE)(names["total"])


def test_a_function_without_a_place_for_its_machine_code_is_compiled_all_the_same() -> None:
    """Where nothing may be written, as in a sealed image, each process compiles for itself."""
    assert total()(np.array([1.0, 2.0, 4.0])) == 7.0


def run(folder: Path, kept: Path) -> subprocess.CompletedProcess[str]:
    """Call a compiled function in a process of its own, whose machine code lies in ``kept``."""
    said = "import numpy, some; print(some.total(numpy.ones(3)))"
    places = os.environ | {"NUMBA_CACHE_DIR": str(kept), "PYTHONPATH": f"{folder}:{PIPELINE}"}
    return subprocess.run([sys.executable, "-c", said], capture_output=True, text=True, check=True, env=places)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two compiled functions in a file, and in ``kept`` their machine code, as the first process left it."""
    folder = tmp_path_factory.mktemp("compiled")
    mark = f"from memsluice.gate.detectors.numeric.compiled import compiled\n@compiled({SIGNATURE!r})\n"
    (folder / "some.py").write_text(mark + SOURCE + mark + SOURCE.replace("total", "another"))
    assert run(folder, folder / "kept").stderr == ""
    return folder


@pytest.mark.parametrize("left", [0, 100])
@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_machine_code_that_cannot_be_read_is_made_again(left: int, ending: str, folder: Path, tmp_path: Path) -> None:
    """A machine that stopped in the middle of writing it, or a full disk: *screen* starts all the same, and warns."""
    kept = shutil.copytree(folder / "kept", tmp_path / "kept")
    files = list(kept.rglob(f"*.{ending}"))
    assert len(files) == 2
    for file in files:
        os.truncate(file, left)
    broken = run(folder, kept)
    assert broken.stdout == "3.0\n"
    assert "no code can be kept" in broken.stderr
    assert broken.stderr.count("UserWarning") == 1


@pytest.mark.parametrize(
    "module", ["memsluice", "memsluice.recall", "memsluice.runtimes.assembly", "memsluice.stages.seal"]
)
def test_who_does_not_screen_loads_no_compiler(module: str) -> None:
    """An agent's process, a reader and the other stages start without it, and need no place for machine code."""
    said = "import importlib, sys; importlib.import_module(sys.argv[1]); print('numba' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", said, module], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_only_the_types_that_were_named_are_taken() -> None:
    """Other numbers are an error and no silent second version: results would depend on who called."""
    with pytest.raises(TypeError, match="No matching definition"):
        total()(np.array([1, 2]))


def test_shapes_that_do_not_fit_are_an_error() -> None:
    """No index is checked behind these doors: a vector of another length would read what is not its own."""
    some = Kept[None].of((), ()).appended((None, np.full(384, 384**-0.5, np.float32)))
    for short in (np.zeros(383, np.float32), np.zeros((384, 1), np.float32)):
        with pytest.raises(StateError, match="384"):
            some.near(short, np.zeros(1, np.int64), np.zeros(1, bool), Limits(3, 3, 3))
        with pytest.raises(StateError, match="384"):
            some.twin(short, 0.97)
        with pytest.raises(StateError, match="no score"):
            scores.score(short, np.zeros((2, 384)))
