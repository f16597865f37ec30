"""One encoder and one embedded gate; each test has a service of its own over it."""

from collections.abc import Iterator

import pytest
from tests.ingest_service.place import Place, Service, serving
from tests.memory.conftest import encoder

__all__ = ["encoder"]


@pytest.fixture(scope="package")
def place(tmp_path_factory, encoder) -> Iterator[Place]:
    """Give a gate that decides what is appended to its log, and the credentials of its home."""
    made = Place.open(tmp_path_factory.mktemp("ingest") / "home", encoder)
    yield made
    made.gate.close()


@pytest.fixture
def service(place) -> Iterator[Service]:
    """Give a running service."""
    with serving(place) as running:
        yield running
