"""The store behind a network that fails, and a broker that dies, each under load on the real stack; one story for both.

The other faults of :mod:`memsluice_lab.chaos.faults` take minutes: they are the figure ``fault_violations``.
"""

from collections.abc import Iterator
from typing import Any
from uuid import uuid4

import pytest
from tests.chaos.conftest import say

from memsluice.clock import wall_ms
from memsluice.keystore.store import KeyStore
from memsluice_lab.chaos import checking, logs
from memsluice_lab.chaos.checker import Violation, read, verdict_violations
from memsluice_lab.chaos.faults import network, servers, strike
from memsluice_lab.chaos.landed import store_violations
from memsluice_lab.chaos.nemesis import Nemesis
from memsluice_lab.chaos.proxy import Proxy, between
from memsluice_lab.chaos.stages import Company, staffed
from memsluice_lab.figures.bed import Bed
from memsluice_lab.figures.registry import Setting

pytestmark = [pytest.mark.stack, pytest.mark.timeout(400)]

LASTS_S = 4.0
CHOSEN = ("the store is gone", "the store says nothing", "the broker dies")


@pytest.fixture
def made(stack: Any) -> Iterator[Company]:
    """A worker of each stage, which reaches the store through a proxy."""
    bed = Bed(stack.home, stack.connection, KeyStore.init(stack.home, wall_ms()), Setting(None, say))
    nemesis = Nemesis(bed)
    proxy = between(bed, nemesis, broker=False)
    try:
        with staffed(bed, nemesis, f"f{uuid4().hex[:6]}", 1, proxy.environment) as company:
            company.proxy = proxy
            yield company
    finally:
        bed.close()
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
    assert checking.landed(scene, since)
    keyring, picture = scene.bed.store.keyring(), logs.take(scene.bed, scene.work.tenants, since)
    reading = read(picture, keyring, scene.work.tenants)
    assert list(verdict_violations(reading, scene.work.said)) == []
    assert list(store_violations(picture, reading, keyring, now_ms=wall_ms())) == []
    assert scene.ended == {}
