"""Reopening: a rejection is taken back while the write is kept, and nothing else is."""

from typing import Any

import pytest
from tests.gate.build import T0, Core
from tests.gate.test_refused import core_counts, core_of, refused
from tests.gate.test_replay import relaxed, replay, row
from tests.gate.test_review import BAD, DAY_MS, held, order

from memsluice.envelope.verdict import Decision
from memsluice.gate.policy.model import default, laid_over


def small(**shares: int) -> Any:
    """Return a policy with small shares of the quarantine."""
    return laid_over(default().default, {"quarantine": shares})


def test_a_rejected_write_waits_again_and_may_be_released() -> None:
    """The verdict says what it waits for, until when, and which rejection was taken back."""
    core = Core()
    entry = held(core)
    until_ms = row(core)["x"]
    order(core, "reject", entry, id="c1")
    verdict = order(core, "reopen", entry, "reviewer-2").verdict
    assert (verdict.decision, verdict.action, verdict.target_offset) == (Decision.RECORD, "reopen", 0)
    detail = {"codes": ("instructions.found",), "was": "c1", "until_ms": until_ms}
    assert (verdict.findings[-1].code, verdict.findings[-1].detail) == ("reopening.reopened", detail)
    assert (row(core)["state"], row(core)["by"], row(core)["x"]) == ("held", "", until_ms)
    assert order(core, "release", entry).verdict.decision is Decision.ACCEPT


def test_it_takes_its_place_in_its_principals_share_again() -> None:
    """A rejection freed it, so a reopening needs one; where none is left it says so and stays rejected."""
    core = Core(small(per_principal_max=1))
    first = held(core)
    order(core, "reject", first)
    second = held(core)
    verdict = order(core, "reopen", first).verdict
    assert (verdict.reasons, row(core)["state"]) == (("holding.full",), "rejected")
    order(core, "reject", second)
    assert order(core, "reopen", first).verdict.decision is Decision.RECORD
    assert sum(core_counts(core, "held")) == 1
    order(core, "reject", first)
    assert sum(core_counts(core, "held")) == 0


def test_a_place_that_was_taken_again_is_given_back_on_its_day() -> None:
    """Reopened on a later day it counts among that day's, and is taken off that day's once decided."""
    core = Core()
    entry = held(core)
    order(core, "reject", entry)
    order(core, "reopen", entry, append_ms=T0 + 3 * DAY_MS)
    order(core, "release", entry, append_ms=T0 + 4 * DAY_MS)
    assert sum(core_counts(core, "held")) == 0


def test_what_a_policy_refused_is_refused_again_and_no_release_lets_it_in() -> None:
    """Rejecting and reopening is no way around the policy: it waits for a replay, as it did before."""
    core = core_of()
    entry = refused(core)
    order(core, "reject", entry)
    verdict = order(core, "reopen", entry).verdict
    assert verdict.findings[-1].detail["from"] == "refused"
    assert (row(core)["state"], sum(core_counts(core, "refused"))) == ("refused", 1)
    assert order(core, "release", entry).verdict.reasons == ("review.refused",)
    relaxed(core, content_bytes_max=8_192)
    assert replay(core, entry).verdict.decision is Decision.ACCEPT


def test_a_share_of_kept_rejections_counts_too() -> None:
    """Where the principal or the tenant keeps as many rejected writes as it may, a reopening finds no place."""
    core = core_of(quarantine={"refused_per_principal_max": 1})
    first = refused(core)
    order(core, "reject", first)
    refused(core)
    verdict = order(core, "reopen", first).verdict
    assert (verdict.decision, verdict.reasons, row(core)["state"]) == (Decision.REJECT, ("holding.full",), "rejected")


def test_what_a_replay_had_held_after_all_is_refused_once_more() -> None:
    """The row does not say what it was when it was rejected: then what *screen* had decided counts."""
    core = core_of()
    entry = refused(core, BAD + " " + "Ana prefers the early train. " * 8)
    relaxed(core, content_bytes_max=8_192)
    assert replay(core, entry).verdict.decision is Decision.QUARANTINE
    order(core, "reject", entry)
    order(core, "reopen", entry)
    assert row(core)["state"] == "refused"
    assert replay(core, entry).verdict.decision is Decision.QUARANTINE
    assert order(core, "release", entry).verdict.decision is Decision.ACCEPT


def test_taint_and_doubts_outlast_a_rejection() -> None:
    """What no release overrides is as it was: a reopening changes no label and no reason."""
    core = Core()
    core.write("user", session="s1")
    stranger = held(core, content="A plain note.", principal="mallory", session="s1")
    order(core, "reject", stranger)
    order(core, "reopen", stranger)
    assert order(core, "release", stranger).verdict.reasons == ("review.not_overridable",)
    core = Core()
    entry = held(core)
    order(core, "revoke", entry)
    order(core, "reject", entry)
    order(core, "reopen", entry)
    assert order(core, "release", entry).verdict.reasons == ("review.tainted",)


@pytest.mark.parametrize("before", [None, "release", "reopen"])
def test_only_a_rejection_is_taken_back(before: str | None) -> None:
    """What waits, and what was released, is refused in words; nothing changes."""
    core = Core()
    entry = held(core)
    if before == "release":
        order(core, "release", entry, id="c1")
    elif before == "reopen":
        order(core, "reject", entry)
        order(core, "reopen", entry, id="c1")
    state = row(core)
    verdict = order(core, "reopen", entry).verdict
    assert (verdict.decision, verdict.reasons) == (Decision.REJECT, ("reopening.not_rejected",))
    was = "released" if before == "release" else "held"
    assert verdict.findings[-1].detail == {"was": was, "by": "c1" if before else ""}
    assert row(core) == state


@pytest.mark.parametrize(
    ("who", "fields", "code"),
    [
        ("operator", {}, "commands.not_permitted"),
        ("user", {}, "commands.not_permitted"),
        ("reviewer", {"digest": "0" * 64}, "review.other_digest"),
        ("reviewer", {"digest": None}, "review.other_digest"),
        ("reviewer", {"target": "e99"}, "review.unknown"),
        ("reviewer", {"append_ms": T0 + 31 * DAY_MS}, "review.unknown"),
        ("reviewer", {"tenant": "*"}, "commands.one_tenant"),
    ],
)
def test_a_wrong_reopening_has_its_own_reason(who: str, fields: Any, code: str) -> None:
    """Another role, another content, an unknown entry, or one that lapsed: refused, and it stays rejected."""
    core = Core()
    entry = held(core)
    order(core, "reject", entry)
    assert order(core, "reopen", entry, who, **fields).verdict.reasons == (code,)
    assert row(core)["state"] == "rejected"
