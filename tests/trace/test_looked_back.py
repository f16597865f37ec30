"""What readers of the audit make of look back: a recall's verdict is what placed the entry last."""

import io

from rich.console import Console
from tests.gate.build import RING, T0, axis
from tests.gate.looking import PASSAGE, QUESTION, fill, policy
from tests.trace.audit import SOON_MS, Gate, life_of

from memsluice.cli.render.life import render
from memsluice.events.names import TARGET_HEADER, EventType
from memsluice.gate.policy.wording import WordingPolicy
from memsluice.gate.reasons import words
from memsluice.operations.provenance import withdrawn
from memsluice.operations.provenance.ancestry import Index
from memsluice.operations.provenance.plan import CONTAIN, REMOVE, steps
from memsluice.operations.provenance.sources import parse
from memsluice.operations.provenance.spread import Spread
from memsluice.operations.trace.life import EntryStanding, RecordRole
from memsluice.operations.trace.verdicts import read


def asked() -> Gate:
    """An agent's passage ``note`` lands, has a child, and is taken out by the recall ``asks``."""
    gate = Gate(policy().model_copy(update={"wording": WordingPolicy(action="report")}))
    fill(gate._rows)
    gate.see("runtime", EventType.OBSERVATION, origin="open")
    gate.write("agent", id="note", content=PASSAGE, vector=axis(2))
    gate.write("agent", id="child", parents=("note",), vector=axis(3))
    gate.see("reader", EventType.RECALL, id="asks", question=QUESTION, vector=axis(2), principal="ana")
    return gate


def test_a_trace_says_which_recall_took_it_out_and_how_one_gets_it_back() -> None:
    """Standing is withdrawn, by the recall and its evidence; the recall's own life is that of a recall."""
    gate = asked()
    life = life_of(gate, "note")
    assert life.standing(SOON_MS) is EntryStanding.WITHDRAWN
    assert (life.placing.kind, life.placing.verdict.event_id) == (RecordRole.LOOK_BACK, "asks")
    assert life.lay is life.governing
    shown = io.StringIO()
    Console(file=shown, width=300, highlight=False).print(render(life, SOON_MS, words, {}))
    text = shown.getvalue()
    assert "by look back (recall asks)" in text
    assert "memsluice quarantine release --withdrawn note" in text
    assert "nearness" in text
    assert life_of(gate, "asks").standing(SOON_MS) is EntryStanding.RECORDED
    assert life_of(gate, "child").standing(SOON_MS) is EntryStanding.GUIDANCE


def test_the_audit_record_names_what_it_took_out_in_its_headers() -> None:
    """Whoever looks for an entry opens the recall's record too, and no other recall's."""
    gate = asked()
    assert [value for name, value in gate.audit[-1].headers if name == TARGET_HEADER] == [b"note"]
    gate.see("reader", EventType.RECALL, question="Who is Ana?", vector=axis(9))
    assert TARGET_HEADER not in dict(gate.audit[-1].headers)


def test_look_back_on_another_content_of_the_id_moves_nothing() -> None:
    """A verdict is bound to a content, a recall's as a command's."""
    gate = asked()
    gone = {**gate.verdict(3)["withdraws"][0], "content_digest": "0" * 64}
    gate.audit.pop()
    gate.audit.append(gate.audit[2])
    gate.see("reader", EventType.RECALL, id="late", question="Who is Ana?", vector=axis(9))
    gate.forged(len(gate.audit) - 1, withdraws=[gone], target="note")
    assert life_of(gate, "note").standing(SOON_MS) is EntryStanding.GUIDANCE


def test_lineage_and_blast_radius_know_it_is_out_and_taints() -> None:
    """Both say where it is now and by which recall; a revocation has still to see to it, once."""
    gate = asked()
    index, spread = Index(), Spread("acme", parse("entry:note"))
    for record in gate.audit:
        verdict = read(RING, record)
        assert verdict is not None
        index.take(verdict)
        spread.take(verdict)
    for entry in (index.entries["note"], spread.reached[("note", index.entries["note"].digest)].entry):
        assert (entry.standing(SOON_MS), entry.tainted, entry.looked_back) == (EntryStanding.WITHDRAWN, True, True)
        assert entry.as_data(SOON_MS)["withdrawn_by"] == "asks"
    assert index.entries["child"].standing(SOON_MS) is EntryStanding.GUIDANCE
    for mode in (CONTAIN, REMOVE):
        todo = {step.target: (step.action.value, step.now) for step in steps(spread, mode, SOON_MS)}
        assert todo["note"] == ("revoke", "withdrawn")


class Topic(list):
    """An audit topic in memory."""

    def read(self, partition: int, start: int = 0):
        """Yield its records."""
        yield from self[start:]

    def at(self, partition: int, since_ms: int) -> int:
        """Return the offset of the first record since then."""
        return next((n for n, record in enumerate(self) if record.timestamp_ms >= since_ms), len(self))


def test_what_look_back_took_out_is_listed_with_its_numbers() -> None:
    """Who asked, when, why; a re-delivered verdict counts once; another tenant's look finds none of it."""
    gate = asked()
    topic = Topic([*gate.audit, gate.audit[-1]])
    found = withdrawn.look(topic, RING, "acme", None, 8)
    (one,) = found.entries
    assert (one.event_id, one.recall, one.principal, one.state, found.waiting) == (
        "note",
        "asks",
        "ana",
        "withdrawn",
        1,
    )
    assert one.evidence["parts"]["nearness"] > 0
    assert withdrawn.look(topic, RING, "acme", T0 + 10_000_000, 8).entries == []
    assert withdrawn.look(topic, RING, "globex", None, 8).entries == []
