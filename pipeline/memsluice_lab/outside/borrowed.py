"""Another project's test functions, as a pytest module of ours runs them: with our fixtures in the place of theirs."""

import asyncio
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import MagicMock, patch

import pytest

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
    """Return its tests that ask for no other fixtures than these, and for one at least, by name; those of a class too,
    each on an instance of its own."""
    known, found = set(fixtures), {}
    for name, value in vars(module).items():
        if inspect.isclass(value) and name.startswith("Test"):
            some = {f"test_{name}_{one.removeprefix('test_')}": test for one, test in _methods(value)}
        else:
            some = {name: value} if name.startswith("test_") and inspect.isfunction(value) else {}
        for own, test in some.items():
            asked = set(inspect.signature(test).parameters)
            if asked and asked <= known:
                found[own] = _plain(test)
    return found


def _methods(kind: type) -> Iterator[tuple[str, Test]]:
    for name, test in vars(kind).items():
        if name.startswith("test_") and inspect.isfunction(test):
            yield name, getattr(kind(), name)


def sorted_out(found: dict[str, Test], not_ours: Mapping[str, str]) -> dict[str, Test]:
    """Return the tests, with one that is skipped, and says why, in the place of each that does not apply.

    A name may also be that of a whole file, of which no test applies. Raises KeyError for a name that there is not.
    """
    gone = [name for name in not_ours if name.startswith("test_") and name not in found]
    if gone:
        raise KeyError(f"no such tests: {', '.join(gone)}")
    return {**found, **{f"test_{name.removeprefix('test_')}": _skipped(why) for name, why in not_ours.items()}}


def _skipped(why: str) -> Test:
    def skips() -> None:
        pytest.skip(why)

    return skips


def failing(why: str) -> Test:
    """Return a test that fails, for one that applies and is not run."""

    def fails() -> None:
        raise AssertionError(f"not run: {why}")

    return fails


def _plain(test: Test) -> Test:
    """Return a test as a plain function, with its marks: a method without its object, one of asyncio run to its end.

    pytest reads what a test asks for from its signature.
    """

    def run(**given: Any) -> None:
        done = test(**given)
        if inspect.iscoroutine(done):
            asyncio.run(done)

    plain: Any = run
    vars(plain).update(test.__dict__)
    plain.__signature__ = inspect.signature(test)
    return run
