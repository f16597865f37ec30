"""The real encoder, loaded once."""

import pytest

from memsluice.encoder import load_encoder


@pytest.fixture(scope="session")
def encoder():
    """all-MiniLM-L6-v2 as the product runs it."""
    return load_encoder()
