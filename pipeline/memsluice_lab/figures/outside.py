"""How many of other projects' own tests pass with our adapters in the place of what they were written for."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path
from xml.etree import ElementTree

from memsluice.errors import ConfigError, StateError
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.outside import SUITES

LIMIT_S = 1_500


def outside_suites_passed(setting: Setting) -> Measured:
    """Share of the tests that apply which pass, 0 to 1. Raises ConfigError without the folder ``outside``."""
    folder = setting.records() / "outside"
    if not folder.is_dir():
        raise ConfigError(f"There is no {folder}: the other projects' suites lie there")
    rows, passed, every = list[tuple[str, str]](), 0, 0
    for name, file in SUITES.items():
        setting.say(f"{name}'s tests")
        found, not_ours = _run(file, folder)
        failed = [test for test, why in found.items() if why]
        passed, every = passed + len(found) - len(failed), every + len(found)
        rows.append((name, f"{len(found) - len(failed)} of {len(found)} passed"))
        rows += [(f"{name}: {test} failed", found[test]) for test in failed]
        rows += [(f"{name}: {test} does not apply", why) for test, why in not_ours.items()]
    return Measured(passed / every, tuple(rows), (_NOTE,))


_NOTE = (
    "Each on an embedded gate of its own with the real stages and encoder, under the policy that ships but for the "
    "number of writes a day. A test applies where an adapter of ours stands in it for what it was written for; tests "
    "of a framework's types, prompts and models alone are not listed."
)


def _run(file: Path, folder: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return why each test failed, "" where it passed, by its name; and why each of the others does not apply."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        command = [
            sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", str(file.parent),
            "-p", "no:cacheprovider", "--import-mode=importlib", f"--junitxml={report}", str(file),
        ]  # fmt: skip
        done = subprocess.run(
            command,
            env={**os.environ, "OUTSIDE": str(folder)},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
        if not report.exists():
            raise StateError(f"pytest ran no test of {file.name}: {done.stdout[-500:]}{done.stderr[-500:]}")
        cases = list(ElementTree.parse(report).iter("testcase"))  # noqa: S314 - pytest wrote it just now
    found, not_ours = dict[str, str](), dict[str, str]()
    for case in cases:
        name = case.get("name", "")
        for one in case:
            if one.tag == "skipped":
                not_ours[name] = one.get("message", "")
            elif one.tag in ("failure", "error"):
                found[name] = (one.get("message") or one.tag).splitlines()[0][:120]
        if name not in not_ours:
            found.setdefault(name, "")
    if not found:
        raise StateError(f"{file.name} has no test that applies")
    return found, not_ours
