"""Facts beside the facts of others: what contradicts, what corroborates, and who can't make it so."""

from typing import Any

import pytest
from tests.gate.build import TENANT, classifier
from tests.gate.landed import Shop

from memsluice.envelope.verdict import Decision, Verdict
from memsluice.events.facts import FACTS_MAX, Fact, render
from memsluice.gate.checks.claims import EACH_MAX, SAID_MAX
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.policy.model import default, laid_over
from memsluice.gate.state.kinds import CLAIM
from memsluice.gate.state.windows import DAY_MS

CONTRADICTS, CORROBORATED = "claims.contradicts", "claims.corroborated"
SIX, NINE = ("depot", "opens at", "six"), ("depot", "opens at", "nine")


def shop(**graph: Any) -> Shop:
    """Return a shop that tells of facts, holds nothing for its wording and nobody for his rate."""
    told = {"action": "report", **graph}
    made = Shop(laid_over(default().default, {"graph": told, "writes_per_day": {"user_observed": None}}))
    made.memory, made.model = Memory.empty(50, 50), classifier()
    return made


def say(core: Shop, who: str, *facts: tuple[str, str, str], channel: str = "user", **fields: Any) -> Verdict:
    """Return the verdict on one principal's facts, in a session of their own."""
    content = render(Fact(*one) for one in facts)
    return core.write(channel, content, kind="facts", principal=who, session=f"of-{who}", **fields).verdict


def detail(verdict: Verdict, code: str) -> dict[str, Any]:
    """Return a finding's details."""
    return next(dict(finding.detail) for finding in verdict.findings if finding.code == code)


def agreed(**fields: Any) -> Shop:
    """Return a shop in which two people said the same of the depot."""
    core = shop()
    for who in ("ana", "ben"):
        assert say(core, who, SIX, **fields).decision is Decision.ACCEPT
    return core


def test_what_two_others_agree_on_is_not_contradicted_unseen() -> None:
    """The verdict names the line, how many others there are and their entries; the write lands."""
    verdict = say(agreed(), "cleo", ("yard", "is", "closed"), NINE)
    assert (verdict.decision, verdict.reasons) == (Decision.ACCEPT, ())
    assert detail(verdict, CONTRADICTS) == {"lines": [2], "principals": 2, "against": ["e0", "e1"]}


@pytest.mark.parametrize("subject", ["DEPOT", "The  depot", "depot.", "depot\ufe0f", "d\u0435pot"])
def test_the_same_subject_in_other_letters_is_the_same(subject: str) -> None:
    """Case, article, an end, invisible characters and look-alikes, as screening reads them."""
    assert say(agreed(), "cleo", (subject, "opens at", "nine")).has(CONTRADICTS)
    assert say(agreed(), "cleo", (subject, "opens at", "Six.")).has(CORROBORATED)


def test_one_principal_s_word_binds_nobody() -> None:
    """However often one says it, and over whatever channel: agreement is of principals."""
    core = shop()
    for _ in range(3):
        say(core, "ana", SIX)
    core.observe("open", principal="ana", session="of-ana")
    say(core, "ana", SIX, channel="agent")
    verdict = say(core, "ben", NINE)
    assert not verdict.has(CONTRADICTS)
    assert not say(core, "ana", SIX).has(CORROBORATED)


def test_the_greater_part_says_what_is_so() -> None:
    """One who says the same as a liar does not end the contradiction; as many as say otherwise do."""
    core = agreed()
    assert say(core, "cleo", NINE).has(CONTRADICTS)
    assert detail(say(core, "dan", NINE), CONTRADICTS)["principals"] == 2
    verdict = say(core, "eva", NINE)
    assert not verdict.has(CONTRADICTS)
    assert not verdict.has(CORROBORATED), "two against two"
    assert detail(say(core, "finn", NINE), CORROBORATED) == {"principals": 3}


def test_all_of_a_write_must_be_said_to_be_corroborated() -> None:
    """One line that nobody else said leaves the write uncorroborated."""
    core = agreed()
    assert say(core, "cleo", SIX).has(CORROBORATED)
    assert not say(core, "dan", SIX, ("yard", "is", "wet")).has(CORROBORATED)


def test_a_correction_counts_and_makes_no_relation_many_valued() -> None:
    """Of each principal the last word counts; two who correct themselves leave the rule on for everybody else."""
    core = shop()
    for who in ("ana", "ben"):
        say(core, who, ("office", "opens at", "six"))
        say(core, who, ("office", "opens at", "nine"))
        say(core, who, SIX)
    assert say(core, "cleo", ("office", "opens at", "six")).has(CONTRADICTS)
    assert say(core, "cleo", NINE).has(CONTRADICTS)


def test_a_relation_with_several_objects_contradicts_nothing() -> None:
    """Two principals said several things of a subject in one write each; after one of these is gone, it does again."""
    core = shop()
    for who in ("ana", "ben"):
        say(core, who, ("tom", "likes", "tea"), ("tom", "likes", "rice"))
        say(core, who, ("eva", "likes", "tea"))
    assert not say(core, "cleo", ("eva", "likes", "milk")).has(CONTRADICTS)
    core.order("revoke", "e2")
    assert say(core, "dan", ("eva", "likes", "milk")).has(CONTRADICTS)


@pytest.mark.parametrize("gone", ["revoked", "replaced", "expired", "reused"])
def test_what_lies_in_guidance_no_more_agrees_with_nobody(gone: str) -> None:
    """An entry that was revoked, replaced under its key, has expired, or whose id another write has by now."""
    core = agreed(key="gate") if gone == "replaced" else agreed()
    now = 1_780_000_000_000
    if gone == "revoked":
        core.order("revoke", "e1")
    elif gone == "replaced":
        say(core, "ben", ("yard", "is", "wet"), key="gate")
    else:
        now += 31 * DAY_MS
    if gone == "reused":
        for event_id in ("e0", "e1"):
            say(core, "mallory", ("moon", "is", "far"), id=event_id, append_ms=now)
    assert not say(core, "cleo", NINE, append_ms=now + 1_000).has(CONTRADICTS)


def test_an_earlier_word_of_one_whose_later_is_gone_counts() -> None:
    """Said twice and revoked once, it is still said."""
    core = agreed()
    say(core, "ana", SIX)
    core.order("revoke", "e2")
    assert say(core, "cleo", NINE).has(CONTRADICTS)


def test_the_same_events_give_the_same_findings() -> None:
    """The same events give the same findings: the rule is a function of the rows."""
    one, other = agreed(), agreed()
    assert say(one, "cleo", NINE).findings == say(other, "cleo", NINE).findings


@pytest.mark.parametrize(
    "fields", [{"channel": "tool"}, {"namespace": "other"}, {"visibility": "session"}], ids=["tool", "other", "session"]
)
def test_what_is_outside_elsewhere_or_for_a_session_alone_agrees_with_nobody(fields: dict[str, Any]) -> None:
    """A tool's facts, those of another namespace, and what only a session is given."""
    core = shop()
    for who in ("ana", "ben"):
        say(core, who, SIX, **fields)
    assert not say(core, "cleo", NINE).has(CONTRADICTS)


@pytest.mark.parametrize("subject", ["user", "I", "my wife", "the customer", "name"])
def test_everybody_s_own_is_nobody_else_s(subject: str) -> None:
    """Two users who live in Oslo say nothing about where a third one lives."""
    core = shop()
    for who in ("ana", "ben"):
        say(core, who, (subject, "lives in", "Oslo"))
    assert not say(core, "cleo", (subject, "lives in", "Rome")).has(CONTRADICTS)


def test_what_was_redacted_is_not_compared() -> None:
    """Two passwords that were taken out are not the same one."""
    core = shop()
    for who in ("ana", "ben"):
        say(core, who, ("wifi", "password is", "[redacted: password]"))
    assert not say(core, "cleo", ("wifi", "password is", "on the fridge")).has(CONTRADICTS)
    assert not say(core, "cleo", ("wifi", "password is", "[redacted: password]")).has(CORROBORATED)


def test_as_shipped_nothing_is_remembered() -> None:
    """Ignored: no row, no word; nor of a sentence with bars in it that is called no facts."""
    core = shop(action="ignore")
    for who in ("ana", "ben"):
        say(core, who, SIX)
    assert not say(core, "cleo", NINE).has(CONTRADICTS)
    on = shop()
    on.write("user", "depot | opens at | six")
    for made in (core, on):
        assert not [key for key in made.rows if key.startswith(f"{TENANT}\0graph\0".encode())]
    assert default().default.graph.action == "ignore"


def test_who_says_much_pushes_out_himself() -> None:
    """One principal keeps the last few words of a claim; what others said once stays, whoever says how much."""
    core = agreed()
    for number in range(8):
        core.observe("open")
        say(core, f"mallory-{number}", *(("depot", "opens at", f"{number}-{at}") for at in range(FACTS_MAX)))
    (claim,) = [CLAIM.load(core.rows[key]) for key in core.rows if key.startswith(CLAIM.key(TENANT))]
    assert len(claim.said) == SAID_MAX
    assert max(sum(one.by == other.by for one in claim.said) for other in claim.said) <= EACH_MAX
    assert {"e0", "e1"} <= {one.entry for one in claim.said}


def test_what_lies_there_no_more_goes_first() -> None:
    """Rows are full of entries that were revoked: a living one is not pushed out by them."""
    core = shop()
    for number in range(SAID_MAX - 1):
        say(core, f"gone-{number}", ("depot", "opens at", f"{number}"), append_ms=1_780_000_000_000)
    later = 1_780_000_000_000 + 31 * DAY_MS
    for number, who in enumerate(("ana", "ben")):
        say(core, who, SIX, append_ms=later + number)
    say(core, "cleo", NINE, append_ms=later + 5)
    (claim,) = [CLAIM.load(core.rows[key]) for key in core.rows if key.startswith(CLAIM.key(TENANT))]
    assert len(claim.said) == 3
