"""What readers of the audit make of a renewal by use: a recall's verdict is what placed the entry last."""

import io

from rich.console import Console
from tests.gate.build import PARTITION, RING, TENANT, axis
from tests.trace.audit import Gate, life_of

from memsluice.cli.render.life import render
from memsluice.envelope.records import Accepted, landing_from_bytes
from memsluice.events.headers import EVENT_ID
from memsluice.events.names import TARGET_HEADER, EventType
from memsluice.events.records import Record
from memsluice.gate.policy.model import default, laid_over
from memsluice.gate.reasons import words
from memsluice.operations.provenance import slot
from memsluice.operations.provenance.ancestry import Index
from memsluice.operations.provenance.carrying import accepted_records
from memsluice.operations.provenance.plan import REMOVE, steps
from memsluice.operations.provenance.sources import parse
from memsluice.operations.provenance.spread import Spread
from memsluice.operations.trace.life import EntryStanding, RecordRole
from memsluice.operations.trace.verdicts import read
from memsluice.topics.names import ACCEPTED

DAY_MS = 86_400_000
POLICY = laid_over(default().default, {"renew_on_use": {"enabled": True, "least_elapsed": 0}})
T_USE_MS = 1_780_000_000_000 + 29 * DAY_MS
"""A day before the entry's first end."""


def used() -> Gate:
    """Ana's ``note`` is shared, Ben is given it (``asks``), and so it holds longer."""
    gate = Gate(POLICY)
    gate.write("user", id="note", vector=axis(2))
    entry = _accepted(gate)
    gate.see("reviewer", EventType.COMMAND, id="shares", action="promote", target="note",
             held=gate.accepted[-1].decode(), digest=entry.admission.content_digest,
             expires_at="2030-01-01T00:00:00Z")  # fmt: skip
    gate.see("runtime", EventType.OBSERVATION, origin="open", session="b1", principal="ben", append_ms=T_USE_MS - 1)
    given = _accepted(gate).admission
    returned = {"object_id": given.object_id, "version": given.version, "event_id": "note", "tier": 3, "taint": False}
    gate.see("reader", EventType.RECALL, id="asks", question="Which train?", principal="ben", session="b1",
             returned=(returned,), renews=gate.accepted[-1].decode(), append_ms=T_USE_MS)  # fmt: skip
    return gate


def _accepted(gate: Gate) -> Accepted:
    landing = landing_from_bytes(RING, TENANT, gate.accepted[-1])
    assert isinstance(landing, Accepted)
    return landing


def test_a_trace_says_which_recall_renewed_it_and_until_when() -> None:
    """After its first end it is guidance still; the recall's own life is that of a recall, which leaves no entry."""
    gate = used()
    late_ms = T_USE_MS + 2 * DAY_MS
    life = life_of(gate, "note")
    assert (life.placing.kind, life.placing.verdict.event_id) == (RecordRole.USED, "asks")
    assert (life.standing(late_ms), life.placed.expires_ms) == (EntryStanding.GUIDANCE, T_USE_MS + 30 * DAY_MS)
    assert life.standing(T_USE_MS + 30 * DAY_MS) is EntryStanding.EXPIRED
    shown = io.StringIO()
    Console(file=shown, width=300, highlight=False).print(render(life, late_ms, words, {}))
    assert "by the recall asks" in shown.getvalue()
    assert "renewed by use: recall asks, of ben" in shown.getvalue()
    own = life_of(gate, "asks")
    assert own.standing(late_ms) is EntryStanding.RECORDED
    shown = io.StringIO()
    Console(file=shown, width=300, highlight=False).print(render(own, late_ms, words, {}))
    assert "nothing to land" in shown.getvalue()


def test_the_audit_record_names_what_it_renewed_in_its_headers() -> None:
    """Whoever looks for an entry opens the recall's record too."""
    gate = used()
    assert [value for name, value in gate.audit[-1].headers if name == TARGET_HEADER] == [b"note"]


def test_lineage_and_blast_radius_know_where_it_is_and_an_order_carries_the_renewed_version() -> None:
    """Both say until when it holds; what a revocation or another command then carries is the record of that version,
    with its content."""
    gate, late_ms = used(), T_USE_MS + 2 * DAY_MS
    index, spread = Index(), Spread("acme", parse("entry:note"))
    for record in gate.audit:
        verdict = read(RING, record)
        assert verdict is not None
        index.take(verdict)
        spread.take(verdict)
    reached = spread.reached[("note", index.entries["note"].digest)].entry
    for entry in (index.entries["note"], reached):
        assert (entry.standing(late_ms), entry.tainted, entry.replaced) == (EntryStanding.GUIDANCE, False, False)
        assert entry.placed.sealed_offset == _accepted(gate).admission.version
    assert {step.target: step.action.value for step in steps(spread, REMOVE, late_ms)}["note"] == "withdraw"
    wanted = {"note": reached.placed.sealed_offset}
    carried = accepted_records(Topic(gate), RING, TENANT, wanted, 0, 8)["note"]
    assert carried == (gate.accepted[-1].decode(), _accepted(gate))
    there = slot.occupant(Audit(gate.audit), RING, TENANT, _accepted(gate).admission.object_id, late_ms, 8)
    assert there == ("note", 3)


class Topic:
    """The accepted topic in memory."""

    def __init__(self, gate: Gate) -> None:
        self.records = [
            Record(ACCEPTED, PARTITION, number, TENANT.encode(), value, ((EVENT_ID, b"note"),), 0)
            for number, value in enumerate(gate.accepted)
        ]

    def read(self, partition: int, start: int = 0):
        """Yield its records."""
        yield from self.records[start:]

    def at(self, partition: int, since_ms: int) -> int:
        """Begin at the first."""
        return 0


class Audit(list):
    """An audit topic in memory."""

    def read(self, partition: int, start: int = 0):
        """Yield its records."""
        yield from self[start:]
