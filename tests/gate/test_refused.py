"""What is rejected is kept, within its principal's share, and a replay under a later policy decides it again."""

from typing import Any

import pytest
from tests.gate.build import T0, Core
from tests.gate.test_replay import relaxed, replay, row
from tests.gate.test_review import BAD, DAY_MS, order

from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision
from memsluice.events.limits import HELD_CHARS_MAX
from memsluice.events.models import Zone
from memsluice.gate.policy.model import Policy, QuarantinePolicy, default, laid_over

LONG = "Ana prefers the early train. " * 8


def core_of(**changes: Any) -> Core:
    """Return a core under a policy that refuses longer texts."""
    return Core(laid_over(default().default, {"content_bytes_max": 100, **changes}))


def refused(core: Core, content: str = LONG, **fields: Any) -> Sealed:
    """Have a write rejected; return it as it was sealed."""
    assert core.write(content=content, **fields).verdict.decision is Decision.REJECT
    assert core.last is not None
    return core.last


def test_a_rejected_write_is_kept_and_lands_by_a_replay_under_a_later_policy() -> None:
    """Its verdict says until when; the row has its state; the replay lets it in and says what it was."""
    core = core_of()
    entry = refused(core)
    assert row(core)["state"] == "refused"
    assert row(core)["codes"] == ["limits.content_bytes"]
    relaxed(core, content_bytes_max=8_192)
    verdict = replay(core, entry).verdict
    assert (verdict.decision, verdict.zone) == (Decision.ACCEPT, Zone.GUIDANCE)
    assert verdict.findings[-1].detail == {"was": ("limits.content_bytes",), "now": "accept", "from": "refused"}
    assert row(core)["state"] == "released"


def test_what_is_rejected_again_stays_refused() -> None:
    """It is not closed: a still later policy may let it in, and the same command again does."""
    core = core_of()
    entry = refused(core)
    again = replay(core, entry).verdict
    assert (again.decision, again.reasons, again.object_id) == (Decision.REJECT, ("limits.content_bytes",), None)
    assert (again.held_until_ms, row(core)["state"]) == (None, "refused")
    relaxed(core, content_bytes_max=8_192)
    assert replay(core, entry).verdict.decision is Decision.ACCEPT


def test_what_would_be_held_now_is_held() -> None:
    """It takes a held write's place, and a reviewer may release it; it gave its place among the refused back."""
    core = core_of()
    entry = refused(core, BAD + " " + LONG)
    relaxed(core, content_bytes_max=8_192)
    verdict = replay(core, entry).verdict
    assert (verdict.decision, verdict.reasons) == (Decision.QUARANTINE, ("instructions.found",))
    assert row(core)["state"] == "held"
    assert sum(core_counts(core, "held")) == 1
    assert sum(core_counts(core, "refused")) == 0
    assert order(core, "release", entry).verdict.decision is Decision.ACCEPT
    assert sum(core_counts(core, "held")) == 0


def core_counts(core: Core, kind: str) -> list[int]:
    """Return what is counted of ana."""
    import orjson

    return list(orjson.loads(core.rows[f"acme\0{kind}\0ana".encode()])["n"].values())


def test_a_share_bounds_what_is_kept_of_a_principal() -> None:
    """Beyond it there is the verdict alone, which says so with a count; a decided one makes room."""
    core = core_of(quarantine={"refused_per_principal_max": 2})
    first, _ = refused(core), refused(core)
    third = core.write(content=LONG).verdict
    (finding,) = [one for one in third.findings if one.code == "holding.not_kept"]
    assert (third.reasons, third.held_until_ms) == (("limits.content_bytes",), None)
    assert finding.detail == {"kept": 2, "kept_max": 2, "share": "principal"}
    assert b"acme\0review\0e2" not in core.rows
    assert core.write(content=LONG, principal="bob", session="s2").verdict.held_until_ms is not None
    assert order(core, "reject", first).verdict.findings[-1].detail["from"] == "refused"
    assert core.write(content=LONG).verdict.held_until_ms is not None


def test_a_share_bounds_what_is_kept_of_a_tenant() -> None:
    """A key that may write for anybody invents principals: beyond the tenant's share there is the verdict alone."""
    core = core_of(quarantine={"refused_per_tenant_max": 2})
    first = refused(core)
    for number in range(3):
        last = core.write(content=LONG, principal=f"p{number}", session=f"s{number + 2}").verdict
        assert (last.held_until_ms is None) == (number > 0)
    (finding,) = [one for one in last.findings if one.code == "holding.not_kept"]
    assert finding.detail == {"kept": 2, "kept_max": 2, "share": "tenant"}
    order(core, "reject", first)
    assert core.write(content=LONG, principal="p9", session="s9").verdict.held_until_ms is not None


def test_no_share_keeps_nothing() -> None:
    """0 is as it was before: the verdict alone."""
    core = core_of(quarantine={"refused_per_principal_max": 0})
    assert core.write(content=LONG).verdict.held_until_ms is None
    assert not [key for key in core.rows if b"\0review\0" in key]


def test_what_no_replay_could_carry_is_not_kept() -> None:
    """Control characters are six bytes each in a record: beyond what a command can carry, the verdict alone is kept."""
    core = core_of()
    verdict = core.write(content="\x01" * 24_000).verdict
    (finding,) = [one for one in verdict.findings if one.code == "holding.too_large"]
    assert finding.detail["chars"] > HELD_CHARS_MAX
    assert verdict.held_until_ms is None
    assert core.write(content="x" * 32_000).verdict.held_until_ms is not None


def test_what_took_an_id_is_not_kept_again() -> None:
    """The doubt about an id never ends, and the same event again is a duplicate: neither fills a share."""
    core = core_of()
    time = "2026-06-01T00:00:00+00:00"
    core.write(content=LONG, id="w", time=time)
    assert core.write(content=LONG, id="w", time=time).verdict.decision is Decision.DUPLICATE
    other = core.write(content=LONG + "!", id="w", time=time).verdict
    assert (other.decision, other.held_until_ms) == (Decision.REJECT, None)
    assert sum(core_counts(core, "refused")) == 1


@pytest.mark.parametrize("action", ["release", "declassify", "appeal"])
def test_only_a_policy_lets_in_what_a_policy_refused(action: str) -> None:
    """A release is about what is held: of a refused write it says so, and changes nothing."""
    core = core_of()
    entry = refused(core)
    who = "user" if action == "appeal" else "reviewer"
    approvers = ("a", "b") if action == "declassify" else ()
    verdict = order(core, action, entry, who=who, approvers=approvers).verdict
    assert verdict.reasons == ("review.refused",)
    assert row(core)["state"] == "refused"


def test_what_is_revoked_while_it_is_refused_is_never_let_in_as_clean() -> None:
    """An incident's revocation reaches what a later policy might let in."""
    core = core_of()
    entry = refused(core)
    assert order(core, "revoke", entry).verdict.decision is Decision.RECORD
    relaxed(core, content_bytes_max=8_192)
    verdict = replay(core, entry).verdict
    assert (verdict.decision, verdict.zone, verdict.taint) == (Decision.CONTAIN, Zone.EXTERNAL, True)


def test_a_refused_write_lapses_as_a_held_one_does() -> None:
    """After quarantine.age_days nobody can replay it."""
    core = core_of()
    entry = refused(core)
    relaxed(core, content_bytes_max=8_192)
    late = T0 + 30 * DAY_MS
    assert replay(core, entry, append_ms=late).verdict.reasons == ("review.unknown",)


def test_being_refused_is_no_way_around_the_rate() -> None:
    """What the rules refused was not counted that day: it is when a replay lets it in. What was is counted once."""
    core = core_of(writes_per_day={"user_observed": 1})
    entry = refused(core)
    assert core.write().verdict.decision is Decision.ACCEPT
    relaxed(core, content_bytes_max=8_192)
    verdict = replay(core, entry).verdict
    assert (verdict.decision, verdict.reasons) == (Decision.QUARANTINE, ("rates.exceeded",))


def test_shadow_mode_keeps_nothing_of_what_it_lands() -> None:
    """What landed all the same is not refused; what shadow mode does not land either, is kept."""
    policy = Policy(name="p", profile="strict", mode="shadow", quarantine=QuarantinePolicy(), content_bytes_max=100)
    core = Core(policy)
    landed = core.write("web").verdict
    assert (landed.decision, landed.object_id is not None, landed.held_until_ms) == (Decision.REJECT, True, None)
    assert core.write(content=LONG).verdict.held_until_ms is not None
