"""The reference monitor's rules (seed 001, Section 3.3) on the core, as the paper states them."""

import dataclasses

import pytest
from msgspec.structs import replace
from tests.gate.build import T0, TENANT, Core, axis, sealed

from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Identity
from memsluice.envelope.verdict import Decision
from memsluice.events.models import Tier
from memsluice.events.names import EventType
from memsluice.gate.checks import authenticity, monitor, sessions
from memsluice.gate.decide import Outcome
from memsluice.gate.policy.model import default
from memsluice.gate.state.kinds import ENTRY
from memsluice.gate.state.rows import TenantRows

STRICT = default().default.model_copy(update={"profile": "strict"})


def test_a_persons_own_words_are_accepted() -> None:
    """Rule 2: a trusted write with clean dependencies to a mutable key lands in guidance."""
    outcome = Core().write("user")
    assert (outcome.verdict.decision, outcome.verdict.zone, outcome.verdict.reasons) == ("accept", "guidance", ())


def test_a_protected_key_is_immutable_whoever_writes_it() -> None:
    """Rule 3: iota(k) = 1 rejects the write, an operator's included."""
    core = Core()
    soul = {"action": "protect", "target": "SOUL.md", "parameters": {"visibility": "shared"}}
    core.see("operator", EventType.COMMAND, expires_at="2030-01-01T00:00:00Z", **soul)
    outcome = core.write("operator", key="SOUL.md", visibility="shared")
    assert outcome.verdict.decision is Decision.REJECT
    assert outcome.verdict.reasons == ("monitor.rule_3_immutable",)


@pytest.mark.parametrize(("policy", "decision"), [(None, "contain"), (STRICT, "reject")])
def test_a_tainted_dependency_blocks_a_users_write(policy, decision) -> None:
    """Rule 4: a parent that came from the web taints what a user declares to be made from it (the code published
    with the paper lets it through)."""
    core = Core(policy)
    web = core.write("web", id="page")
    assert web.verdict.decision == decision
    outcome = core.write("user", parents=["page"], session="s2")
    assert outcome.verdict.decision == decision
    assert "monitor.rule_4_tainted" in outcome.verdict.reasons
    assert outcome.verdict.zone != "guidance"


@pytest.mark.parametrize("who", ["tool", "web"])
def test_untrusted_sources_never_reach_guidance(who) -> None:
    """Rule 5: pi = UNTRUSTED is contained in the external zone, or rejected by profile strict."""
    assert Core().write(who).verdict.zone == "external"
    assert Core(STRICT).write(who).verdict.decision is Decision.REJECT


def test_a_payload_cannot_raise_its_tier() -> None:
    """Trust comes from the registry: a web producer that claims tier 1 stays tier 5."""
    outcome = Core().write("web", claimed_tier=1)
    assert outcome.verdict.credential_tier == Tier.EXTERNAL_WEB
    assert outcome.verdict.decision is Decision.CONTAIN


def test_what_a_session_saw_taints_what_its_agent_writes_afterwards() -> None:
    """Rule 8 by low-watermark: clean before the observation, contained after it, the cause named."""
    core = Core()
    core.observe("open")
    before = core.write("agent")
    seen = core.observe("web")
    after = core.write("agent")
    assert before.verdict.decision is Decision.ACCEPT
    assert after.verdict.decision is Decision.CONTAIN
    assert after.verdict.taint_causes == (f"web:{seen.verdict.event_id}",)
    assert after.verdict.tier == Tier.EXTERNAL_WEB


def test_an_agent_in_a_session_that_the_platform_never_opened_is_tainted() -> None:
    """An agent cannot shake off its past by naming a fresh session."""
    core = Core()
    core.observe("open")
    core.observe("web")
    outcome = core.write("agent", session="invented")
    assert outcome.verdict.taint_causes == (monitor.UNOPENED,)
    assert outcome.verdict.decision is Decision.CONTAIN


def test_an_unknown_parent_and_a_held_one_are_tainted() -> None:
    """What cannot be looked up, and what did not land, is no honest ancestor."""
    core = Core()
    unknown = core.write("user", parents=["never-seen"])
    assert unknown.verdict.taint_causes == ("unknown:never-seen",)
    core.observe("open", session="s9", agent="other")
    held = core.write("user", session="s9", id="held")  # the session is another agent's
    assert held.verdict.decision is Decision.QUARANTINE
    child = core.write("user", parents=["held"])
    assert child.verdict.taint_causes == ("not_landed:held",)


def test_a_child_of_what_did_not_land_is_labelled_no_better_than_its_parent() -> None:
    """A web page that was refused is still a web page: what is made from it gets tier 5, and lives an hour."""
    core = Core(STRICT)
    core.write("web", id="page")
    child = core.write("user", parents=["page"])
    assert child.verdict.tier is Tier.EXTERNAL_WEB


def test_taint_is_the_maximum_over_all_ancestors_however_far() -> None:
    """Rule 8 over a chain: a great-grandchild of a web page is tainted through parents alone."""
    core = Core()
    core.write("web", id="g0")
    for number in range(1, 4):
        outcome = core.write("user", id=f"g{number}", parents=[f"g{number - 1}"])
        assert outcome.verdict.taint
        assert outcome.verdict.zone == "external"


def test_recalling_external_data_taints_the_session() -> None:
    """A research-mode recall is outside content like any other."""
    core = Core()
    core.observe("open")
    page = core.write("web", id="page")
    given = {"object_id": page.verdict.object_id, "version": 0, "event_id": "page", "tier": 5, "taint": True}
    core.recall(zone="external", returned=[given])
    assert core.write("agent").verdict.taint_causes == ("recalled:page",)


def test_a_write_is_its_principals_until_it_is_promoted() -> None:
    """Rule 9: asking for shared visibility gives the principal's own scope; only an operator shares by writing."""
    asked = Core().write("user", visibility="shared").verdict
    assert asked.visibility == "principal"
    assert [finding.code for finding in asked.findings if finding.code.startswith("monitor")] == [
        "monitor.rule_9_narrowed"
    ]
    assert Core().write("operator", visibility="shared").verdict.visibility == "shared"


def test_promotion_needs_a_trusted_authoriser_and_an_untainted_item() -> None:
    """Rules 6 and 7: and promotion never clears taint (the published code does)."""
    operator = Identity("op", Role.OPERATOR, "operator", Tier.OPERATOR)
    outsider = Identity("x", Role.PRODUCER, "web", Tier.EXTERNAL_WEB)
    assert monitor.check_promotion(operator, taint=False) is None
    for authoriser, taint in ((operator, True), (outsider, False), (outsider, True)):
        finding = monitor.check_promotion(authoriser, taint=taint)
        assert finding is not None
        assert finding.decision is Decision.REJECT


def test_a_session_is_bound_to_agent_and_principal_by_its_first_event() -> None:
    """A write under somebody else's session id is held, and does not change the session."""
    core = Core()
    core.observe("open")
    outcome = core.write("user", principal="mallory")
    assert outcome.verdict.reasons == ("sessions.mismatch",)
    assert core.write("agent").verdict.decision is Decision.ACCEPT


def test_an_expired_ancestor_is_unknown_and_so_tainted() -> None:
    """Waiting for an ancestor's lineage to expire launders nothing."""
    core = Core()
    core.write("web", id="page")
    later = T0 + 3_700_000
    assert core.write("user", parents=["page"], append_ms=later).verdict.taint_causes == ("unknown:page",)


def test_the_longest_names_still_make_a_row_key_within_its_limit() -> None:
    """Names of 128 characters of four bytes each, three of them in one key, do not stop the worker."""
    names = {"visibility": "principal", "owner": "\U0001f600" * 128, "namespace": "\U0001f601" * 128}
    core = Core()
    target = "\U0001f602" * 128
    protect = {"action": "protect", "target": target, "parameters": names, "expires_at": "2030-01-01T00:00:00Z"}
    core.see("operator", EventType.COMMAND, **protect)
    assert max(map(len, core.rows)) < 512
    outcome = core.write("user", principal=names["owner"], namespace=names["namespace"], key=target)
    assert outcome.verdict.reasons == ("monitor.rule_3_immutable",)


def test_a_refused_observation_or_recall_still_taints_its_session() -> None:
    """What the broker acknowledged the agent has seen: an event that is wrong otherwise is no way to stay clean."""
    for who, kind, fields in (
        ("runtime", EventType.OBSERVATION, {"origin": "web"}),
        ("reader", EventType.RECALL, {"question": "why?", "zone": "external"}),
    ):
        core = Core()
        core.observe("open")
        refused = core.see(who, kind, problem="clock_skew", **fields)
        assert refused.verdict.reasons == ("authenticity.clock_skew",)
        after = core.write("agent").verdict
        assert after.decision is Decision.CONTAIN
        assert after.taint_causes == (f"unverified:{refused.verdict.event_id}",)


def test_a_refused_event_taints_although_it_repeats_another() -> None:
    """What could not be read of it is not in what is compared: a duplicate by its looks is none."""
    core = Core()
    core.observe("open", id="o1")
    core.recall(id="r1", time="2026-05-28T20:26:40Z")
    assert core.write("agent").verdict.decision is Decision.ACCEPT
    again = core.see("reader", EventType.RECALL, problem="limit_exceeded", id="r1", question="Which train?",
                     time="2026-05-28T20:26:40Z")  # fmt: skip
    assert again.verdict.reasons == ("authenticity.limit_exceeded",)
    assert core.write("agent").verdict.decision is Decision.CONTAIN


def test_a_refused_opening_opens_nothing() -> None:
    """An opening that fails its checks leaves the session unopened, and its agent's writes contained."""
    core = Core()
    core.observe("open", problem="expired_key")
    assert core.write("agent").verdict.taint_causes == (monitor.UNOPENED,)


def test_reusing_an_event_id_launders_no_lineage() -> None:
    """A clean entry's id, used again from a tainted session after the window, is held, and the first lineage stays."""
    core = Core()
    core.write("user", id="x")
    core.observe("open", session="s2")
    core.observe("web", session="s2")
    again = core.write("agent", id="x", session="s2", append_ms=T0 + 8 * 86_400_000, content="poison")
    assert again.verdict.decision is Decision.QUARANTINE
    assert again.verdict.object_id is None


def test_a_recall_that_names_another_version_than_the_lineage_is_not_clean() -> None:
    """What was returned is clean only if it is just what the gate accepted under that event id."""
    core = Core()
    core.observe("open")
    clean = core.write("user", id="x", session="s2").verdict
    given = {"object_id": clean.object_id, "version": clean.sealed_offset, "event_id": "x", "tier": 3, "taint": False}
    core.recall(returned=[given])
    assert core.write("agent").verdict.decision is Decision.ACCEPT
    core.recall(returned=[given | {"version": 99}])
    assert core.write("agent").verdict.decision is Decision.CONTAIN


def test_squatting_a_session_id_keeps_nobody_out() -> None:
    """Only the platform binds a session for good: its opening takes over what a stranger used before."""
    core = Core()
    core.write("user", principal="mallory", session="s7")
    assert core.observe("open", session="s7").verdict.decision is Decision.RECORD
    assert core.write("agent", session="s7").verdict.decision is Decision.ACCEPT
    assert core.write("user", principal="mallory", session="s7").verdict.reasons == ("sessions.mismatch",)


def test_a_session_in_use_is_not_forgotten() -> None:
    """Retention counts from the last use: a long-lived session stays open, and stays tainted."""
    core = Core()
    core.observe("open")
    core.observe("open", session="s2")
    core.observe("web", session="s2")
    day = 86_400_000
    for number in range(1, 60):
        core.recall(append_ms=T0 + number * day)
        core.recall(append_ms=T0 + number * day + 1, session="s2")
    assert core.write("agent", append_ms=T0 + 60 * day).verdict.decision is Decision.ACCEPT
    assert core.write("agent", session="s2", append_ms=T0 + 60 * day).verdict.decision is Decision.CONTAIN


def test_a_session_is_kept_alive_by_use_at_the_shortest_retention_too() -> None:
    """One day of retention, asked every hour for three: what the session saw on the first is not forgotten."""
    core = Core(default().default.model_copy(update={"session_retention_days": 1}))
    core.observe("open")
    core.observe("web")
    for hour in range(1, 72):
        core.recall(append_ms=T0 + hour * 3_600_000)
    assert core.write("agent", append_ms=T0 + 72 * 3_600_000).verdict.decision is Decision.CONTAIN


@pytest.mark.parametrize(("idle_hours", "decision"), [(12, Decision.CONTAIN), (12.1, Decision.ACCEPT)])
def test_taint_ends_up_to_a_day_before_its_retention(idle_hours: float, decision: Decision) -> None:
    """As the policy's field says: with one day, 12 hours after the last use at the earliest. Then a session of that
    name is a new one, and clean once it is opened."""
    core = Core(default().default.model_copy(update={"session_retention_days": 1}))
    core.observe("open", append_ms=T0)
    core.observe("web", append_ms=T0)
    used = T0 + 12 * 3_600_000 - 60_000
    core.recall(append_ms=used)
    again = used + round(idle_hours * 3_600_000)
    core.observe("open", append_ms=again)
    assert core.write("agent", append_ms=again).verdict.decision is decision


def command(core: Core, **fields) -> Outcome:
    """Have an operator's protection of ana's key decided."""
    fields = {"action": "protect", "target": "k", "parameters": {"owner": "ana"}} | fields
    return core.see("operator", EventType.COMMAND, expires_at="2030-01-01T00:00:00Z", **fields)


def test_a_command_that_is_refused_is_not_carried_out() -> None:
    """Another command under a known id: the verdict says reject, and the key stays as it was."""
    core = Core()
    core.write("user", id="c1")
    assert command(core, id="c1").verdict.reasons == ("duplicates.other_content",)
    assert core.write("user", key="k").verdict.decision is Decision.ACCEPT


def test_a_protection_for_all_tenants_is_refused_until_it_is_one() -> None:
    """ "Done" for a command that protects nobody's key would be a lie to its operator."""
    assert command(Core(), tenant="*").verdict.reasons == ("commands.one_tenant",)


@pytest.mark.parametrize("parameters", [{}, {"visibility": "shared", "owner": "ana"}, {"visibility": "nobody"}])
def test_a_protection_that_would_protect_nothing_is_refused(parameters) -> None:
    """An operator is told at once, instead of finding the key overwritten."""
    outcome = Core().see(
        "operator",
        EventType.COMMAND,
        action="protect",
        target="k",
        parameters=parameters,
        expires_at="2030-01-01T00:00:00Z",
    )
    assert outcome.verdict.reasons == ("commands.bad_parameter",)


def test_every_cause_that_fell_is_told_and_what_two_reviewers_lifted_has_none() -> None:
    """One parent that nobody knows hides none of the others' reasons; a lifted label answers for itself."""
    core = Core()
    core.write("user", id="clean")
    core.write("web", id="page")
    core.write("user", id="child", parents=("clean",))
    rows = TenantRows(core.rows, TENANT, T0 + 60_000)
    row = rows.get(ENTRY, "child")
    assert row is not None
    assert monitor.fallen(rows, row, ("clean",)) == []
    causes = ["unknown:gone", "parent:page", "unknown:lost"]
    assert monitor.fallen(rows, row, ("gone", "clean", "page", "lost")) == causes
    assert monitor.fallen(rows, replace(row, lifted="c1"), ("gone", "page")) == []


def test_who_speaks_for_anothers_session_is_told_what_is_not_his() -> None:
    """The finding names the field: another agent, or the same agent for somebody else."""
    core = Core()
    core.observe("open")
    for fields, field in (({"agent": "other"}, "agent"), ({"principal": "ben"}, "principal")):
        found = {one.code: one.detail for one in core.write("agent", **fields).verdict.findings}
        assert found["sessions.mismatch"] == {"field": field}


def test_a_recall_is_told_by_tier_and_what_the_gate_never_let_in_is_counted() -> None:
    """On call sees what was given to an agent: how many of each tier, and how many that no verdict admitted."""
    core = Core()
    verdict = core.write("user").verdict
    given = {"object_id": verdict.object_id, "version": 0, "event_id": "e0", "tier": 3, "taint": False}
    stray = {"object_id": "0" * 36, "version": 0, "event_id": "e99", "tier": 5, "taint": False}
    (told,) = [one for one in core.recall(returned=[given, stray]).verdict.findings if one.code == "sessions.returned"]
    assert told.detail == {"tiers": {"EXTERNAL_WEB": 1, "USER_OBSERVED": 1}, "unknown": 1}


def test_what_its_sender_may_say_is_not_refused_for_that() -> None:
    """Only a recall or an observation that something was wrong with has a problem, and is refused by its name."""
    event = sealed("reader", EventType.RECALL, 0, question="why?", vector=axis(0))
    assert authenticity.check(event) is None
    found = authenticity.check(dataclasses.replace(event, problem="clock_skew"))
    assert found is not None
    assert (found.code, found.decision) == ("authenticity.clock_skew", Decision.REJECT)


def test_a_finding_of_a_rule_says_the_rules_number() -> None:
    """Who reads the evidence finds the paper's rule by it: the code and the detail never name two."""
    core, told = Core(), list[tuple[str, int]]()
    core.write("web", id="page")
    protect = {"action": "protect", "target": "k", "parameters": {"visibility": "principal", "owner": "ana"}}
    core.see("operator", EventType.COMMAND, expires_at="2030-01-01T00:00:00Z", **protect)
    for fields in ({"who": "web"}, {"parents": ("page",)}, {"key": "k"}, {"visibility": "shared"}):
        found = core.write(**fields).verdict.findings
        told += [(one.code, one.detail["rule"]) for one in found if "rule" in (one.detail or {})]
    assert {code for code, _ in told} == {
        "monitor.rule_3_immutable", "monitor.rule_4_tainted", "monitor.rule_5_untrusted", "monitor.rule_9_narrowed",
    }  # fmt: skip
    assert [code for code, number in told if f"rule_{number}_" not in code] == []


def test_a_scope_that_asks_for_parents_alone_says_no_tier_of_the_session() -> None:
    """Nothing that was seen counts, and what does not count has no tier."""
    core = Core(default().default.model_copy(update={"taint": "parents"}))
    core.observe("web")
    rows = TenantRows(core.rows, TENANT, T0)
    session = sessions.load(rows, "s1")
    assert session is not None
    assert sessions.watermark(rows, "s1", session, "", core.policy) == ((), 0)
