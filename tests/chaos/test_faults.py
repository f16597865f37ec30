"""The store behind a network that fails, and a broker that dies, each under load on the real stack; one story for both.

The other faults of :mod:`memsluice_lab.chaos.faults` take minutes: they are the figure ``fault_violations``.
"""

from collections.abc import Iterator
from uuid import uuid4

import pytest
from tests.chaos.conftest import broken, say

from memsluice_lab.chaos import checking
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.chaos.faults import network, servers, strike
from memsluice_lab.chaos.nemesis import Nemesis
from memsluice_lab.chaos.proxy import Proxy, between
from memsluice_lab.chaos.stages import Company, staffed
from memsluice_lab.figures.bed import Bed

pytestmark = [pytest.mark.stack, pytest.mark.timeout(2_400)]

LASTS_S = 4.0
CHOSEN = ("the store is gone", "the store says nothing", "the broker dies")


@pytest.fixture
def made(bed: Bed) -> Iterator[Company]:
    """A worker of each stage, which reaches the store through a proxy."""
    nemesis = Nemesis(bed)
    proxy = between(bed, nemesis, broker=False)
    try:
        with staffed(bed, nemesis, f"f{uuid4().hex[:6]}", 1, proxy.environment) as company:
            company.proxy = proxy
            yield company
    finally:
        for worker in list(bed.workers):
            bed.kill(worker)
        proxy.close()


def test_nothing_is_lost_or_doubled_while_the_store_and_the_broker_fail(made: Company) -> None:
    """Without a person everything that was acknowledged is decided once and lands, no worker ends, and the store is
    what its log says."""
    scene, since, found = made.scene, checking.begin(made.scene), list[Violation]()
    assert isinstance(made.proxy, Proxy)
    faults = {**network(made.proxy), **servers(scene.nemesis)}
    for name in CHOSEN:
        told = strike(made, name, faults[name], LASTS_S, found)
        say(told)
        assert told.endswith("nobody ended")
    assert found == []
    assert broken(scene, since) == []
    assert scene.ended == {}
