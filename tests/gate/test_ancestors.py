"""What became of an entry's ancestors since it was labelled: a release, a promotion and a renewal ask again."""

from collections.abc import Callable

import pytest
from tests.gate.build import T0
from tests.gate.landed import Shop
from tests.gate.looking import Looking
from tests.gate.test_landed import BAD, DAY_MS, accepted, contained, entry_row, refused

from memsluice.envelope.verdict import Decision
from memsluice.gate.checks import monitor


def held(shop: Shop, *parents: str) -> str:
    """Have a clean write of these parents held by detection; return its event id."""
    verdict = shop.write(content=BAD, parents=parents).verdict
    assert (verdict.decision, verdict.taint) == (Decision.QUARANTINE, False)
    return f"e{shop.offset}"


def released(shop: Shop, event_id: str) -> Callable[..., object]:
    """Order the release of a held write."""
    return shop.order("release", event_id, carried=shop.written[event_id])


def causes(outcome) -> list[str]:
    """Return the reasons that a refusal names."""
    assert outcome.verdict.decision is Decision.REJECT
    return outcome.verdict.findings[0].detail["causes"]


@pytest.mark.parametrize(("action", "cause"), [("revoke", "parent"), ("withdraw", "not_landed")])
def test_a_release_asks_what_became_of_the_parents_while_it_was_held(action: str, cause: str) -> None:
    """A reviewer releases what was clean when it was held: not where its parent was taken back meanwhile."""
    shop = Shop()
    parent = accepted(shop)
    event_id = held(shop, parent)
    shop.order(action, parent)
    outcome = released(shop, event_id)
    assert refused(outcome) == "review.tainted"
    assert causes(outcome) == [f"{cause}:{parent}"]
    assert shop.lies(event_id) == []


def test_a_release_of_what_has_clean_parents_goes_on() -> None:
    """Nothing fell: it lands in guidance, as before."""
    shop = Shop()
    event_id = held(shop, accepted(shop))
    released(shop, event_id)
    assert shop.lies(event_id) == [("guidance", "principal")]


@pytest.mark.parametrize("action", ["promote", "renew", "release"])
def test_a_grandparent_that_was_taken_back_counts(action: str) -> None:
    """A is revoked alone; B of A stays where it is; C of B is neither shared, nor prolonged, nor released."""
    shop = Shop()
    above = accepted(shop, parents=(accepted(shop),))
    event_id = held(shop, above) if action == "release" else accepted(shop, parents=(above,))
    shop.order("revoke", "e0")
    shop.offset += 60
    assert shop.lies(above) == [("guidance", "principal")]
    outcome = released(shop, event_id) if action == "release" else shop.order(action, event_id)
    assert causes(outcome) == ["parent:e0"]


def test_a_replay_lands_no_more_than_a_release_would() -> None:
    """What fell farther up taints what is decided again: it lands as data, whatever detection says by now."""
    shop = Shop()
    above = accepted(shop, parents=(accepted(shop),))
    event_id = held(shop, above)
    shop.order("revoke", "e0")
    off = shop.policy.instructions.model_copy(update={"enabled": False})
    shop.policy = shop.policy.model_copy(update={"instructions": off})
    verdict = shop.order("replay", event_id, carried=shop.written[event_id]).verdict
    assert (verdict.decision, verdict.taint_causes) == (Decision.CONTAIN, ("parent:e0",))
    assert shop.lies(event_id) == [("external", "principal")]


def test_a_revoked_parent_that_is_over_still_counts() -> None:
    """Contained, its row ends after a week; its child lives for a month. A write that named it would be tainted, so the
    child is not shared; nor is it once somebody writes a clean entry under the name that was free again."""
    shop = Shop()
    parent = accepted(shop)
    child = accepted(shop, parents=(parent,))
    shop.order("revoke", parent)
    later = T0 + 9 * DAY_MS
    assert shop.write(parents=(parent,), append_ms=later).verdict.taint_causes == (f"unknown:{parent}",)
    assert causes(shop.order("promote", child, append_ms=later)) == [f"unknown:{parent}"]
    assert shop.write(id=parent, append_ms=later).verdict.decision is Decision.ACCEPT
    assert causes(shop.order("promote", child, append_ms=later)) == [f"unknown:{parent}"]


def test_a_grandparent_whose_time_was_up_has_no_say() -> None:
    """A ends; B of A is clean, as for any write that names B, and so is C of B. B itself names what nobody knows."""
    shop = Shop()
    above = accepted(shop, parents=(accepted(shop),), append_ms=T0 + 20 * DAY_MS)
    event_id = accepted(shop, parents=(above,), append_ms=T0 + 25 * DAY_MS)
    late = T0 + 31 * DAY_MS
    assert causes(shop.order("promote", above, append_ms=late)) == ["unknown:e0"]
    assert shop.order("promote", event_id, append_ms=late).verdict.decision is Decision.ACCEPT


def test_a_parent_that_look_back_took_out_counts() -> None:
    """It was never revoked, and what names it is tainted all the same."""
    shop = Looking()
    parent = shop.passage()
    child = accepted(shop, content="The boat lies at pier four.", parents=(parent,))
    assert [gone.event_id for gone in shop.ask().verdict.withdraws] == [parent]
    assert causes(shop.order("promote", child)) == [f"not_landed:{parent}"]


def test_more_ancestors_than_can_be_asked_count_as_tainted(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look is bounded: beyond, nobody vouches for what was not looked at."""
    monkeypatch.setattr(monitor, "ANCESTORS_MAX", 3)
    shop = Shop()
    chain = [accepted(shop)]
    for _ in range(4):
        chain.append(accepted(shop, parents=(chain[-1],)))
    assert causes(shop.order("promote", chain[4])) == [monitor.TOO_MANY]
    assert shop.order("promote", chain[3]).verdict.decision is Decision.ACCEPT


@pytest.mark.parametrize("waits", [False, True])
def test_a_lifted_label_is_asked_for_no_ancestors(waits: bool) -> None:
    """Two reviewers said that where it came from counts no more: it is shared, and so is what was made from it. What it
    says is another matter, which whoever promotes it sets aside."""
    shop = Shop()
    page = contained(shop)
    if waits:
        policy = shop.policy
        hold = policy.instructions.model_copy(update={"hold_contained": True})
        shop.policy = policy.model_copy(update={"instructions": hold})
        assert shop.write(content=BAD, parents=(page,)).verdict.decision is Decision.QUARANTINE
    else:
        contained(shop, "user", parents=(page,))
    event_id = f"e{shop.offset}"
    shop.order("declassify", event_id)
    if waits:
        released(shop, event_id)
    child = accepted(shop, parents=(event_id,))
    for name in (event_id, child):
        shop.order("promote", name, parameters={"despite": "detection"} if waits and name == event_id else {})
        assert shop.lies(name) == [("guidance", "shared")]


# a revocation, a lifted label, and a revocation again


def test_a_held_write_is_revoked_again_after_its_label_was_lifted() -> None:
    """The lifted label ends the first revocation; the second counts, and no release lets the write in."""
    shop = Shop()
    event_id = held(shop)
    for _ in range(2):
        assert shop.order("revoke", event_id, carried=None).verdict.findings[0].code == "revocation.held"
        if _ == 0:
            assert shop.order("declassify", event_id).verdict.decision is Decision.RECORD
    assert released(shop, event_id).verdict.reasons == ("review.tainted",)


def test_what_was_revoked_and_declassified_is_as_good_as_any() -> None:
    """It is renewed, its children are shared, and it can be revoked anew."""
    shop = Shop()
    event_id = accepted(shop)
    child = accepted(shop, parents=(event_id,))
    shop.order("revoke", event_id)
    shop.order("declassify", event_id)
    assert entry_row(shop, event_id)["revoked"] is None
    shop.offset += 60
    for action, name in (("renew", event_id), ("promote", child), ("revoke", event_id)):
        assert shop.order(action, name).verdict.decision is not Decision.REJECT
    assert refused(shop.order("renew", event_id)) == "renewal.revoked"


def test_who_revokes_and_lifts_lets_in_what_came_of_a_revoked_entry() -> None:
    """The way in for a child that is found to be good: its own label falls, and two lift it."""
    shop = Shop()
    parent = accepted(shop)
    event_id = held(shop, parent)
    shop.order("withdraw", parent)
    shop.order("revoke", event_id, carried=None)
    shop.order("declassify", event_id)
    released(shop, event_id)
    assert shop.lies(event_id) == [("guidance", "principal")]
