"""One tenant on the embedded runtime: real stages, real encoder, a real store, and real recalls."""

from collections.abc import Iterator

import pytest
from tests.encoders import minilm

from memsluice.client.requests import Session
from memsluice.encoder import Encoder
from memsluice.gate.policy import model
from memsluice_lab.world_embedded import EmbeddedWorld

ANA = Session("acme", "planner", "ana", "s-ana")
BOB = Session("acme", "planner", "bob", "s-bob")


@pytest.fixture(scope="package")
def encoder() -> Encoder:
    """The real encoder; texts repeat, so their vectors are remembered."""
    return minilm()


@pytest.fixture
def world(encoder: Encoder) -> Iterator[EmbeddedWorld]:
    """The policy that ships; Ana's and Bob's sessions are open."""
    made = EmbeddedWorld(["acme"], encoder, model.default())
    made.observe(ANA)
    made.observe(BOB)
    yield made
    made.close()


def told(world: EmbeddedWorld, session: Session, question: str) -> list[str]:
    """Return what a recall for guidance shows."""
    return [entry.content for entry in world.ask(session, question).entries]
