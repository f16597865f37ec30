"""Duplicates, rates, limits, expiry, the quarantine's cap, and the audit chain."""

import itertools
from hashlib import sha256

from tests.gate.build import T0, Core

from memsluice.envelope.codec import canonical
from memsluice.events.models import Tier
from memsluice.gate.policy import default
from memsluice.gate.verdict import Decision

DAY = 86_400_000


def test_the_same_event_again_is_a_duplicate_and_changes_nothing_but_the_chain() -> None:
    """A replayed event lands nothing a second time."""
    core = Core()
    time = "2026-05-28T20:26:40Z"
    core.write(id="a", time=time)
    again = core.write(id="a", time=time)
    assert again.verdict.decision is Decision.DUPLICATE
    assert again.verdict.object_id is None
    assert set(again.changes) == {("chain", "")}


def test_another_content_under_a_known_id_is_held_and_keeps_off_the_lineage() -> None:
    """Reusing an event id for another content neither lands nor takes over what the first one is known as."""
    core = Core()
    core.write(id="a", time="2026-05-28T20:26:40Z")
    other = core.write(id="a", time="2026-05-28T20:26:40Z", content="Something else entirely.")
    assert other.verdict.reasons == ("duplicates.other_content",)
    assert ("entry", "a") not in other.changes


def test_an_event_id_is_free_again_when_its_window_is_over() -> None:
    """Ids are remembered for the stated window, no longer: state stays bounded."""
    core = Core()
    core.write(id="a")
    assert core.write(id="a", append_ms=T0 + 8 * DAY).verdict.decision is Decision.ACCEPT


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


def test_verdicts_of_a_tenant_form_a_chain() -> None:
    """Every verdict names the digest of the one before it, so that an edit, a gap or a reorder shows."""
    core = Core()
    verdicts = [core.write().verdict for _ in range(3)]
    assert [v.chain_seq for v in verdicts] == [1, 2, 3]
    assert verdicts[0].chain_previous == ""
    for before, after in itertools.pairwise(verdicts):
        assert after.chain_previous == sha256(canonical(before.to_json())).hexdigest()


def test_shadow_mode_decides_and_lands_anyway() -> None:
    """In shadow the verdict says what would have happened, and the entry lands."""
    core = Core(default().default.model_copy(update={"mode": "shadow"}))
    core.observe("open")
    verdict = core.write(principal="mallory").verdict
    assert verdict.decision is Decision.QUARANTINE
    assert verdict.object_id is not None
    assert verdict.mode == "shadow"
