"""One embedded gate for all tests of the memory server; each test is about a person of its own."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.memory.conftest import encoder

from memsluice.adapters.mcp import Person
from memsluice.adapters.mcp.reading import withholding
from memsluice.encoder import Encoder
from memsluice.memory.embedded import EmbeddedGate

__all__ = ["encoder"]


@pytest.fixture(scope="package")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the gate's home."""
    return tmp_path_factory.mktemp("mcp") / "home"


@pytest.fixture(scope="package")
def gate(home: Path, encoder: Encoder) -> Iterator[EmbeddedGate]:
    """Give an embedded gate of tenant acme."""
    made = EmbeddedGate.open_local(tenant="acme", home=home, encoder=encoder, instructions=withholding(home))
    yield made
    made.close()


@pytest.fixture
def person(request: pytest.FixtureRequest) -> Person:
    """Return somebody who has no memory yet."""
    return Person("assistant", request.node.name[:100])
