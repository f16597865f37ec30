"""Outcomes of events, told from the gate's own sealed records in any order of topics."""

from concurrent.futures import Future
from dataclasses import replace

import pytest
from tests.memory.conftest import ORDER

from memsluice.errors import WriteHeld
from memsluice.events.names import DEAD_LETTER_HEADER
from memsluice.events.records import Record
from memsluice.memory import waiting
from memsluice.memory.embedded import EmbeddedGate
from memsluice.memory.memory import Memory
from memsluice.memory.outcome import Outcome, Status
from memsluice.memory.waiting import Waiting
from memsluice.topics.names import AUDIT, DEAD_LETTER, QUARANTINE, STORE

PLACE = ("memory.events.v1", 4, 9)
LETTER = b'{"reason": "clock_skew", "topic": "memory.events.v1", "partition": 4, "offset": 9}'


@pytest.fixture
def heard(gate: EmbeddedGate, memory: Memory) -> dict[str, Record]:
    """Return the audit record ("verdict") and the store's ("stored") of a landed write, and those of a held one."""
    memory.write("Ada drinks tea.", event_id="tea")
    with pytest.raises(WriteHeld):
        memory.write(ORDER, event_id="order")
    read = gate._own.run(lambda: {topic: list(gate._runtime.read(topic)) for topic in (AUDIT, STORE, QUARANTINE)})
    by_id = {dict(one.headers)["memsluice-event-id"]: one for one in read[AUDIT]}
    return {"verdict": by_id[b"tea"], "stored": read[STORE][-1], "held": by_id[b"order"], "kept": read[QUARANTINE][-1]}


@pytest.fixture
def listening(gate: EmbeddedGate) -> Waiting:
    """Return somebody else who waits, with the same keys."""
    return Waiting("acme", gate.waiting._keys)


def told(future: "Future[Outcome]") -> Outcome | None:
    """Return what a future has, without waiting."""
    return future.result(0) if future.done() else None


@pytest.mark.parametrize("order", [("verdict", "stored"), ("stored", "verdict")])
def test_a_write_has_landed_once_verdict_and_store_say_so(heard, listening, order) -> None:
    """One of them is not enough, and whichever comes first, the other completes it."""
    future = listening.expect("tea")
    listening.take(heard[order[0]])
    assert told(future) is None
    listening.take(heard[order[1]])
    found = told(future)
    assert found is not None
    assert (found.status, found.event_id, found.object_id) == (Status.LANDED, "tea", heard["stored"].key.decode())


def test_a_held_write_is_told_by_its_verdict_alone(heard, listening) -> None:
    """Nobody waits for a landing that will not come; other topics say nothing."""
    future = listening.expect("order")
    listening.take(heard["kept"])
    assert told(future) is None
    listening.take(heard["held"])
    found = told(future)
    assert found is not None
    assert (found.status, found.reasons[0], found.remembered) == (Status.HELD, "wording.held", False)


@pytest.mark.parametrize("first", ["letter", "place"])
def test_a_dead_letter_is_told_by_where_its_event_lies(listening, first) -> None:
    """A letter names no event that anybody authenticated: its place is what its sender knows, too."""
    letter = Record(DEAD_LETTER, 4, 0, b"acme", b"?", ((DEAD_LETTER_HEADER, LETTER),), 0)
    future = listening.expect("tea")
    steps = [lambda: listening.take(letter), lambda: listening.placed("tea", PLACE)]
    for step in steps if first == "letter" else reversed(steps):
        assert told(future) is None
        step()
    found = told(future)
    assert found == Outcome("tea", Status.DEAD_LETTER, ("clock_skew",), place=PLACE)


def test_what_the_gate_did_not_seal_is_told_to_nobody(heard, listening) -> None:
    """Who can write to audit or store topic makes no write look landed or held; a letter of no form harms nobody."""
    future = listening.expect("tea")
    for name in ("verdict", "stored"):
        forged = (heard[name].value or b"").replace(b'"sig":"', b'"sig":"A')
        listening.take(replace(heard[name], value=forged))
        listening.take(replace(heard[name], value=b"{"))
        listening.take(replace(heard[name], value=None))
    listening.take(replace(heard["held"], headers=heard["verdict"].headers))  # another event's verdict
    for header in (b"[]", b"?", b'{"topic": [], "partition": "x", "offset": {}, "reason": 5}', LETTER[:-3]):
        listening.take(Record(DEAD_LETTER, 4, 0, None, None, ((DEAD_LETTER_HEADER, header),), 0))
    assert told(future) is None
    listening.take(heard["verdict"])
    listening.take(heard["stored"])
    assert told(future) is not None


def test_another_tenants_records_are_not_listened_to(heard, gate) -> None:
    """An event id of one tenant's says nothing about the same id of another's."""
    other = Waiting("globex", gate.waiting._keys)
    future = other.expect("tea")
    other.take(heard["verdict"])
    other.take(heard["stored"])
    assert told(future) is None


def test_nothing_is_kept_of_who_waits_no_longer(heard, listening) -> None:
    """A process that was told of a million writes, or gave them up, holds none of them."""
    listening.expect("tea")
    listening.placed("tea", PLACE)
    listening.take(heard["verdict"])
    listening.forget("tea")
    assert (listening._expected, listening._landing, listening._places) == ({}, {}, {})
    listening.placed("gone", PLACE)
    assert not listening._places


def test_an_event_that_is_said_again_lands_no_sooner_than_the_first(heard, listening) -> None:
    """The store was away, its caller gave up and says it again: the duplicate's verdict is no landing."""
    listening.expect("tea")
    listening.take(heard["verdict"])
    listening.forget("tea")
    again = listening.expect("tea")
    listening._settle(("acme", "tea"), Outcome("tea", Status.DUPLICATE))
    assert told(again) is None
    listening.take(heard["stored"])
    found = told(again)
    assert found is not None
    assert (found.status, found.object_id) == (Status.LANDED, heard["stored"].key.decode())
    listening.forget("tea")
    third = listening.expect("tea")
    listening._settle(("acme", "tea"), Outcome("tea", Status.DUPLICATE))
    assert told(third) == found


def test_two_who_wait_for_one_event_are_both_told(heard, listening) -> None:
    """One who gives up, as after a timeout, takes nothing from another who said the event again."""
    first, second = listening.expect("tea"), listening.expect("tea")
    listening.take(heard["verdict"])
    listening.forget("tea")
    listening.take(heard["stored"])
    assert first is second
    assert told(second) is not None
    listening.forget("tea")
    assert (listening._waiters, listening._lands_in) == ({}, {})


def test_what_was_heard_early_is_bounded(listening, monkeypatch) -> None:
    """Dead letters of other processes' events are remembered for a while, and no more than a fixed number."""
    monkeypatch.setattr(waiting, "REMEMBERED_MAX", 3)
    for offset in range(9):
        letter = LETTER.replace(b'"offset": 9', b'"offset": %d' % offset)
        listening.take(Record(DEAD_LETTER, 4, offset, None, b"?", ((DEAD_LETTER_HEADER, letter),), 0))
    assert [place[2] for place in listening._letters] == [6, 7, 8]
