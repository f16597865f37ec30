"""What runs the tests: parts side by side, one closing line, and an exit code that hides nothing."""

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import run_tests
from run_tests import Part
from tests.conftest import OPTIONAL

TOP = Path(__file__).resolve().parents[1]
PASSES = "def test_a(): ...\ndef test_b(): ...\n"
FAILS = "def test_c(): assert False\n"
DIES = "import os\ndef test_d(): ...\ndef test_e(): os._exit(0)\n"
SKIPS = "import pytest\n@pytest.mark.skipif(True, reason='no such tool')\ndef test_f(): ...\n"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The halves here need none of the installed plugins, which cost a second a half."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


def told(folder: Path, *contents: str, more: tuple[Part, ...] = ()) -> tuple[int, str]:
    """Run each content as one half; return the exit code and all output."""
    halves = []
    for number, content in enumerate(contents):
        (folder / f"test_{number}.py").write_text(content)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
        halves.append(Part(f"half {number}", [*command, str(folder / f"test_{number}.py")]))
    shown = io.StringIO()
    return run_tests.run([*more, *halves], folder, shown), shown.getvalue()


@pytest.mark.parametrize(
    ("halves", "code", "closing"),
    [
        ((PASSES, PASSES), 0, "4 passed in "),
        ((PASSES, FAILS), 1, "1 failed, 2 passed in "),
        ((FAILS, PASSES), 1, "1 failed, 2 passed in "),
        ((PASSES, ""), 1, "2 passed, 1 error in "),
        ((PASSES, "import nothing_of_this_name\n"), 1, "2 passed, 2 errors in "),
        ((PASSES, DIES), 1, "2 passed, 1 error in "),
        ((PASSES, SKIPS), 1, "2 passed, 1 skipped, 1 error in "),
    ],
)
def test_the_last_line_counts_both_halves_and_the_exit_code_agrees(
    halves: tuple[str, str], code: int, closing: str, tmp_path: Path
) -> None:
    """A half that fails, dies with exit code 0 or runs no test fails the whole, whatever the other half did; and how
    long each took is told."""
    found, output = told(tmp_path, *halves)
    assert (found, output.splitlines()[-1].startswith(closing)) == (code, True), output
    assert output.index("== half 0") < output.index("== half 1")
    assert all(re.search(rf"^ +\d+ s  half {number}$", output, re.M) for number in (0, 1)), output


def test_a_part_that_is_no_test_fails_the_whole_as_well(tmp_path: Path) -> None:
    """Style and types run beside the tests: what they find is no less a failure."""
    found, output = told(tmp_path, PASSES, more=(Part("types", ["sh", "-c", "echo wrong type; exit 2"], tests=False),))
    assert (found, output.splitlines()[-1].startswith("2 passed, 1 error in ")) == (1, True), output
    assert "wrong type" in output
    assert "!! types: ended with exit code 2" in output


def test_a_skip_is_a_failure_in_ci(tmp_path: Path) -> None:
    """What does not run protects nothing: in CI only what the README calls optional may be missing."""
    assert all(name in (TOP / "README.md").read_text() for name in OPTIONAL)
    (tmp_path / "test_a.py").write_text(
        SKIPS + SKIPS.replace("no such tool", "needs MEMSLUICE_DATA").replace("_f", "_g")
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", os.devnull]
    for ci, closing in (("", "2 skipped in "), ("true", "1 skipped, 1 error in ")):
        found = subprocess.run(
            [*command, str(tmp_path / "test_a.py")],
            cwd=TOP,
            capture_output=True,
            text=True,
            env={**os.environ, "CI": ci},
        )
        assert found.stdout.splitlines()[-1].startswith(closing), found.stdout + found.stderr


def test_the_arguments_of_make_test_reach_pytest_alone() -> None:
    """The README's own `make demo` is run by a test: the ARGS of `make test` must not be among what it is given."""
    probe = "probe: ; @echo '[$(ARGS)]' \"[$${ARGS-}]\"; $(MAKE) -s --eval 'inner: ; @echo \"[$$(ARGS)]\"' inner"
    found = subprocess.run(
        ["make", "-s", "--eval", probe, "probe", "ARGS=-k leak"], cwd=TOP, capture_output=True, text=True,
        env={name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "ARGS")},
    )  # fmt: skip
    assert (found.returncode, found.stdout) == (0, "[-k leak] []\n[]\n"), found.stderr
