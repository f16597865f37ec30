"""What an operator protected: nothing changes it, and an operator alone takes it out (Theorem 1, Part I)."""

import pytest
from tests.gate.landed import Shop
from tests.gate.looking import Looking
from tests.gate.test_landed import BAD, accepted, contained, refused

from memsluice.envelope.verdict import Decision


def protect(shop: Shop, key: str = "plan", **scope: str) -> Decision:
    """Have an operator protect a key, Ana's own if nothing else is said."""
    where = scope or {"visibility": "principal", "owner": "ana"}
    return shop.order("protect", key, "operator", digest=None, carried=None, parameters=where).verdict.decision


def test_look_back_reports_a_protected_entry_and_leaves_it() -> None:
    """A question shows it in a new light: the verdict names it, the store keeps it, and its children stay clean."""
    shop = Looking()
    event_id = shop.passage(key="harbour")
    assert protect(shop, "harbour") is Decision.RECORD
    verdict = shop.ask().verdict
    (told,) = [found for found in verdict.findings if found.code.startswith("detect.")]
    assert (told.code, told.detail["entries"][0]["event"]) == ("detect.look_back_protected", event_id)
    assert verdict.withdraws == ()
    assert shop.lies(event_id) == [("guidance", "principal")]
    assert not shop.write(parents=(event_id,)).verdict.taint


def test_look_back_takes_out_what_is_protected_in_another_scope() -> None:
    """Protection is of a key in one scope: Ben's key says nothing about Ana's."""
    shop = Looking()
    event_id = shop.passage(key="harbour")
    protect(shop, "harbour", visibility="principal", owner="ben")
    assert [gone.event_id for gone in shop.ask().verdict.withdraws] == [event_id]


@pytest.mark.parametrize("action", ["revoke", "withdraw"])
def test_a_reviewer_takes_out_nothing_that_is_protected_and_an_operator_does(action: str) -> None:
    """Who set it ends it: the entry goes, the verdict says that its key is free, and it can be written and protected
    anew."""
    shop = Shop()
    event_id = accepted(shop, key="plan")
    protect(shop)
    assert refused(shop.order(action, event_id)) == "revocation.protected"
    assert shop.lies(event_id) == [("guidance", "principal")]
    assert shop.write(key="plan").verdict.decision is Decision.REJECT
    verdict = shop.order(action, event_id, "operator").verdict
    done = {"revoke": "revocation.contained", "withdraw": "revocation.removed"}[action]
    assert [found.code for found in verdict.findings] == ["revocation.unprotected", done]
    assert ("guidance", "principal") not in shop.lies(event_id)
    again = accepted(shop, key="plan")
    assert protect(shop) is Decision.RECORD
    assert refused(shop.order(action, again)) == "revocation.protected"


def test_a_refused_order_of_an_operator_ends_no_protection() -> None:
    """Another digest takes nothing out, so the key stays as it was."""
    shop = Shop()
    event_id = accepted(shop, key="plan")
    protect(shop)
    assert refused(shop.order("revoke", event_id, "operator", carried=None)) == "landed.other_record"
    assert shop.write(key="plan").verdict.decision is Decision.REJECT
    assert protect(shop) is Decision.REJECT


def test_data_under_a_protected_key_and_what_was_replaced_go_by_a_reviewers_word() -> None:
    """Nobody follows either: the protected entry stays, and so does its protection."""
    shop = Shop()
    first = accepted(shop, key="plan", content="Plan one.")
    data = contained(shop, key="plan", content="A page's plan.")
    last = accepted(shop, key="plan", content="Plan two.")
    protect(shop)
    for event_id, action in ((first, "revoke"), (first, "withdraw"), (data, "withdraw")):
        verdict = shop.order(action, event_id).verdict
        assert verdict.decision is Decision.RECORD
        assert verdict.findings[0].code != "revocation.unprotected"
    assert (shop.lies(data), shop.lies(last)) == ([], [("guidance", "principal")])
    assert shop.write(key="plan").verdict.decision is Decision.REJECT


# what a key's place holds gives way to what is as good, and not to less


@pytest.mark.parametrize("action", ["promote", "declassify"])
def test_no_command_puts_a_lesser_entry_in_the_place_of_a_better_one(action: str) -> None:
    """An operator's words under a key are not overwritten by who shares a user's, or lifts a page's label."""
    shop = Shop()
    where = {"visibility": "shared"} if action == "promote" else {}
    words = accepted(shop, "operator", key="plan", content="The plan of the house.", **where)
    event_id = accepted(shop, key="plan", **{"principal": "ben", "session": "s2"}) if where else contained(
        shop, key="plan"
    )  # fmt: skip
    outcome = shop.order(action, event_id)
    assert refused(outcome) == "placing.better"
    assert outcome.verdict.findings[0].detail == {"by": words}
    assert ("guidance", "shared" if where else "principal") in shop.lies(words)


@pytest.mark.parametrize("action", ["release", "replay"])
def test_a_held_page_whose_label_was_lifted_takes_no_better_entrys_place(action: str) -> None:
    """Held or contained: who lifts a label says nothing of an operator's words under its key."""
    shop = Shop()
    hold = shop.policy.instructions.model_copy(update={"hold_contained": True})
    shop.policy = shop.policy.model_copy(update={"instructions": hold})
    words = accepted(shop, "operator", key="plan", content="The plan of the house.")
    assert shop.write("web", content=BAD, key="plan").verdict.decision is Decision.QUARANTINE
    event_id = f"e{shop.offset}"
    assert shop.order("declassify", event_id, carried=None).verdict.decision is Decision.RECORD
    off = hold.model_copy(update={"enabled": False})
    shop.policy = shop.policy.model_copy(update={"instructions": off})
    outcome = shop.order(action, event_id, carried=shop.written[event_id])
    assert refused(outcome) == "placing.better"
    assert (shop.lies(words), shop.lies(event_id)) == ([("guidance", "principal")], [])
    shop.order("withdraw", words)
    shop.order(action, event_id, carried=shop.written[event_id])
    assert shop.lies(event_id) == [("guidance", "principal")]


def test_a_protection_that_is_bound_to_a_content_protects_no_other() -> None:
    """What was written in between, what is over, and nothing at all: the operator looked at something else."""
    shop = Shop()

    def bound(event_id: str) -> Decision:
        where = {"visibility": "principal", "owner": "ana"}
        digest = shop.written[event_id].content_digest
        return shop.order("protect", "plan", "operator", digest=digest, carried=None, parameters=where).verdict.decision

    seen = accepted(shop, key="plan", content="Plan one.")
    between = accepted(shop, "user", key="plan", content="Plan two.")
    assert bound(seen) is Decision.REJECT
    assert accepted(shop, key="plan", content="Plan three.")
    shop.order("withdraw", f"e{shop.offset}")
    assert bound(between) is Decision.REJECT
    last = accepted(shop, key="plan", content="Plan four.")
    assert bound(last) is Decision.RECORD
    assert shop.write(key="plan").verdict.decision is Decision.REJECT


def test_the_audit_tells_whose_key_is_protected_and_what_lies_there() -> None:
    """Every scope has its own key of that name; the command's parameters are not in the verdict, the finding is."""
    shop = Shop()
    event_id = accepted(shop, key="plan")
    scopes = ({"visibility": "principal", "owner": "ana"}, {"visibility": "shared"})
    told = []
    for where in scopes:
        outcome = shop.order("protect", "plan", "operator", digest=None, carried=None, parameters=where)
        (found,) = outcome.verdict.findings
        told.append(found.detail)
    (lies,) = (name for name, one in shop.store.items() if one.admission.event_id == event_id)
    assert told[0] == {
        "visibility": "principal", "owner": "ana", "namespace": "default", "object": lies, "entry": event_id,
    }  # fmt: skip
    assert (told[1]["visibility"], told[1]["owner"], told[1]["entry"]) == ("shared", "", None)
    assert told[1]["object"] != lies
