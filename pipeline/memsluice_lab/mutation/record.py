"""The record of a whole run of the tests: which of them execute which line, and how long each takes."""

import json
import os
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from memsluice.errors import ConfigError
from memsluice_lab.mutation.recorder import RECORD_VARIABLE, SOURCES_VARIABLE

PACKAGES = ("gate", "stages", "recall")
PRODUCT = Path("pipeline/memsluice")
TESTS = (
    *("gate", "stages", "recall", "model", "policies", "seed002", "embedded_runtime", "held", "rescreen", "trace"),
    *("provenance", "laundering", "lab", "dead_letters", "schemas", "test_words.py"),
)
"""The tests that are about these packages or drive them; others execute little that these do not."""
RECORD_S_MAX = 3_600


@dataclass(frozen=True, slots=True)
class Record:
    """``lines``: by file and line the tests that execute it; ``took``: seconds a test; ``modules``: their imports."""

    lines: dict[str, dict[int, frozenset[str]]]
    took: dict[str, float]
    failed: tuple[str, ...]
    modules: tuple[str, ...]


def copy_of(root: Path, to: Path) -> Path:
    """Copy the checkout's files, those that git does not ignore, so that nothing is ever planted in the checkout."""
    command = ["git", "-C", str(root), "ls-files", "-co", "--exclude-standard", "-z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode:
        raise ConfigError(f"Mutants are planted in a copy of the checkout, and {root} is none: {listed.stderr.strip()}")
    for name in filter(None, listed.stdout.split("\0")):
        if (root / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, to / name)
    return to


def environment(copy: Path, **more: str) -> dict[str, str]:
    """Return the environment of a process that imports the product from a copy."""
    single = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    ours = {"PYTHONPATH": os.pathsep.join((str(copy / "pipeline"), str(copy)))}
    return {**os.environ, **single, **ours, **more}


def record(copies: list[Path]) -> Record:
    """Run all tests that need no stack once, a share of their files in each copy at a time, and return the record."""
    patterns = [name if name.endswith(".py") else f"{name}/**/test_*.py" for name in TESTS]
    found = [path for pattern in patterns for path in (copies[0] / "tests").glob(pattern)]
    files = sorted(path.relative_to(copies[0]).as_posix() for path in found)
    running = []
    for number, copy in enumerate(copies):
        sources = os.pathsep.join(str(copy / PRODUCT / name) for name in PACKAGES)
        more = {SOURCES_VARIABLE: sources, RECORD_VARIABLE: str(copy / "mutation-record.json")}
        options = ["-p", "memsluice_lab.mutation.recorder", "-p", "no:cacheprovider", "-m", "not stack"]
        command = [sys.executable, "-m", "pytest", *options, *files[number :: len(copies)]]
        log = (copy / "mutation-record.log").open("w")
        running.append(subprocess.Popen(command, cwd=copy, env=environment(copy, **more), stdout=log, stderr=log))
    for process in running:
        process.wait(RECORD_S_MAX)
    return read(copies, [copy / "mutation-record.json" for copy in copies])


def read(copies: list[Path], paths: list[Path]) -> Record:
    """Return the sum of the records of the shares."""
    lines: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
    took: dict[str, float] = {}
    failed: list[str] = []
    modules: dict[str, None] = {}
    for copy, path in zip(copies, paths, strict=True):
        if not path.exists():
            raise ConfigError(f"The tests did not run to their end: see {path.with_suffix('.log')}")
        one = json.loads(path.read_text(encoding="utf-8"))
        for name, by_line in one["lines"].items():
            for line, tests in by_line.items():
                lines[Path(name).relative_to(copy / PRODUCT).as_posix()][int(line)].update(tests)
        took |= one["took"]
        failed += one["failed"]
        modules |= dict.fromkeys(one["modules"])
    frozen = {name: {line: frozenset(tests) for line, tests in some.items()} for name, some in lines.items()}
    return Record(frozen, took, tuple(sorted(set(failed))), tuple(modules))
