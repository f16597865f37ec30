"""The real encoder, loaded once, which reads a text once."""

from typing import Any

import pytest

from memsluice.encoder import load_encoder
from memsluice_lab.demo.caching_encoder import MemoEncoder


@pytest.fixture(autouse=True)
def patience(patient: Any) -> None:
    """No test here is about how long anybody waits for a server."""


@pytest.fixture(scope="session")
def encoder():
    """all-MiniLM-L6-v2 as the product runs it."""
    return MemoEncoder(load_encoder())
