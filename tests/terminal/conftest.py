"""A home with held writes in groups, played once and copied for each test."""

import shutil
from pathlib import Path
from unittest.mock import patch

import pytest
from tests.held import desk
from tests.held.desk import Office
from tests.terminal.desk import Words, fill

GROUPS, EACH = 3, 4


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with GROUPS groups of EACH held writes."""
    with patch.object(desk, "minilm", Words):
        office = Office(tmp_path_factory.mktemp("terminal") / "home")
        fill(office, GROUPS, EACH)
    return office.home.path


@pytest.fixture
def home(filled: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copytree(filled, tmp_path / "home"))
