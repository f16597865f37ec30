"""One encoder and one embedded gate; each test has a service of its own over it."""

from collections.abc import Iterator

import pytest
from tests.ingest_service.place import Place, Service, serving
from tests.memory.conftest import encoder
from tests.patience import HANG_S, unhurry

__all__ = ["encoder"]


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have services and their clients wait for the gate as long as a busy machine takes; a test may shorten that."""
    unhurry(monkeypatch)
    for limit in ("ingest_service.app.ACKNOWLEDGED_S", "memory.remote.TIMEOUT_S"):
        monkeypatch.setattr(f"memsluice.{limit}", HANG_S)


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
