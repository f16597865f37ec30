"""*screen* on a recall that carries an entry: what is opened and sent, the same bytes again, hostile records."""

import base64
from dataclasses import replace
from typing import Any

import orjson
import pytest
from tests.gate.build import RING, TENANT, MemoryRows, sealed
from tests.stages.test_screen import apply, record, write

from memsluice.envelope.records import Accepted, accepted_to_bytes, landing_from_bytes
from memsluice.envelope.seals import RELEASED, admission_sign
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.events.names import EventType
from memsluice.events.records import Record
from memsluice.gate.policy.model import default, laid_over
from memsluice.stages.base import Step
from memsluice.stages.emit import carried
from memsluice.stages.screen import ScreenStage
from memsluice.topics.names import ACCEPTED

POLICY = laid_over(default().default, {"renew_on_use": {"enabled": True, "least_elapsed": 0}})
DAY_MS = 86_400_000


def stage() -> ScreenStage:
    """Return *screen* under a policy that renews by use."""
    return ScreenStage(lambda: RING, lambda _tenant: POLICY, 8, now_ms=lambda: 1)


def say(rows: MemoryRows, who: str, kind: EventType, offset: int, **fields: Any) -> Step:
    """Have one event decided, and its rows kept."""
    step = stage().process(record(sealed(who, kind, offset, **fields), offset), rows)
    apply(rows, step)
    return step


def landed(rows: MemoryRows) -> str:
    """Have a write of Ana's land and be shared, and a session of Ben's opened; return the entry's accepted record."""
    first = stage().process(record(write(0), 0), rows)
    apply(rows, first)
    held = _accepted(first)
    digest = landing_from_bytes(RING, TENANT, held.encode()).admission.content_digest
    say(rows, "runtime", EventType.OBSERVATION, 1, origin="open", session="b1", principal="ben")
    order = {"action": "promote", "target": "e0", "digest": digest, "expires_at": "2030-01-01T00:00:00Z", "held": held}
    return _accepted(say(rows, "reviewer", EventType.COMMAND, 2, **order))


def _accepted(step: Step) -> str:
    return [one.value or b"" for one in step.outputs if one.topic == ACCEPTED][-1].decode()


def use(text: str, renews: str | None = None, offset: int = 3) -> Record:
    """Return the sealed recall by which Ben was given the entry, carrying it or ``renews``."""
    given = landing_from_bytes(RING, TENANT, text.encode()).admission
    returned = {"object_id": given.object_id, "version": given.version, "event_id": given.event_id, "tier": 3,
                "taint": False}  # fmt: skip
    asked = {"question": "Which note?", "principal": "ben", "session": "b1", "returned": (returned,)}
    return record(sealed("reader", EventType.RECALL, offset, **asked, renews=renews or text), offset)


def codes(step: Step) -> set[str]:
    """Return what was found."""
    assert isinstance(step.verdict, Verdict)
    return {one.code for one in step.verdict.findings}


def test_what_is_renewed_is_sent_whole_under_a_new_signature() -> None:
    """The record that *land* reads has content, vector and a new admission, which keeps by what it was let in."""
    rows = MemoryRows()
    text = landed(rows)
    step = stage().process(use(text), rows)
    assert "renewing.renewed" in codes(step)
    assert [one.topic for one in step.outputs] == ["memory.audit.v1", ACCEPTED]
    before, after = (landing_from_bytes(RING, TENANT, one.encode()) for one in (text, _accepted(step)))
    assert isinstance(before, Accepted)
    assert isinstance(after, Accepted)
    assert (after.content, after.vector_text) == (before.content, before.vector_text)
    assert after.admission.expires_ms - before.admission.expires_ms == 3_000
    assert (after.admission.version, after.admission.decision) == (3, before.admission.decision)
    assert before.admission.decision == Decision.ACCEPT


def test_what_a_person_let_in_keeps_saying_so() -> None:
    """Readers flag its wording instead of withholding it: a renewal changes nothing of that."""
    rows = MemoryRows()
    text = landed(rows)
    entry = landing_from_bytes(RING, TENANT, text.encode())
    assert isinstance(entry, Accepted)
    marked = admission_sign(RING, "seal-1", "admission-1", replace(entry.admission, decision=RELEASED))
    released = accepted_to_bytes(marked, entry.content, entry.vector_text).decode()
    after = landing_from_bytes(RING, TENANT, _accepted(stage().process(use(text, released), rows)).encode())
    assert after.admission.decision == RELEASED


def test_a_redelivered_recall_renews_nothing_more() -> None:
    """Again at its own offset: one renewal, and nothing is sent."""
    rows = MemoryRows()
    asked = use(landed(rows))
    apply(rows, stage().process(asked, rows))
    again = stage().process(asked, rows)
    assert (list(again.outputs), list(again.changes)) == ([], [])


def _bent(text: str, **changes: Any) -> str:
    """Return the record with another admission, signed by nobody anew."""
    value = orjson.loads(text)
    said = orjson.loads(base64.b64decode(value["admission"]["payload"]))
    value["admission"]["payload"] = base64.b64encode(orjson.dumps(said | changes)).decode()
    return orjson.dumps(value).decode()


def hostile(text: str) -> dict[str, str]:
    """Return what a reader might carry instead."""
    value = orjson.loads(text)
    other = landing_from_bytes(RING, TENANT, text.encode())
    assert isinstance(other, Accepted)
    foreign = admission_sign(RING, "seal-1", "admission-1", replace(other.admission, tenant="globex"))
    return {
        "longer": _bent(text, expires_ms=4_000_000_000_000),
        "another tier": _bent(text, tier=1),
        "other content": orjson.dumps(value | {"content": "Something else."}).decode(),
        "other vector": orjson.dumps(value | {"vector": "AAAA"}).decode(),
        "no base64": orjson.dumps(value | {"vector": "%"}).decode(),
        "no envelope": orjson.dumps(value | {"admission": [1]}).decode(),
        "no content": orjson.dumps({"admission": value["admission"]}).decode(),
        "another tenant's": accepted_to_bytes(foreign, other.content, other.vector_text).decode(),
        "a number": "17",
        "no JSON": "{{",
        "deep": "[" * 5_000 + "]" * 5_000,
        "a withdrawal": '{"withdrawal": {}}',
        "not a text": orjson.dumps(value | {"content": {"a": 1}}).decode(),
    }


@pytest.mark.parametrize("name", hostile(landed(MemoryRows())))
def test_what_the_gate_did_not_sign_renews_nothing_and_stops_nothing(name: str) -> None:
    """Whatever a reader carries: the recall is recorded, nothing lands, and *screen* goes on."""
    rows = MemoryRows()
    text = landed(rows)
    before = rows[f"{TENANT}\0entry\0e0".encode()]
    step = stage().process(use(text, hostile(text)[name]), rows)
    apply(rows, step)
    assert isinstance(step.verdict, Verdict)
    assert step.verdict.decision is Decision.RECORD
    assert "renewing.unsealed" in codes(step)
    assert [one.topic for one in step.outputs] == ["memory.audit.v1"]
    assert rows[f"{TENANT}\0entry\0e0".encode()] == before
    after = stage().process(use(text, offset=4), rows)
    assert "renewing.renewed" in codes(after)


def test_a_recall_carries_no_held_write() -> None:
    """A sealed event is none that landed: only a command's record is looked at for one."""
    rows = MemoryRows()
    text = landed(rows)
    held = record(write(0), 0).value
    asked = use(text, (held or b"").decode())
    assert "renewing.unsealed" in codes(stage().process(asked, rows))
    assert carried(RING, write(0)) is None
