"""What look back takes away leaves the store: an accepted record that says so, and that *land* believes."""

from dataclasses import replace

from tests.gate.build import PARTITION, RING, TENANT, Core, axis, sealed

from memsluice.envelope.records import StoreRecord, landing_from_bytes
from memsluice.envelope.verdict import Withdrawal
from memsluice.events.models import Zone
from memsluice.events.names import EventType
from memsluice.stages.emit import emit
from memsluice.topics.names import ACCEPTED, AUDIT


def test_what_look_back_takes_back_is_withdrawn_by_a_higher_version() -> None:
    """The record verifies, names the entry's own object, outranks the write's version; a re-delivery sends it again."""
    core = Core()
    landed = core.write(id="e1", content="The tower is green.").verdict
    asked = sealed("reader", EventType.RECALL, 9, vector=axis(2), question="What colour is the tower?")
    verdict = core.recall("What colour is the tower?", vector=axis(2)).verdict
    assert landed.object_id is not None
    gone = Withdrawal(landed.object_id, Zone.GUIDANCE, "e1", landed.content_digest)
    verdict = replace(verdict, withdraws=(gone,), sealed_offset=9, seal_kid="seal-1", admission_kid="admission-1")
    outputs = emit(RING, asked, verdict, PARTITION, ())
    assert [output.topic for output in outputs] == [AUDIT, ACCEPTED]
    withdrawn = landing_from_bytes(RING, TENANT, outputs[1].value or b"")
    assert isinstance(withdrawn, StoreRecord)
    assert (withdrawn.object_id, withdrawn.event_id, withdrawn.version) == (landed.object_id, "e1", 9)
    assert emit(RING, asked, verdict, PARTITION, ()) == outputs
