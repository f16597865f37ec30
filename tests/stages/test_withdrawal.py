"""What look back takes away leaves the store: an accepted record that says so, and that *land* believes."""

from tests.gate.build import PARTITION, RING, T0, TENANT, Core, axis, sealed

from memsluice.envelope.records import accepted_from_bytes
from memsluice.events.names import EventType
from memsluice.stages.emit import emit
from memsluice.stores.base import expected_id
from memsluice.topics.names import ACCEPTED, AUDIT

NAMED = {
    "event": "e1",
    "namespace": "default",
    "key": None,
    "visibility": "principal",
    "principal": "ana",
    "session": "s1",
    "agent": "planner",
    "tier": 3,
    "kid": "key-agent",
    "channel": "agent",
}


def test_a_withdrawal_verifies_names_the_entrys_object_and_has_expired() -> None:
    """Its digests hold, its object is the write's own, it outranks the write's version, and it is never stored."""
    core = Core()
    landed = core.write(id="e1", content="The tower is green.")
    asked = sealed("reader", EventType.RECALL, 9, vector=axis(2), question="What colour is the tower?")
    verdict = core.recall("What colour is the tower?", vector=axis(2)).record
    verdict |= {"withdraws": [NAMED], "sealed_offset": 9, "decided_ms": T0, "vector_digest": asked.vector_digest}
    verdict |= {"seal_kid": "seal-1", "admission_kid": "admission-1"}
    outputs = emit(RING, asked, verdict, PARTITION, ())
    assert [output.topic for output in outputs] == [AUDIT, ACCEPTED]
    accepted = accepted_from_bytes(RING, TENANT, outputs[1].value or b"")
    assert (accepted.content, accepted.admission.event_id, accepted.admission.version) == ("", "e1", 9)
    assert accepted.admission.object_id == expected_id(accepted.admission)
    assert accepted.admission.expires_ms == T0
    assert accepted.admission.object_id == landed.verdict.object_id
    assert emit(RING, asked, verdict, PARTITION, ()) == outputs  # a re-delivery sends the same bytes
