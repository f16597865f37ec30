"""Duplicates, rates, limits, expiry, the quarantine's cap, and the audit chain."""

import pytest
from tests.gate.build import T0, Core

from memsluice.envelope.verdict import Decision
from memsluice.events.models import Tier, Zone
from memsluice.events.names import EventType
from memsluice.gate.policy.model import PerTier, default, laid_over
from memsluice.topics.names import EVENTS

DAY = 86_400_000
TIME = "2026-05-28T20:26:40Z"


def test_the_same_event_again_is_a_duplicate_and_changes_nothing_but_the_chain() -> None:
    """A replayed event lands nothing a second time."""
    core = Core()
    time = "2026-05-28T20:26:40Z"
    core.write(id="a", time=time)
    again = core.write(id="a", time=time)
    assert again.verdict.decision is Decision.DUPLICATE
    assert again.verdict.object_id is None
    assert again.changes == {}


def test_another_content_under_a_known_id_is_held_and_keeps_off_the_lineage() -> None:
    """Reusing an event id for another content neither lands nor takes over what the first one is known as."""
    core = Core()
    core.write(id="a", time="2026-05-28T20:26:40Z")
    other = core.write(id="a", time="2026-05-28T20:26:40Z", content="Something else entirely.")
    assert other.verdict.reasons == ("duplicates.other_content",)
    assert ("entry", "a") not in other.changes


def test_an_event_id_is_free_again_when_its_window_and_its_entry_are_over() -> None:
    """Ids are remembered for the window, and as long as what was written under them lives; then they are forgotten."""
    core = Core()
    core.write(id="a")
    reused = core.write(id="a", content="Another note.", append_ms=T0 + 8 * DAY).verdict
    assert reused.reasons == ("duplicates.other_content",)
    assert core.write(id="a", append_ms=T0 + 31 * DAY, session="s2").verdict.decision is Decision.ACCEPT


def test_an_event_dated_ahead_is_still_known_at_the_end_of_its_window() -> None:
    """Clock skew is allowed for at both ends: the last minutes of a window are no time to replay in."""
    core = Core()
    quarantine = {"id": "a", "time": "2026-05-28T20:31:00Z"}
    core.see("runtime", EventType.OBSERVATION, origin="open", **quarantine)
    late = T0 + 7 * DAY + 60_000
    again = core.see("runtime", EventType.OBSERVATION, origin="open", append_ms=late, **quarantine)
    assert again.verdict.decision is Decision.DUPLICATE


def test_asking_for_a_lower_tier_escapes_no_limit_and_channels_count_apart() -> None:
    """A claimed tier has the channel's limit; an agent's writes do not use up the person's own day."""
    core = Core()
    core.observe("open")
    claimed = [core.write("agent", claimed_tier=4).verdict for _ in range(51)]
    assert claimed[-1].findings[-1].code == "rates.exceeded"
    assert core.write("user").verdict.decision is Decision.ACCEPT


def test_the_day_of_a_principal_is_full_after_the_policys_number_of_writes() -> None:
    """Seed 002, pattern 5: 50 writes a day of tier USER_OBSERVED; the 51st is held, and a day later there is room."""
    core = Core()
    decisions = [core.write().verdict.decision for _ in range(51)]
    assert decisions == [Decision.ACCEPT] * 50 + [Decision.QUARANTINE]
    full = core.write()
    assert full.verdict.reasons == ("rates.exceeded",)
    assert core.write(principal="ben", session="s2").verdict.decision is Decision.ACCEPT
    assert core.write(append_ms=T0 + 25 * 3_600_000).verdict.decision is Decision.ACCEPT


def test_quarantine_is_capped_per_principal_and_overflow_is_refused() -> None:
    """A flood of held writes costs its sender, never an older held entry and never another principal."""
    quarantine = default().default.quarantine.model_copy(update={"per_principal_max": 3})
    core = Core(default().default.model_copy(update={"quarantine": quarantine}))
    core.observe("open")  # binds s1 to planner and ana
    flood = [core.write(principal="mallory").verdict for _ in range(5)]
    assert [v.decision for v in flood] == [Decision.QUARANTINE] * 3 + [Decision.REJECT] * 2
    assert flood[-1].reasons == ("holding.full",)
    assert core.write(principal="eve").verdict.decision is Decision.QUARANTINE


def test_content_beyond_the_policys_limit_is_refused_with_both_numbers() -> None:
    """The limit counts bytes of UTF-8, and the verdict says how many there were."""
    core = Core()
    assert core.write(content="x" * 8192).verdict.decision is Decision.ACCEPT
    verdict = core.write(content="é" * 4097).verdict
    assert verdict.reasons == ("limits.content_bytes",)
    assert next(f.detail for f in verdict.findings if f.code == "limits.content_bytes") == {
        "bytes": 8194,
        "bytes_max": 8192,
    }


def test_entries_live_as_long_as_their_tier_allows() -> None:
    """Seed 002, pattern 5: none, 30 days, 7 days, 1 hour."""
    core = Core()
    lives = {}
    for who in ("operator", "user", "tool", "web"):
        verdict = core.write(who, session=who).verdict
        lives[who] = None if verdict.expires_ms is None else verdict.expires_ms - verdict.decided_ms
    assert lives == {"operator": None, "user": 30 * DAY, "tool": 7 * DAY, "web": 3_600_000}


def test_an_agents_summary_of_outside_content_is_at_best_tier_four() -> None:
    """Seed 002, expected behaviour: an agent's summary of an untrusted document is stored with trust tier 4."""
    core = Core()
    core.observe("open")
    core.observe("tool")
    assert core.write("agent").verdict.tier is Tier.EXTERNAL_TOOL


def test_shadow_mode_decides_and_lands_anyway() -> None:
    """In shadow the verdict says what would have happened, and the entry lands."""
    core = Core(default().default.model_copy(update={"mode": "shadow"}))
    core.observe("open")
    verdict = core.write(principal="mallory").verdict
    assert verdict.decision is Decision.QUARANTINE
    assert verdict.object_id is not None
    assert verdict.mode == "shadow"


@pytest.mark.parametrize("profile", ["strict", "tiered"])
def test_shadow_mode_brings_no_outside_content_into_guidance(profile: str) -> None:
    """Taint is no experiment: what is refused, or held for another reason besides, lands as data and no better."""
    rates = PerTier(user_observed=1, external_web=1)
    core = Core(default().default.model_copy(update={"mode": "shadow", "profile": profile, "writes_per_day": rates}))
    core.observe("open")
    core.observe("web")
    for who, session in (("web", "s2"), ("web", "s2"), ("agent", "s1"), ("agent", "s1")):
        verdict = core.write(who, session=session).verdict
        assert (verdict.zone, verdict.mode) == (Zone.EXTERNAL, "shadow")
    assert verdict.decision is (Decision.REJECT if profile == "strict" else Decision.QUARANTINE)
    assert core.write("user", session="s3").verdict.zone is Zone.GUIDANCE


def test_shadow_mode_overwrites_no_first_entry() -> None:
    """Another content under a known id would take the first one's place in the store."""
    core = Core(default().default.model_copy(update={"mode": "shadow"}))
    core.write(id="a")
    assert core.write(id="a", content="Something else.").verdict.object_id is None


def test_shadow_mode_overwrites_no_protected_key() -> None:
    """Immutability is no experiment: it holds whatever the mode."""
    core = Core(default().default.model_copy(update={"mode": "shadow"}))
    protect = {"action": "protect", "target": "SOUL.md", "parameters": {"owner": "ana"}}
    core.see("operator", EventType.COMMAND, expires_at="2030-01-01T00:00:00Z", **protect)
    assert core.write(key="SOUL.md").verdict.object_id is None


def test_a_duplicate_names_the_first_of_its_id() -> None:
    """Whoever asks why finds the first one by its place in the log, whether it was repeated or replaced."""
    core = Core()
    core.write(id="w", content="Ana prefers the early train.", time=TIME)
    first = core.offset
    for content, code in (("Ana prefers the early train.", "replayed"), ("Another.", "other_content")):
        verdict = core.write(id="w", content=content, time=TIME).verdict
        (finding,) = [one for one in verdict.findings if one.code.startswith("duplicates.")]
        assert finding.code == f"duplicates.{code}"
        assert finding.detail == {"first_topic": EVENTS, "first_offset": first}


@pytest.mark.parametrize(("enabled", "vector"), [(False, True), (True, False)])
def test_what_cannot_or_shall_not_be_scored_has_no_score_and_is_decided(enabled: bool, vector: bool) -> None:
    """MEMSAD is one check among others: without it, or without a vector, the others decide."""
    core = Core(laid_over(default().default, {"memsad": {"enabled": enabled}}))
    core.recall()
    verdict = core.write(**({} if vector else {"vector": None})).verdict
    assert (verdict.score, verdict.decision) == (None, "accept")


@pytest.mark.parametrize(
    ("mode", "who", "decision", "held"),
    [
        ("enforce", "mallory", Decision.QUARANTINE, True),
        ("shadow", "mallory", Decision.QUARANTINE, False),
        ("enforce", "full", Decision.REJECT, False),
    ],
)
def test_only_what_is_held_and_lands_nowhere_waits_for_a_reviewer(mode, who, decision, held) -> None:
    """What shadow mode lands all the same, and what is refused and not kept, takes no place in quarantine."""
    base = default().default
    most = 0 if who == "full" else 3
    quarantine = base.quarantine.model_copy(update={"per_principal_max": most, "refused_per_principal_max": 0})
    changes = {"mode": mode, "quarantine": quarantine, "writes_per_day": PerTier(user_observed=1)}
    core = Core(base.model_copy(update=changes))
    core.write(principal=who)
    verdict = core.write(principal=who).verdict
    rows = [key for key in core.rows if b"\0review\0" in key]
    assert (verdict.decision, bool(rows), verdict.held_until_ms is not None) == (decision, held, held)
