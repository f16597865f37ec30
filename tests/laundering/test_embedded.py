"""Laundering through the embedded runtime: real stages, real encoder, a real store, and a real recall."""

from typing import Any

import pytest
import yaml
from msgspec.structs import replace
from tests.encoders import minilm

from memsluice.encoder import Encoder
from memsluice.events.models import Tier
from memsluice.gate.checks import monitor
from memsluice.gate.policy import model
from memsluice_lab import laundering
from memsluice_lab.laundering import SCENARIOS
from memsluice_lab.world_embedded import EmbeddedWorld

TENANTS = {name: f"t-{name}" for name in SCENARIOS}
POLICIES = model.parse(yaml.safe_dump(laundering.policy_file(model.default().default, TENANTS)))


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    """The real encoder; texts repeat, so their vectors are remembered."""
    return minilm()


@pytest.mark.parametrize("name", SCENARIOS)
def test_laundered_content_stays_out_of_guidance(name: str, encoder: Encoder) -> None:
    """Whatever way it takes, outside content is never given to an agent as guidance, and honest memory is."""
    world = EmbeddedWorld([TENANTS[name]], encoder, POLICIES)
    try:
        outcome = SCENARIOS[name](world, TENANTS[name])
        assert list(laundering.violations(world, TENANTS[name], outcome)) == []
    finally:
        world.close()


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_tells_a_gate_that_loses_taint(
    name: str, encoder: Encoder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scenarios can fail: a gate that forgets why something is tainted lets the claim through."""
    tainted = monitor.label

    def washed(*arguments: Any) -> monitor.Label:
        return replace(tainted(*arguments), taint=False, causes=(), tier=Tier.USER_OBSERVED)

    monkeypatch.setattr(monitor, "label", washed)
    world = EmbeddedWorld([TENANTS[name]], encoder, POLICIES)
    try:
        assert list(laundering.violations(world, TENANTS[name], SCENARIOS[name](world, TENANTS[name])))
    finally:
        world.close()
