"""A pytest plugin that records which test executes which line, and how long each test takes.

``pytest -p memsluice_lab.mutation.recorder``; ``MUTATION_SOURCES`` has the folders to record, ``MUTATION_RECORD`` the
file to write. What a fixture of a module or a session executes counts for every test that asks for it, not for the
first alone.
"""

import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coverage
import pytest

from memsluice_lab.mutation.trial import unhurried

SOURCES_VARIABLE = "MUTATION_SOURCES"
RECORD_VARIABLE = "MUTATION_RECORD"
IMPORTING = "import"
"""Context of what runs when a module is imported, whichever test asked for it first."""


class _Recorder:
    def __init__(self) -> None:
        folders = os.environ[SOURCES_VARIABLE].split(os.pathsep)
        self._coverage = coverage.Coverage(data_file=None, include=[f"{folder}/*" for folder in folders])
        self._coverage.start()
        self._coverage.switch_context(IMPORTING)
        self._current = IMPORTING
        self._fixtures: dict[str, set[str]] = defaultdict(set)
        self._took: dict[str, float] = defaultdict(float)
        self._failed: set[str] = set()

    def enter(self, context: str) -> str:
        """Count what runs from now on for ``context``; return the one before."""
        before, self._current = self._current, context
        self._coverage.switch_context(context)
        return before

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Count for a test what runs while it does."""
        before = self.enter(item.nodeid)
        try:
            return (yield)
        finally:
            self.enter(before)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        """Count a shared fixture's work for the fixture."""
        if fixturedef.scope == "function":
            return (yield)
        before = self.enter(f"fixture {fixturedef.baseid} {fixturedef.argname}")
        try:
            return (yield)
        finally:
            self.enter(before)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Remember which shared fixtures a test asks for, also by way of others."""
        info = getattr(item, "_fixtureinfo", None)
        for definitions in info.name2fixturedefs.values() if info is not None else ():
            for one in definitions:
                if one.scope != "function":
                    self._fixtures[f"fixture {one.baseid} {one.argname}"].add(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add up a test's time; one that does not pass as it is can tell nothing about a mutant."""
        self._took[report.nodeid] += report.duration
        if not report.passed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """Write what was recorded."""
        self._coverage.stop()
        data = self._coverage.get_data()
        lines: dict[str, dict[int, list[str]]] = {}
        for path in data.measured_files():
            found = lines[str(Path(path).resolve())] = {}
            for line, contexts in data.contexts_by_lineno(path).items():
                tests: set[str] = set()
                for context in contexts:
                    tests |= self._fixtures.get(context, set()) if context.startswith("fixture ") else {context}
                found[line] = sorted(tests & self._took.keys() - self._failed)
        ready = [name for name in sys.modules if name.split(".")[0] not in _OURS]
        record = {"lines": lines, "took": self._took, "failed": sorted(self._failed), "modules": ready}
        Path(os.environ[RECORD_VARIABLE]).write_text(json.dumps(record), encoding="utf-8")


_OURS = ("memsluice", "memsluice_lab", "tests", "__main__", "conftest", "coverage")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before anything of ours is imported, by the tests' own set-up, too: importers are told by their imports."""
    unhurried()
    early_config.pluginmanager.register(_Recorder(), "mutation-recorder")
