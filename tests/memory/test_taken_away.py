"""Broker, store and keys are taken away while a memory is open on the real stack: what it says, and nothing lost."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, suppress
from typing import Any

import pytest
from tests.memory.conftest import heard_at_once
from tests.memory.test_stack import gate, home
from tests.patience import HANG_S

from memsluice import Origin, Session
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.errors import ExpiredKey, LandingUnknown, NotDelivered, StoreUnavailable, WriteHeld, WriteRefused
from memsluice.keystore import rotation
from memsluice.keystore.store import KeyStore, issue_credential
from memsluice.memory.memory import Memory
from memsluice.memory.opening import open_gate
from memsluice.memory.outcome import Status
from memsluice_lab.chaos.nemesis import KAFKA, WEAVIATE, Nemesis
from memsluice_lab.figures.bed import Bed
from memsluice_lab.figures.registry import Setting

__all__ = ["gate", "home"]
TENANT = "memory-on-stack"
QUICK_S, LONG_S = 2.0, HANG_S
Down = Callable[[str], AbstractContextManager[None]]
pytestmark = [pytest.mark.stack, pytest.mark.usefixtures("unhurried")]


@pytest.fixture
def down(stack: Any, home: Any) -> Iterator[Down]:
    """Give what keeps a server of the stack down for as long as a block lasts."""
    bed = Bed(stack.home, stack.connection, KeyStore(home), Setting(None, print))
    nemesis = Nemesis(bed)
    yield nemesis.server_down
    nemesis.close()
    bed.close()


def memory_of(gate: Any, name: str, **options: float) -> Memory:
    """Return a person's memory."""
    return Memory(gate, Session(TENANT, "assistant", name, f"{name}-away"), **options)


def test_a_broker_that_is_away_is_told_and_nothing_is_lost(gate, workers, down: Down) -> None:
    """What was under way is unknown, an observation that nobody acknowledged raises, and both work again by themselves;
    said again under its id, what was unknown landed, and lies once."""
    memory = memory_of(gate, "dora", timeout_s=LONG_S)
    memory.write("Dora drinks tea.", key="drink")
    memory._timeout_s = QUICK_S
    with down(KAFKA):
        with pytest.raises(LandingUnknown, match="the log has not acknowledged it") as unknown:
            memory.write("Dora lives in Lyon.", key="home", event_id="dora-home")
        assert "under the same event id" in str(unknown.value)
        with pytest.raises(NotDelivered, match="not acknowledged") as caught:
            memory.observe(Origin.WEB, content="a page")
        assert caught.value.maybe_written
    fresh = memory_of(gate, "dora", timeout_s=LONG_S)
    memory._timeout_s = LONG_S
    assert memory.write("Dora lives in Lyon.", key="home", event_id="dora-home").status is Status.LANDED
    assert sorted(one.content for one in fresh.every().entries) == ["Dora drinks tea.", "Dora lives in Lyon."]
    with pytest.raises(WriteHeld, match="outside data"):  # the page was seen, whatever was told
        memory.write("The mill is cheapest.")


def test_a_store_that_is_away_is_told_and_nothing_is_lost(gate, workers, down: Down, monkeypatch) -> None:
    """A write is unknown until it lies there; a read says that the store is away; both work again by themselves."""
    heard_at_once(gate, monkeypatch)
    memory = memory_of(gate, "emil", timeout_s=LONG_S)
    memory.write("Emil drinks tea.", key="drink")
    memory._timeout_s = QUICK_S
    with down(WEAVIATE):
        with pytest.raises(LandingUnknown, match="no landing, was heard") as unknown:
            memory.write("Emil lives in Lyon.", key="home", event_id="emil-home")
        assert "under the same event id" in str(unknown.value)
        for call in (lambda: memory.search("What does Emil drink?"), lambda: memory.read(["drink"]), memory.every):
            with pytest.raises(StoreUnavailable, match="cannot be reached"):
                call()
    memory._timeout_s = LONG_S
    assert memory.write("Emil lives in Lyon.", key="home", event_id="emil-home").status is Status.LANDED
    assert _read(memory) == ["Emil drinks tea.", "Emil lives in Lyon."]


def test_a_revoked_key_signs_nothing_more(stack: Any, workers) -> None:
    """Of each kind, in a gate that is open: the call raises and names the key; nothing passes for seen or remembered.
    With another credential a new gate goes on."""
    tenant, keys = "memory-revoked", KeyStore.init(stack.home, wall_ms())
    roles = (Role.PRODUCER, Role.RUNTIME, Role.READER)
    kids = [issue_credential(keys, role, "agent", [tenant], now_ms=wall_ms())[0].kid for role in roles]
    gate = open_gate(tenant=tenant, home=stack.home)
    memory = Memory(gate, Session(tenant, "assistant", "fay", "f1"), timeout_s=LONG_S)
    memory.write("Fay drinks tea.", key="drink")
    calls: tuple[Callable[[], object], ...] = (
        lambda: memory.write("Fay drinks milk.", key="drink"),
        lambda: memory.observe(Origin.WEB, content="a page"),
        lambda: memory.search("What does Fay drink?"),
    )
    for kid, call in zip(kids, calls, strict=True):
        rotation.revoke(keys, kid, wall_ms())
        with pytest.raises(ExpiredKey, match=kid):
            _until_refused(call)
    gate.close()
    for role in roles:
        issue_credential(keys, role, "agent", [tenant], now_ms=wall_ms())
    gate = open_gate(tenant=tenant, home=stack.home)
    again = Memory(gate, Session(tenant, "assistant", "fay", "f2"), timeout_s=LONG_S)
    assert next(one.content for one in again.every().entries).startswith("Fay drinks")
    assert again.write("Fay lives in Rome.").remembered
    gate.close()


def _read(memory: Memory) -> list[str]:
    """Return all texts, once the reader's own connection is there again: it tries once a second."""
    deadline = time.monotonic() + LONG_S
    while True:
        with suppress(*([StoreUnavailable] if time.monotonic() < deadline else [])):
            return sorted(one.content for one in memory.every().entries)
        time.sleep(0.1)


def _until_refused(call: Callable[[], object]) -> None:
    """Call until it raises: files of keys are read at most a second late. What was signed in that second, the gate's
    workers refuse by the key's own state."""
    deadline = time.monotonic() + LONG_S
    while time.monotonic() < deadline:
        try:
            call()
        except WriteRefused as refused:
            if "the key was revoked" not in str(refused):
                raise
        time.sleep(0.02)
