"""A home with held writes in groups, played once and copied for each test."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.held.desk import Office
from tests.terminal.desk import fill

GROUPS, EACH = 3, 4


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with GROUPS groups of EACH held writes."""
    office = Office(tmp_path_factory.mktemp("terminal") / "home")
    fill(office, GROUPS, EACH)
    return office.home.path


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(filled, tmp_path / "home"))


@pytest.fixture
def office(home: Path) -> Office:
    """Whoever publishes there."""
    return Office.__new__(Office)


Copied = Callable[[], Path]
