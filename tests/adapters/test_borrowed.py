"""How other projects' tests are borrowed: with our fixtures, without their servers, and nothing of them kept."""

import sys
from pathlib import Path

import pytest

from memsluice_lab.outside import borrowed

THEIRS = """
import their_server
from tests.conftest import SIZE

def test_kept(store):
    assert store == SIZE

async def test_run_to_its_end(store):
    assert store == 1

def test_of_another_fixture(pool): ...
def test_of_no_fixture(): ...
def helper(store): ...
"""


@pytest.fixture
def found(tmp_path: Path) -> dict[str, borrowed.Test]:
    """Return the tests that are borrowed of a file which needs a server's driver and a conftest of its own."""
    (tmp_path / "conftest.py").write_text("SIZE = 1\n")
    (tmp_path / "test_theirs.py").write_text(THEIRS)
    module = borrowed.module_of(tmp_path / "test_theirs.py", ["their_server"])
    return borrowed.tests_of(module, ["store"])


def test_tests_that_ask_for_our_fixtures_alone_are_borrowed(found) -> None:
    """Others would not run, or would test something else than an adapter."""
    assert sorted(found) == ["test_kept", "test_run_to_its_end"]


def test_a_borrowed_test_can_fail(found) -> None:
    """An asynchronous one as well: it is run to its end, and not merely called."""
    for test in found.values():
        test(store=1)
        with pytest.raises(AssertionError):
            test(store=2)


def test_nothing_that_stood_in_is_left_behind(found) -> None:
    """The next test imports the real modules, and our own package of tests."""
    assert "their_server" not in sys.modules
    assert "SIZE" not in vars(sys.modules.get("tests.conftest", object))
