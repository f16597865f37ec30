"""Deprecated names work, warn, and say what to use instead and until when."""

import re
import tomllib
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import memsluice
from memsluice.deprecations import DEPRECATED
from memsluice.envelope.registry import Role
from memsluice.errors import ConfigError

TOP = Path(__file__).resolve().parent.parent


def _open_local(home: Path) -> None:
    with pytest.raises(ConfigError, match="memsluice stack up"):  # its errors are those that it always had
        memsluice.open_local(memsluice.MemoryWriter, Role.PRODUCER, home=home, tenant="acme")


USES: dict[str, Callable[[Path], object]] = {
    "memsluice.Options": lambda _: memsluice.Options,
    "memsluice.open_local": _open_local,
}


def test_every_deprecated_name_is_used_below() -> None:
    """What is put on the list is put to the test."""
    assert USES.keys() == DEPRECATED.keys()


@pytest.mark.parametrize("name", sorted(DEPRECATED))
def test_a_deprecated_name_warns_where_it_is_used(name: str, tmp_path: Path) -> None:
    """One DeprecationWarning, at the caller's line, with the replacement and both versions; every time it is used."""
    one = DEPRECATED[name]
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            USES[name](tmp_path)
        (warning,) = caught
        assert warning.category is DeprecationWarning
        assert warning.filename == __file__
        said = str(warning.message)
        assert all(part in said for part in (name, one.replacement, one.since, one.removal))


@pytest.mark.parametrize("name", sorted(DEPRECATED))
def test_a_deprecated_name_stays_for_two_minor_versions(name: str) -> None:
    """The removal is at least two minor versions after the warning, and is not due: then the name goes in earnest."""
    version = tomllib.loads((TOP / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    one = DEPRECATED[name]
    (since_major, since), (major, minor) = (_parts(one.since), _parts(one.removal))
    assert major > since_major or minor >= since + 2
    assert _parts(version) < (major, minor), f"remove {name}"


def _parts(version: str) -> tuple[int, int]:
    found = re.match(r"(\d+)\.(\d+)", version)
    assert found is not None
    return int(found[1]), int(found[2])


def test_a_deprecated_name_is_the_thing_that_replaced_it() -> None:
    """Old code runs on: the old name gives the new class."""
    with pytest.warns(DeprecationWarning, match="WriterOptions"):
        assert memsluice.Options is memsluice.WriterOptions


def test_the_policy_s_page_names_what_is_deprecated() -> None:
    """One page says what is public, and lists every name that goes, its replacement and its versions."""
    page = (TOP / "docs" / "deprecations.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| `memsluice")]
    assert len(rows) == len(DEPRECATED)
    for one in DEPRECATED.values():
        assert any(all(part in row for part in (one.name, one.since, one.removal)) for row in rows)
