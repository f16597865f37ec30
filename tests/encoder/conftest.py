"""The tiny model, built once."""

from pathlib import Path

import pytest
from tests.encoder.tiny import build


@pytest.fixture(scope="package")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 96 dimensions in a folder, as sentence-transformers save one."""
    return build(tmp_path_factory.mktemp("models") / "tiny-96")
