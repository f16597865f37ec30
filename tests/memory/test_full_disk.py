"""An embedded gate on a disk that fills up: what it says, and what is there afterwards."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.devstack.small_disk import Filler, mounted
from tests.memory.conftest import ADA
from tests.patience import HANG_S

from memsluice.errors import BrokerError, NotDelivered, StoreError
from memsluice.memory.embedded import EmbeddedGate
from memsluice.memory.memory import Memory
from memsluice.memory.outcome import Status

DISK_MIB = 24
WRITES_MAX = 40
LEFT = (0, 16_384, 65_536, 131_072)
"""Bytes that are free when it goes on writing: it fails at the append, in a stage, or at the store."""
pytestmark = pytest.mark.mounts


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Give a small disk."""
    with mounted(tmp_path / "disk", DISK_MIB) as folder:
        yield folder


def said(number: int) -> tuple[str, str]:
    """Return the event id, which is the key, and the text of a write."""
    return f"n{number}", f"Ada keeps {number + 3} bees."


def until_full(memory: Memory, kept: dict[str, str]) -> None:
    """Write until it raises, and note what returned."""
    for _ in range(WRITES_MAX):
        name, text = said(len(kept))
        memory.write(text, key=name, event_id=name)
        kept[name] = text


def test_a_full_disk_is_told_and_loses_nothing_that_was_acknowledged(disk: Path, encoder) -> None:
    """Wherever in a write it strikes, the error is one of ours and says so; with room the gate goes on by itself, what
    returned is there, and what failed may be said again under its id."""
    filler = Filler(disk)
    gate = EmbeddedGate.open_local(tenant="acme", home=disk / "home", encoder=encoder)
    memory, kept = Memory(gate, ADA, timeout_s=HANG_S), dict[str, str]()
    memory.write("Ada has a garden.")
    for left in LEFT:
        filler.leave(left)
        with pytest.raises((BrokerError, NotDelivered, StoreError), match="its disk"):
            until_full(memory, kept)
        filler.free()
        assert {key: one.content for key, one in memory.read(list(kept)).items()} == kept
        name, text = said(len(kept))
        assert memory.write(text, key=name, event_id=name).status is Status.LANDED
        kept[name] = text
    gate.close()
    again = EmbeddedGate.open_local(tenant="acme", home=disk / "home", encoder=encoder)
    assert {key: one.content for key, one in Memory(again, ADA).read(list(kept)).items()} == kept
    again.close()


def test_a_gate_that_finds_a_full_disk_says_so(disk: Path, encoder) -> None:
    """There is no room to begin: an error of ours, at the opening or at the first write; with room all works."""

    def written() -> bool:
        gate = EmbeddedGate.open_local(tenant="acme", home=disk / "home", encoder=encoder)
        try:
            return Memory(gate, ADA).write("Ada drinks tea.").remembered
        finally:
            gate.close()

    EmbeddedGate.open_local(tenant="acme", home=disk / "home", encoder=encoder).close()
    filler = Filler(disk)
    filler.leave(0)
    with pytest.raises((BrokerError, StoreError), match="free some space on its disk"):
        written()
    filler.free()
    assert written()
