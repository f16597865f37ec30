"""*screen* on commands about landed entries: two records out, the same bytes again, any crash in between."""

from dataclasses import replace

import pytest
from tests.gate.build import PARTITION, RING, TENANT, MemoryRows, axis, sealed
from tests.stages.test_screen import apply, record, stage, write
from tests.stages.test_screen_review import by_topic, reasons

from memsluice.envelope.records import Accepted, StoreRecord, landing_from_bytes
from memsluice.errors import StateError
from memsluice.events.names import EventType
from memsluice.stages.emit import emit
from memsluice.topics.names import ACCEPTED, AUDIT


def promotion(offset: int, held: str | None, digest: str, **fields):
    """Return a reviewer's promotion of ``e0``, sealed."""
    base = {"action": "promote", "target": "e0", "digest": digest, "expires_at": "2030-01-01T00:00:00Z", "held": held}
    return sealed("reviewer", EventType.COMMAND, offset, **{**base, **fields})


def landed(rows: MemoryRows, offset: int = 0) -> tuple[str, str]:
    """Have a write land; return its accepted record as text, and its content's digest."""
    step = stage().process(record(write(offset), offset), rows)
    apply(rows, step)
    value = by_topic(step.outputs)[ACCEPTED].value
    return value.decode(), landing_from_bytes(RING, TENANT, value).admission.content_digest


def test_a_move_withdraws_before_it_lands_and_both_verify() -> None:
    """The old object's withdrawal goes out before the new object, with the same version; only the place differs."""
    rows = MemoryRows()
    held, digest = landed(rows)
    step = stage().process(record(promotion(1, held, digest), 1), rows)
    audit, gone, there = step.outputs
    assert (audit.topic, gone.topic, there.topic) == (AUDIT, ACCEPTED, ACCEPTED)
    before, after = landing_from_bytes(RING, TENANT, gone.value), landing_from_bytes(RING, TENANT, there.value)
    assert isinstance(before, StoreRecord)
    assert isinstance(after, Accepted)
    assert before.version == after.admission.version == 1
    assert before.object_id != after.admission.object_id
    assert (after.admission.event_id, after.admission.kid, after.content) == ("e0", "key-user", "note 0")


def test_a_redelivered_command_moves_nothing_more() -> None:
    """Again at its own offset: one move, and nothing is sent."""
    rows = MemoryRows()
    held, digest = landed(rows)
    command = promotion(1, held, digest)
    apply(rows, stage().process(record(command, 1), rows))
    again = stage().process(record(command, 1), rows)
    assert (list(again.outputs), list(again.changes)) == ([], [])


def test_a_changed_or_foreign_record_moves_nothing() -> None:
    """What the gate did not seal, for this tenant, as it is, is not carried at all."""
    rows = MemoryRows()
    held, digest = landed(rows)
    for other in (held.replace("note 0", "note 9"), "{}", "[]", "no JSON", held[:-20]):
        step = stage().process(record(promotion(1, other, digest), 1), rows)
        assert reasons(step) == ["landed.other_record"]
    step = stage().process(record(promotion(1, held, digest, tenant="globex", vector=axis(1)), 1), rows)
    assert [output.topic for output in step.outputs] == [AUDIT]


def test_lineage_is_in_the_verdicts() -> None:
    """A write's verdict names its parents, a recall's what it returned, an observation's what was seen."""
    rows, screen = MemoryRows(), stage()
    thing = {"object_id": "0" * 36, "version": 1, "event_id": "e0", "tier": 3, "taint": False}
    events = [
        write(0),
        write(1, parents=("e0", "ghost")),
        sealed("runtime", EventType.OBSERVATION, 2, origin="tool"),
        sealed(
            "reader", EventType.RECALL, 3, question="why?", vector=axis(3), returned=[thing, {**thing, "version": 2}]
        ),
    ]
    told = []
    for event in events:
        step = screen.process(record(event, event.position.offset), rows)
        apply(rows, step)
        told.append((step.verdict.parents, step.verdict.returned, step.verdict.origin))
    assert told == [((), (), ""), (("e0", "ghost"), (), ""), ((), (), "tool"), ((), ("e0",), "")]


def test_what_would_land_without_its_record_stops_the_worker() -> None:
    """The verdict says that an entry moves, and the record that it moves with is gone: nothing half is sent."""
    rows = MemoryRows()
    held, digest = landed(rows)
    command = promotion(1, held, digest)
    verdict = stage().process(record(command, 1), rows).verdict
    assert verdict is not None
    bare = replace(command, payload=command.payload.model_copy(update={"held": None}))
    with pytest.raises(StateError, match="carries none"):
        emit(RING, bare, verdict, PARTITION, (), None)
