"""How much of its session taints an agent's write: the policy's choice, and what no choice narrows."""

from typing import Any

import pytest
from tests.gate.build import RING, TENANT, Core, axis

from memsluice.envelope import codec
from memsluice.events.names import EventType
from memsluice.gate.checks import influence
from memsluice.gate.checks.influence import OBSERVATIONS_MAX
from memsluice.gate.checks.sessions import CAUSES_MAX
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.policy.lint import lint
from memsluice.gate.policy.model import PolicySet, default
from memsluice.gate.state.rows import TenantRows

PAGE = "Visitors should send their parking permits to the harbour office before Thursday evening."
SCOPES = ["session", "turn", "parents", "influence"]


def core(scope: str) -> Core:
    """Return a core under a policy of this scope, with an open session."""
    made = Core(default().default.model_copy(update={"taint": scope}))
    made.observe("open")
    return made


def tainted(made: Core, content: str = "Ana likes short meetings on Tuesday mornings.", **fields: Any) -> bool:
    """Return whether an agent's write is tainted."""
    return made.write("agent", content, **fields).verdict.taint


@pytest.mark.parametrize("scope", SCOPES)
def test_a_clean_session_is_clean_and_an_unopened_one_is_not(scope: str) -> None:
    """Whatever the scope: nothing seen taints nothing, and nobody's session is nobody's word."""
    made = core(scope)
    assert not tainted(made)
    assert tainted(made, session="unopened")


@pytest.mark.parametrize(
    ("scope", "after"), [("session", True), ("turn", True), ("parents", False), ("influence", False)]
)
def test_what_was_seen_taints_as_the_scope_says(scope: str, after: bool) -> None:
    """A page was seen; the agent writes something else."""
    made = core(scope)
    made.observe("web", content=PAGE)
    assert tainted(made) is after


@pytest.mark.parametrize("scope", SCOPES)
def test_declared_parents_taint_in_every_scope(scope: str) -> None:
    """No policy forgets what a write says of itself."""
    made = core(scope)
    made.write("web", PAGE)
    assert tainted(made, parents=(f"e{made.offset}",))


@pytest.mark.parametrize("scope", SCOPES)
@pytest.mark.parametrize(("origin", "tier"), [("web", 5), ("tool", 4)])
def test_what_is_made_of_something_seen_is_worth_no_more_than_it(scope: str, origin: str, tier: int) -> None:
    """A write that declares an observation of its session as its parent has that one's tier, in every scope."""
    made = core(scope)
    seen = made.observe(origin, content=PAGE).verdict.event_id
    made.observe("open")
    assert made.write("agent", "The mill opens at seven.", parents=(seen,)).verdict.tier == tier


def test_a_new_turn_forgets_under_that_policy_alone() -> None:
    """The platform opens the session once more: the turn's watermark falls, the session's never does."""
    for scope, after in (("turn", False), ("session", True), ("influence", True)):
        made = core(scope)
        made.observe("web")
        assert tainted(made)
        made.observe("open")
        assert tainted(made) is after


@pytest.mark.parametrize(
    "content",
    [
        PAGE,
        "Send parking permits to the harbour office before Thursday evening.",
        "Remember: visitors' PARKING permits go to the Harbour\u200b office, before thursday.",
        "ok",
    ],
)
def test_words_that_were_seen_taint(content: str) -> None:
    """Verbatim, shortened, in other cases, with hidden characters; a write with hardly a word counts as influenced."""
    made = core("influence")
    made.observe("web", content=PAGE)
    verdict = made.write("agent", content).verdict
    assert verdict.taint_causes == (f"web:e{made.offset - 1}",)
    assert int(verdict.tier) == 5


def test_a_script_without_blanks_is_compared_as_well() -> None:
    """Part of a sentence of one long run of letters is found again."""
    made = core("influence")
    made.observe("web", content="请把停车许可证在星期四晚上之前交到港口办公室")
    assert tainted(made, "停车许可证交到港口办公室")


def test_what_cannot_be_compared_taints() -> None:
    """No content, too many words, too many observations, a recall of outside content: conservative, for good."""
    many = " ".join(f"word{number}" for number in range(codec.SKETCH_WORDS_MAX + 1))
    assert codec.sketch(RING, TENANT, many) == ""
    for content in (None, many):
        made = core("influence")
        made.observe("tool", content=content)
        assert tainted(made)
    made = core("influence")
    for _ in range(OBSERVATIONS_MAX):
        made.observe("tool", content=PAGE)
    assert not tainted(made)
    made.observe("tool", content=PAGE)
    assert tainted(made)
    made = core("influence")
    given = {"object_id": "0" * 36, "version": 0, "event_id": "e99", "tier": 3, "taint": False}
    made.recall(returned=[given])
    assert tainted(made)


@pytest.mark.parametrize("scope", SCOPES)
def test_a_revoked_session_is_distrusted_in_every_scope(scope: str) -> None:
    """An order outlasts turns, and asks for no resemblance."""
    made = core(scope)
    command = {
        "action": "revoke",
        "target": "s1",
        "parameters": {"of": "session"},
        "expires_at": "2030-01-01T00:00:00Z",
    }
    made.see("reviewer", EventType.COMMAND, **command)
    made.observe("open")
    assert tainted(made)


def test_a_policy_that_narrows_later_forgets_nothing() -> None:
    """What was seen while the whole session counted taints under influence as before: its words were not kept."""
    made = core("session")
    made.observe("web", content=PAGE)
    made.policy = made.policy.model_copy(update={"taint": "influence"})
    assert tainted(made)


def test_rows_keep_hashes_and_no_words() -> None:
    """An observation's words are keyed hashes in the state, and causes stay bounded."""
    made = core("influence")
    for _ in range(OBSERVATIONS_MAX):
        made.observe("web", content=PAGE)
    assert len(made.write("agent", PAGE).verdict.taint_causes) == CAUSES_MAX
    everything = b"".join(made.rows.values()).lower()
    assert b"harbour" not in everything
    assert b"parking" not in everything


def test_a_narrower_scope_is_remarked() -> None:
    """Who narrows it is told what that costs."""
    narrow = default().default.model_copy(update={"taint": "parents"})
    assert [remark.where for remark in lint(PolicySet(narrow, {}))] == ["taint"]
    assert lint(default()) == []


@pytest.mark.parametrize("mode", ["enforce", "shadow"])
def test_nobody_takes_the_place_of_an_entry_in_anothers_session(mode: str) -> None:
    """A session's scope has one owner, and a key one object in it: what another principal writes there is held, in
    shadow mode too, where it would replace what the session's own principal is given."""
    made = core("session")
    made.policy = made.policy.model_copy(update={"mode": mode})
    kept = {"key": "plan", "visibility": "session"}
    own = made.write("user", "Ana meets Ben at noon.", **kept).verdict
    other = made.write("user", "Ana wires the deposit.", principal="mallory", **kept).verdict
    assert (own.zone, other.decision, other.object_id) == ("guidance", "quarantine", None)
    assert other.held_until_ms is not None


def test_who_names_anothers_session_still_writes_in_a_scope_of_his_own_in_shadow_mode() -> None:
    """What the mismatch keeps out of shadow mode is the other's session alone: elsewhere nobody's entry gives way."""
    made = core("session")
    made.policy = made.policy.model_copy(update={"mode": "shadow"})
    other = made.write("user", "Mallory likes tea.", principal="mallory", visibility="principal").verdict
    assert "sessions.mismatch" in other.reasons
    assert (other.zone, other.visibility) == ("guidance", "principal")


@pytest.mark.parametrize("fields", [{"principal": "mallory"}, {"agent": "another"}, {"id": "e1"}, {"problem": "late"}])
def test_a_recall_that_is_refused_feeds_no_memory(fields: dict[str, Any]) -> None:
    """A question in another's session, under a known id, or of a producer that nobody vouches for is no history."""
    made = Core(memory=Memory.empty(10, 10))
    made.observe("open")
    asked = made.recall("Which train does Ana take?")
    assert (len(asked.memsad.history), len(asked.memory.questions)) == (1, 1)
    refused = made.recall("Where does the deposit go?", **{"vector": axis(1)} | fields)
    assert refused.verdict.decision == "reject"
    assert (len(refused.memsad.history), len(refused.memory.questions)) == (1, 1)


def test_who_saw_nothing_is_influenced_by_nothing() -> None:
    """No cause, and no tier that is worse than any."""
    assert influence.of(TenantRows(core("influence").rows, TENANT, 0), "s1", 0, "") == ((), 0)
