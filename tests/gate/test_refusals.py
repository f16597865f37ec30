"""Why a command is refused, each reason by an example: a refusal says what stands against it, and changes nothing."""

from typing import Any

import pytest
from tests.gate.build import T0, Core
from tests.gate.landed import Shop
from tests.gate.test_landed import BAD, accepted, contained, refused
from tests.gate.test_look_back import holder, looked

from memsluice.envelope.registry import Role
from memsluice.events.models import Action
from memsluice.events.names import EVERYBODY, EventType
from memsluice.gate.commands.dispatch import COMMANDS
from memsluice.gate.policy.model import default, laid_over

LATE = "2030-01-01T00:00:00Z"


def test_what_is_shared_is_not_shared_once_more() -> None:
    """A second promotion would move the entry to where it lies."""
    shop = Shop()
    event_id = accepted(shop)
    shop.order("promote", event_id)
    assert refused(shop.order("promote", event_id)) == "promotion.shared_before"


def test_a_renewal_that_holds_no_longer_is_refused() -> None:
    """A policy that was shortened since takes no time from an entry by renewing it."""
    shop = Shop()
    event_id = contained(shop)
    shop.policy = laid_over(shop.policy, {"ttl_seconds": {"external_web": 60}})
    assert refused(shop.order("renew", event_id)) == "renewal.no_later"


def test_a_held_write_without_a_label_has_none_to_lift_and_one_with_it_counts_by_the_day() -> None:
    """Held for its words alone, it is clean; what is lifted while held counts as what is lifted where it lies."""
    changes = {"commands": {"declassifications_per_day": 1}, "instructions": {"hold_contained": True}}
    shop = Shop(laid_over(default().default, changes))
    shop.write(content=BAD)
    assert refused(shop.order("declassify", f"e{shop.offset}")) == "declassification.not_tainted"
    parent, held = contained(shop), []
    for number in range(2):
        assert shop.write(content=f"{BAD} {number}", parents=(parent,)).verdict.decision == "quarantine"
        held.append(f"e{shop.offset}")
    first, second = (shop.order("declassify", name) for name in held)
    assert first.verdict.findings[0].code == "declassification.lifted"
    assert refused(second).startswith("rates.")


def test_a_session_is_distrusted_once() -> None:
    """A second revocation of it adds nothing; one of a session that nobody saw is refused for that."""
    shop = Shop()
    shop.observe("open")
    fields: dict[str, Any] = {"parameters": {"of": "session"}, "digest": None, "carried": None}
    assert shop.order("revoke", "s1", **fields).verdict.decision == "record"
    assert refused(shop.order("revoke", "s1", **fields)) == "revocation.nothing_to_do"
    assert refused(shop.order("revoke", "nobody", **fields)) == "revocation.unknown_session"
    assert refused(shop.order("revoke", "s1", **fields | {"parameters": {"of": "agent"}})) == "commands.bad_parameter"


def test_what_look_back_took_out_is_revoked_by_its_own_digest() -> None:
    """A command about another content than the one that was taken out is refused, as for what lies there."""
    shop, event_id = looked()
    assert refused(shop.order("revoke", event_id, digest="0" * 64)) == "landed.other_digest"


def test_what_was_replaced_is_labelled_where_it_was() -> None:
    """Its content is gone, and nothing moves: what names it as a parent is tainted from now on."""
    shop = Shop()
    old = accepted(shop, key="plan")
    accepted(shop, key="plan", content="Ana prefers the late train.")
    verdict = shop.order("revoke", old).verdict
    assert verdict.findings[-1].code == "revocation.labelled"
    assert (verdict.reasons, verdict.object_id, verdict.withdraws) == ((), None, ())
    assert shop.write(parents=(old,)).verdict.taint_causes == (f"parent:{old}",)


def dismiss(core: Core, **fields: Any) -> Any:
    """Dismiss a dead letter."""
    base = {"action": "dismiss", "target": "memory.events.v1:0:1", "digest": "0" * 64, "reason": "Noise.",
            "expires_at": LATE, "approvers": ("key-reviewer",), "tenant": EVERYBODY}  # fmt: skip
    return core.see("reviewer", EventType.COMMAND, **base | fields)


@pytest.mark.parametrize(
    ("fields", "code", "detail"),
    [
        ({"tenant": "acme"}, "dismissal.one_tenant", {}),
        ({"digest": None}, "dismissal.incomplete", {"field": "digest"}),
        ({"reason": ""}, "dismissal.incomplete", {"field": "reason"}),
        ({}, "dismissal.noted", {"why": "Noise."}),
    ],
)
def test_a_dead_letter_is_dismissed_for_a_reason_and_by_its_digest(
    fields: dict[str, Any], code: str, detail: dict[str, Any]
) -> None:
    """It is nobody's, so it is dismissed for everybody; what is missing is named, and it is noted with its reason."""
    verdict = dismiss(Core(), **fields).verdict
    assert verdict.decision == ("record" if code == "dismissal.noted" else "reject")
    assert [(found.code, dict(found.detail or {})) for found in verdict.findings] == [(code, detail)]


@pytest.mark.parametrize("action", Action)
def test_only_orders_that_concern_everybody_are_given_for_everybody(action: Action) -> None:
    """About nobody's entry or key there is nothing to say; what no version carries out yet is refused as that."""
    verdict = dismiss(Core(), action=action.value).verdict
    may = COMMANDS.get(action)
    if may is None:
        assert verdict.reasons == ("commands.not_available",)
    elif Role.REVIEWER not in may.roles:
        (finding,) = verdict.findings
        assert (finding.code, finding.detail["needs"]) == ("commands.not_permitted", [role.value for role in may.roles])
    else:
        assert ("commands.one_tenant" in verdict.reasons) == (action is not Action.DISMISS)


def test_only_a_revocation_is_about_a_session() -> None:
    """Nothing of a session lies in the store: to withdraw one is a command that says no sense, and is named as that."""
    shop = Shop()
    shop.observe("open")
    fields: dict[str, Any] = {"parameters": {"of": "session"}, "digest": None, "carried": None}
    assert refused(shop.order("withdraw", "s1", **fields)) == "commands.bad_parameter"


def test_what_a_command_carries_is_told_apart_from_what_it_does_not_carry() -> None:
    """A command without the entry's record, and one with another entry's, are refused with which of both it was."""
    shop = Shop()
    event_id, other = accepted(shop), accepted(shop, content="Ana prefers the late train.")
    for carried, told in ((None, False), (shop.written[event_id], True), (shop.accepted[other], True)):
        outcome = shop.order("promote", event_id, carried=carried)
        assert refused(outcome) == "landed.other_record"
        assert outcome.verdict.findings[0].detail == {"carried": told}


def test_a_lifted_label_is_told_before_and_after() -> None:
    """Tier, taint and causes of the held write, as they were and as they are, and whether its lineage is known."""
    shop = Shop(laid_over(default().default, {"instructions": {"hold_contained": True}}))
    parent = contained(shop)
    shop.write(content=BAD, parents=(parent,))
    held = f"e{shop.offset}"
    (told,) = shop.order("declassify", held).verdict.findings
    causes = (f"parent:{parent}",)
    assert told.detail == {
        "before": {"tier": 5, "taint": True, "causes": causes},
        "after": {"tier": 3, "taint": False, "causes": ()},
        "known": True,
    }


def test_a_key_is_free_where_its_entry_no_longer_lies() -> None:
    """Promoted, the entry has another object: that of its old scope is nobody's, and the shared one is its own."""
    shop = Shop()
    event_id = accepted(shop, key="plan")
    before = shop.accepted[event_id].admission.object_id
    shop.order("promote", event_id)
    after = shop.accepted[event_id].admission.object_id
    assert holder(shop, before) is None
    assert holder(shop, after) is not None
    assert before != after


@pytest.mark.parametrize(
    ("fields", "code", "detail"),
    [
        ({"action": "protect", "parameters": {"visibility": "nobody"}}, "bad_parameter", "parameters.visibility"),
        ({"action": "protect", "parameters": {"visibility": "principal"}}, "bad_parameter", "parameters.owner"),
        ({"action": "declassify", "parameters": {"despite": "all"}}, "bad_parameter", "parameters.despite"),
        ({"action": "revoke", "parameters": {"of": "agent"}}, "bad_parameter", "parameters.of"),
        ({"action": "declassify", "approvers": ("key-reviewer",)}, "approvals", {"needs": 2, "has": 1}),
    ],
)
def test_what_is_wrong_with_a_command_is_named(fields: dict[str, Any], code: str, detail: Any) -> None:
    """Whoever sent it reads which field it was, or how many signatures are missing."""
    shop = Shop()
    event_id = contained(shop)
    who = "operator" if fields["action"] == "protect" else "reviewer"
    rest = {name: value for name, value in fields.items() if name != "action"}
    outcome = shop.order(fields["action"], event_id, who, **rest)
    assert refused(outcome) == f"commands.{code}"
    assert outcome.verdict.findings[0].detail == ({"field": detail} if isinstance(detail, str) else detail)


def test_a_renewal_to_the_very_end_that_it_has_is_none() -> None:
    """Given within the millisecond of the write it would prolong nothing, and send the entry's record once more."""
    shop = Shop()
    event_id = accepted(shop)
    assert refused(shop.order("renew", event_id, append_ms=T0)) == "renewal.no_later"


def test_what_a_withdrawal_takes_out_is_told_with_its_place() -> None:
    """Object and zone as they were, and that it lies nowhere after."""
    shop = Shop()
    event_id = accepted(shop)
    before = shop.accepted[event_id].admission
    (told,) = shop.order("withdraw", event_id).verdict.findings
    assert told.detail is not None
    was, now = told.detail["before"], told.detail["after"]
    assert (was["object"], was["zone"], was["landed"], now["landed"]) == (before.object_id, "guidance", True, False)


def test_only_an_operator_takes_out_what_is_protected_and_the_rule_is_named() -> None:
    """Rule 3 stands against a reviewer."""
    shop = Shop()
    event_id = accepted(shop, key="plan")
    parameters = {"visibility": "principal", "owner": "ana"}
    shop.see("operator", EventType.COMMAND, action="protect", target="plan", parameters=parameters, expires_at=LATE)
    outcome = shop.order("withdraw", event_id)
    assert refused(outcome) == "revocation.protected"
    assert outcome.verdict.findings[0].detail == {"rule": 3}
