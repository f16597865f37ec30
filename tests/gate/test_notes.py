"""Notes about held writes: told in the audit, bounded, and deciding nothing; claims keep two reviewers apart."""

from typing import Any

import orjson
import pytest
from tests.gate.build import T0, Core
from tests.gate.test_refused import core_of, refused
from tests.gate.test_replay import replay, row
from tests.gate.test_review import held, order

from memsluice.envelope.verdict import Decision, Verdict
from memsluice.gate.commands import notes

ANOTHER = "reviewer-2"


def note(core: Core, entry: Any, who: str = "reviewer", text: str = "", **parameters: str) -> Verdict:
    """Note something about an entry, now or at ``at``."""
    more = {"append_ms": int(parameters.pop("at"))} if "at" in parameters else {}
    return order(core, "note", entry, who, reason=text, parameters=parameters, **more).verdict


def told(verdict: Verdict) -> Any:
    """Return what a verdict says of a note."""
    assert (verdict.decision, verdict.findings[-1].code) == (Decision.RECORD, "notes.noted")
    return verdict.findings[-1].detail


def test_a_note_is_in_the_audit_with_how_it_left_things() -> None:
    """Its text, and whom the write is assigned to and who claims it from then on, whoever said so."""
    core = Core()
    entry = held(core)
    assert told(note(core, entry, text="Asked Ana.", assignee="bea")) == {"note": "Asked Ana.", "assignee": "bea"}
    verdict = note(core, entry, claim_s="900")
    until_ms = verdict.decided_ms + 900_000
    claim = {"claimed_by": "key-reviewer", "claim_until_ms": until_ms}
    assert told(verdict) == {"note": "", "assignee": "bea", **claim}
    assert told(note(core, entry, ANOTHER, "Waiting for her.")) == {
        "note": "Waiting for her.", "assignee": "bea", **claim,
    }  # fmt: skip
    assert told(note(core, entry, claim_s="0", assignee="-")) == {"note": "", "assignee": ""}
    assert row(core)["desk"] == {"notes": 4}


def test_a_note_decides_nothing() -> None:
    """State, reasons, label and the principal's share are as they were; what was rejected has notes, too."""
    core = Core()
    entry = held(core)
    before, share = row(core), core.rows[b"acme\0held\0ana"]
    note(core, entry, text="Asked Ana.")
    after = row(core)
    after.pop("desk")
    assert (after, core.rows[b"acme\0held\0ana"]) == (before, share)
    order(core, "reject", entry)
    told(note(core, entry, text="She says it was not hers."))
    core = core_of()
    told(note(core, refused(core), text="Too long by a word."))


def test_no_text_of_a_note_is_kept_in_a_row() -> None:
    """The state counts notes; what they say is on the audit topic alone."""
    core = Core()
    entry = held(core)
    note(core, entry, text="a remarkable remark")
    assert not any(b"remark" in value for value in core.rows.values())


@pytest.mark.parametrize("action", ["release", "reject"])
def test_a_claim_holds_off_the_decisions_of_others(action: str) -> None:
    """Another reviewer is told who claims it until when; who claimed it decides, and so does who says that the claim is
    set aside, and anybody once it is over or given back."""
    core = Core()
    entry = held(core)
    until_ms = note(core, entry, claim_s="900").decided_ms + 900_000
    verdict = order(core, action, entry, ANOTHER).verdict
    assert (verdict.reasons, verdict.findings[-1].detail) == (
        ("review.claimed",), {"by": "key-reviewer", "until_ms": until_ms},
    )  # fmt: skip
    refusing = {"parameters": {"despite_claim": "no"}}
    assert order(core, action, entry, ANOTHER, **refusing).verdict.reasons == ("review.claimed",)
    despite: dict[str, Any] = {"parameters": {"despite_claim": "yes"}}
    for who, more in (("reviewer", {}), (ANOTHER, despite), (ANOTHER, {"append_ms": until_ms})):
        core = Core()
        entry = held(core)
        assert note(core, entry, claim_s="900").decided_ms + 900_000 == until_ms
        assert order(core, action, entry, who, **more).verdict.decision is not Decision.REJECT
    core = Core()
    entry = held(core)
    note(core, entry, claim_s="900")
    note(core, entry, claim_s="0")
    assert order(core, action, entry, ANOTHER).verdict.decision is not Decision.REJECT


def test_a_claim_is_nobody_elses_to_take_or_give_back() -> None:
    """Another reviewer's claim stands until it is over, or is set aside in so many words; then theirs does."""
    core = Core()
    entry = held(core)
    note(core, entry, claim_s="900")
    for claim_s in ("0", "60"):
        assert note(core, entry, ANOTHER, claim_s=claim_s).reasons == ("review.claimed",)
    assert told(note(core, entry, ANOTHER, claim_s="60", despite_claim="yes"))["claimed_by"] == "key-reviewer-2"
    assert order(core, "reject", entry).verdict.reasons == ("review.claimed",)


def test_a_claim_stops_no_policy_and_no_revocation() -> None:
    """A replay decides by the policy in force, and who distrusts a write says so, whoever looks at it."""
    core = Core()
    entry = held(core)
    note(core, entry, claim_s="900")
    assert replay(core, entry).verdict.decision is Decision.QUARANTINE
    assert order(core, "revoke", entry, ANOTHER).verdict.decision is Decision.RECORD


def test_a_decision_ends_a_claim() -> None:
    """Taken back later, the write is nobody's: the assignment stays, which is a person's and not a minute's."""
    core = Core()
    entry = held(core)
    note(core, entry, claim_s="900", assignee="bea")
    order(core, "reject", entry)
    order(core, "reopen", entry, ANOTHER)
    assert row(core)["desk"] == {"notes": 1, "assignee": "bea"}
    assert order(core, "release", entry, ANOTHER).verdict.decision is Decision.ACCEPT


@pytest.mark.parametrize("claim_s", ["-1", "1.5", "a day", "٣", str(notes.CLAIM_S_MAX + 1), "9" * 100])
def test_a_claim_has_a_bound_and_a_form(claim_s: str) -> None:
    """No claim lasts for good, and what is no number of seconds is refused by its field."""
    core = Core()
    verdict = note(core, held(core), claim_s=claim_s)
    assert verdict.reasons == ("commands.bad_parameter",)
    assert verdict.findings[-1].detail == {"field": "parameters.claim_s"}


def test_notes_are_bounded_a_write_and_a_day(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody fills the audit with notes: beyond a number a write, and one a tenant and day, they are refused."""
    monkeypatch.setattr(notes, "NOTES_MAX", 2)
    monkeypatch.setattr(notes, "NOTES_PER_DAY_MAX", 3)
    core = Core()
    first, second = held(core), held(core)
    assert [note(core, first, text="n").reasons for _ in range(3)] == [(), (), ("notes.full",)]
    assert [note(core, second, text="n").reasons for _ in range(2)] == [(), ("rates.commands",)]
    assert note(core, second, text="n", at=str(T0 + 2 * 86_400_000)).reasons == ()


@pytest.mark.parametrize(
    ("who", "fields", "code"),
    [
        ("reviewer", {"reason": ""}, "notes.empty"),
        ("reviewer", {"digest": "0" * 64}, "review.other_digest"),
        ("reviewer", {"target": "e99"}, "review.unknown"),
        ("operator", {}, "commands.not_permitted"),
        ("user", {}, "commands.not_permitted"),
    ],
)
def test_a_note_that_is_none_is_refused(who: str, fields: Any, code: str) -> None:
    """Nothing said, another content, an unknown write, another role: refused with its own reason."""
    core = Core()
    entry = held(core)
    assert order(core, "note", entry, who, **{"reason": "n", **fields}).verdict.reasons == (code,)
    assert "desk" not in orjson.loads(core.rows[b"acme\0review\0e0"])


def test_what_was_released_is_no_held_write_any_more() -> None:
    """There is nothing left to decide about it."""
    core = Core()
    entry = held(core)
    order(core, "release", entry, id="c1")
    verdict = note(core, entry, text="n")
    assert (verdict.reasons, verdict.findings[-1].detail) == (("notes.released",), {"by": "c1"})
