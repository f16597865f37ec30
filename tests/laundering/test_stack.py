"""Laundering through the real broker, the real workers and the real store: all scenarios in one stack session."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml

from memsluice.clock import wall_ms
from memsluice.deployment.home import Home
from memsluice.encoder import load_encoder
from memsluice.errors import StackError
from memsluice.gate.policy import model
from memsluice.keystore.store import KeyStore
from memsluice_lab import cast, laundering, world_stack
from memsluice_lab.figures import Setting
from memsluice_lab.figures import bed as beds
from memsluice_lab.figures.bed import Bed
from memsluice_lab.laundering import SCENARIOS
from memsluice_lab.world_stack import StackWorld

RUN = f"l{os.urandom(4).hex()}"
TENANTS = {name: f"{RUN}-{name}" for name in SCENARIOS}


@pytest.fixture(scope="module")
def world(stack: Any) -> Iterator[StackWorld]:
    """Workers of our own, under a policy that some scenarios need; the home's policy is put back afterwards."""
    file = Home.at(stack.home).policy_file
    before = file.read_text() if file.exists() else None
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(yaml.safe_dump(laundering.policy_file(model.default().default, TENANTS)))
    bed = Bed(Path(stack.home), stack.connection, KeyStore.init(stack.home, wall_ms()), Setting(None, print))
    signers = cast.at_home(bed.store, sorted(TENANTS.values()), now_ms=wall_ms())
    with pytest.MonkeyPatch.context() as patch:  # guards against hangs alone, beside all other tests
        for module, name in ((beds, "ANSWER_S"), (beds, "STOP_S_MAX"), (world_stack, "ANSWER_S")):
            patch.setattr(module, name, 240)
        patch.setattr(world_stack, "DRAIN_S_MAX", 600)
        started = StackWorld(bed, signers, load_encoder(threads=1), run=RUN)
        try:
            yield started
        finally:
            with suppress(StackError):  # a busy machine stops no worker within its bound
                bed.stop(*list(bed.workers))
            for worker in list(bed.workers):
                bed.kill(worker)
            started.close()
            bed.close()
            file.unlink() if before is None else file.write_text(before)


@pytest.mark.stack
@pytest.mark.parametrize("name", SCENARIOS)
def test_laundered_content_stays_out_of_guidance_on_the_real_stack(name: str, world: StackWorld) -> None:
    """Through Kafka, Faust and Weaviate: outside content never comes back as guidance, and honest memory does."""
    outcome = SCENARIOS[name](world, TENANTS[name])
    assert list(laundering.violations(world, TENANTS[name], outcome)) == []
