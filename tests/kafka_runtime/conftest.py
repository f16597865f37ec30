"""A corner of the real broker for each test."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .harness import Lab


@pytest.fixture
def lab(stack: Any, tmp_path: Path) -> Iterator[Lab]:
    """Fresh topics, group and data folder; workers that are left are killed and the topics removed."""
    corner = Lab(stack.connection, tmp_path)
    try:
        yield corner
    finally:
        corner.close()
