"""Another project's test functions, as a pytest module of ours runs them: with our fixtures in the place of theirs."""

import asyncio
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock, patch

Test = Callable[..., Any]


def module_of(file: Path, absent: Iterable[str]) -> ModuleType:
    """Import a file of tests. Modules named ``absent``, such as a server's driver, are stood in for while it loads, and
    the package ``tests`` is its folder."""
    package = ModuleType("tests")
    package.__path__ = [str(file.parent)]
    instead: dict[str, Any] = {"tests": package} | {name: MagicMock(name=name) for name in absent}
    with patch.dict(sys.modules, instead):
        for name in [one for one in sys.modules if one.startswith("tests.")]:  # ours, where our tests run
            del sys.modules[name]
        spec = importlib.util.spec_from_file_location(f"tests.{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        found = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(found)
    return found


def tests_of(module: ModuleType, fixtures: Iterable[str]) -> dict[str, Test]:
    """Return its test functions that ask for no other fixtures than these, and for one at least, by name."""
    known, found = set(fixtures), {}
    for name, value in vars(module).items():
        if not name.startswith("test_") or not inspect.isfunction(value):
            continue
        asked = set(inspect.signature(value).parameters)
        if asked and asked <= known:
            found[name] = _plain(value)
    return found


def failing(why: str) -> Test:
    """Return a test that fails, for one that applies and is not run."""

    def fails() -> None:
        raise AssertionError(f"not run: {why}")

    return fails


def _plain(test: Test) -> Test:
    """Return a test as a plain function: an asynchronous one is run to its end."""
    if not inspect.iscoroutinefunction(test):
        return test

    @wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(test(**given))

    return run
