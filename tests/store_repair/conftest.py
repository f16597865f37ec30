"""The real encoder, loaded once, which reads a text once."""

import pytest

from memsluice.encoder import load_encoder
from memsluice_lab.demo.caching_encoder import MemoEncoder


@pytest.fixture(scope="session")
def encoder():
    """all-MiniLM-L6-v2 as the product runs it."""
    return MemoEncoder(load_encoder())
