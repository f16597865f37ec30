"""Histories are many and say much: their stages log nothing here."""

from collections.abc import Iterator

import pytest
import structlog

from memsluice_lab.simulation import campaign


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """Put the log's settings back after a module: its own fixtures, which play histories, come after this one."""
    before = structlog.get_config()
    campaign.quiet()
    yield
    structlog.configure(**before)
