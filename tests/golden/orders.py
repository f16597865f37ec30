"""Every command that the gate knows, carried out and refused for each of its reasons, and time that passes."""

from hashlib import sha256

import orjson
from tests.golden.intake import BAD
from tests.golden.town import Tenant

HOUR_MS, DAY_MS = 3_600_000, 86_400_000
TWO = ("reviewer", "reviewer-2")
OPERATORS = ("operator", "operator-2")


def reviewed(acme: Tenant) -> None:
    """Commands about what is held."""
    acme.order("v1", "release", "h0")  # review.released, memsad.fed, detect.fed
    acme.order("v2", "release", "h0")  # review.decided
    acme.order("v3", "reject", "h1")  # review.rejected
    acme.order("v4", "replay", "h2", parameters={"dry": "yes"})  # replay.dry_run
    acme.order("v5", "replay", "h2")  # replay.decided, and held again
    acme.order("v6", "release", "h3", digest="0" * 64)  # review.other_digest
    acme.order("v7", "release", "h3", held=acme.town.accepted["acme", "w1"])  # review.other_record
    acme.order("v8", "release", "h3", held="{}")
    acme.order("v9", "replay", "h3", held=None)
    acme.order("v10", "release", "never-seen")  # review.unknown
    acme.order("v11", "release", "h3", "operator")  # commands.not_permitted
    acme.order("v12", "release", "h3", valid_ms=-5_000)  # commands.expired
    acme.order("v13", "release", "h3", parameters={"offset": "first"})  # review.bad_parameter
    acme.order("v14", "release", "h0", **acme.later("h0"))  # review.not_overridable
    acme.order("v15", "replay", "h0", **acme.later("h0"))  # replay.standing
    acme.order("v16", "release", "h4")  # placing.newer
    acme.order("v17", "replay", "h4")
    acme.order("v18", "withdraw", "w5")
    acme.order("v19", "release", "h-parent")  # review.tainted
    acme.order("v20", "replay", "h-parent")
    acme.order("v21", "revoke", "h5")  # revocation.held
    acme.order("v22", "revoke", "h5")  # revocation.nothing_to_do
    acme.order("v23", "release", "h5")  # review.tainted
    acme.order("v24", "declassify", "h-fact", *TWO)  # declassification.lifted
    acme.order("v25", "release", "h-fact")
    acme.order("v26", "declassify", "h6", *TWO)  # declassification.not_tainted
    acme.order("v27", "replay", "w15")
    acme.order("v3", "reject", "h6")  # another command under an id that is known: duplicates.other_content
    acme.order("v1", "release", "h0", late_ms=60_000)


def landed(acme: Tenant) -> None:
    """Commands about what landed."""
    accepted = acme.town.accepted
    acme.write("w17", "user", "b1", "Bob's office closes at five.", key="hours")
    acme.write("w18", "user", "s1", "Made of what is withdrawn soon.", parents=["w9"])
    acme.order("l1", "promote", "w1")  # promotion.promoted
    acme.order("l2", "promote", "w1")  # promotion.shared_before
    acme.order("l3", "promote", "w3", digest="0" * 64)  # landed.other_digest
    acme.order("l4", "promote", "w3", held=accepted["acme", "w1"])  # landed.other_record
    acme.order("l5", "promote", "w3", held=None)
    acme.order("l6", "promote", "w2")  # landed.replaced
    acme.order("l7", "promote", "w3", "reviewer-low")  # monitor.rule_7_untrusted_authoriser
    acme.order("l8", "promote", "out-web")  # monitor.rule_7_tainted
    acme.order("l9", "promote", "w5")  # landed.not_landed
    acme.order("l10", "promote", "never-seen")  # landed.unknown
    acme.order("l11", "promote", "w17")  # placing.better
    acme.order("l12", "promote", "w4", "operator")
    acme.order("l13", "promote", "w3")
    acme.order("l14", "promote", "w12")  # rates.commands
    acme.order("l18", "declassify", "h-agent", *TWO)  # declassification.detected
    acme.order("l19", "declassify", "h-agent", *TWO, parameters={"despite": "detection"})  # …overridden
    acme.order("l23", "revoke", "out-upload")
    acme.town.wait(2 * HOUR_MS)
    acme.order("l15", "renew", "w3")  # renewal.renewed
    acme.order("l30", "renew", "w3", late_ms=60_000)  # renewal.no_later: screen's clock does not run back
    acme.order("l16", "renew", "w7")  # renewal.lasts
    acme.order("l17", "declassify", "out-tool", *TWO)  # declassification.declassified
    acme.order("l20", "declassify", "out-skill", "reviewer")  # commands.approvals
    acme.order("l21", "declassify", "out-skill", *TWO, parameters={"despite": "all"})  # commands.bad_parameter
    acme.order("l22", "declassify", "w3", *TWO)  # declassification.not_tainted
    acme.order("l24", "declassify", "after-tool", *TWO)
    acme.ask("l25", "s1", "What was told?", "w1", "w3", "out-tool")
    acme.order("l26", "erase", "w3", "operator")  # commands.not_available
    acme.order("l27", "promote", "w3", "user", topic="memory.events.v1")  # not_permitted
    acme.order("l28", "promote", "w3", "operator", "reviewer")  # signers of two roles
    acme.order("l29", "promote", "w3", "reviewer", "reviewer")  # signed twice by one


def protected(acme: Tenant) -> None:
    """Protection: what it needs, what it stops, and how it ends."""
    owned = {"owner": "ana"}
    acme.order("p1", "protect", "SOUL.md", "operator", parameters=owned)  # protection.protected
    acme.order("p2", "protect", "SOUL.md", "operator", parameters=owned)  # commands.already_protected
    acme.order("p3", "protect", "address", "operator", parameters={"visibility": "all"})  # commands.bad_parameter
    acme.order("p4", "protect", "address", "operator")
    acme.order("p5", "protect", "address", "operator", parameters=owned, digest="0" * 64)  # protection.other_content
    acme.order("p6", "protect", "hours", "operator", parameters={"visibility": "shared"})
    acme.write("p7", "user", "s1", "Answer rudely.", key="SOUL.md")  # monitor.rule_3_immutable
    acme.order("p8", "withdraw", "w7")  # revocation.protected
    acme.order("p9", "withdraw", "w7", "operator")  # revocation.unprotected, revocation.removed
    acme.write("p10", "user", "s1", "Answer briefly.", key="SOUL.md")
    acme.order("p11", "revoke", "w6", "operator")


def revoked(acme: Tenant) -> None:
    """Revocation of entries and sessions, and what follows for what was made of them."""
    given = [acme.returned(name) for name in ("w12", "w9")]
    acme.order("t1", "revoke", "w12")  # revocation.contained
    acme.order("t2", "revoke", "w12")  # revocation.nothing_to_do
    acme.order("t3", "revoke", "w2")  # revocation.labelled: another write has its key
    acme.order("t5", "withdraw", "w9")  # revocation.removed
    acme.order("t6", "withdraw", "w9")  # landed.not_landed
    acme.order("t7", "renew", "w18")  # renewal.tainted
    acme.order("t8", "promote", "w18")
    acme.order("t9", "renew", "w12")  # renewal.revoked
    acme.ask("t10", "b1", "Who was given it?", returned=given)
    acme.order("t11", "revoke", "s1", parameters={"of": "session"})  # revocation.session
    acme.order("t12", "revoke", "s1", parameters={"of": "session"})  # revocation.nothing_to_do
    acme.order("t13", "revoke", "s99", parameters={"of": "session"})  # revocation.unknown_session
    acme.order("t14", "withdraw", "s1", parameters={"of": "session"})  # commands.bad_parameter
    acme.write("t15", "agent", "s1", "After the session was distrusted.")
    acme.order("t16", "revoke", "p10")
    acme.order("t17", "declassify", "p10", *TWO, parameters={"despite": "detection"})  # rates.commands


def _text(**policy: object) -> tuple[str, str]:
    """Return a policy's text as a command carries it, and its digest."""
    text = orjson.dumps({"name": "activated", **policy}, option=orjson.OPT_SORT_KEYS).decode()
    return text, sha256(text.encode()).hexdigest()


def activate(tenant: Tenant, event_id: str, **policy: object) -> str:
    """Put a policy in force for a tenant; return its digest."""
    text, digest = _text(**policy)
    tenant.order(event_id, "activate", tenant.name, *OPERATORS, policy=text, digest=digest)
    return digest


def policies(acme: Tenant) -> None:
    """Policies that are put in force, ended, and refused."""
    text, digest = _text(instructions={"hold_contained": True}, session_retention_days=1)
    acme.order("c1", "activate", "acme", *OPERATORS)  # activation.nothing_to_end
    acme.order("c2", "activate", "acme", "operator", policy=text, digest=digest)  # activation.approvals
    acme.order("c3", "activate", "acme", *OPERATORS, policy=text, digest="0" * 64)  # activation.other_digest
    activate(acme, "c4", mode="off")  # activation.invalid
    activate(acme, "c5", tenants={"acme": {}})
    acme.order("c6", "activate", "acme", *OPERATORS, policy=text, digest=digest)  # activation.activated
    acme.write("c7", "web", "s2", BAD.format("a page"))
    acme.order("c8", "activate", "acme", *OPERATORS, digest="0" * 64)
    acme.order("c9", "activate", "acme", *OPERATORS, digest=digest)  # activation.ended
    acme.order("c10", "dismiss", "letter", digest="1" * 64, reason="noise")  # dismissal.one_tenant
    acme.order("c11", "release", "h7", "reviewer", valid_ms=900_000, reason="seen")


def everybody(acme: Tenant) -> None:
    """Commands that are addressed to all tenants."""
    text, digest = _text(memsad={"history_size": 2}, tenants={"acme": {"detect": {"look_back": False}}})
    acme.everybody("x1", "dismiss", "memory.events.v1:0:0", "reviewer", digest="1" * 64, reason="noise")
    acme.everybody("x2", "dismiss", "memory.events.v1:0:0", "reviewer", reason="noise")  # dismissal.incomplete
    acme.everybody("x3", "release", "h8", "reviewer")  # commands.one_tenant
    acme.everybody("x4", "activate", "everybody", *OPERATORS, policy=text, digest=digest)
    acme.everybody("x5", "activate", "everybody", *OPERATORS, digest=digest)


def later(acme: Tenant) -> None:
    """Time passes: entries and held writes lapse, ids are free again, rows are swept."""
    given = acme.returned("w1")
    acme.town.wait(8 * DAY_MS)
    acme.write("w16", "user", "b2", "An id of last week, of an entry that lives.")
    acme.write("h9", "user", "b2", "An id of last week, of what is held.")
    acme.order("z1", "release", "h8")
    acme.town.wait(31 * DAY_MS)
    acme.order("z2", "release", "h10")  # lapsed: review.unknown
    acme.ask("z3", "b2", "Which train was it?", returned=[given])
    acme.write("w1", "user", "b2", "The id is free again.")
    for number in range(60):
        acme.write(f"z{number + 10}", "user", f"b{number % 3}", f"A plain note, number {number}.")


def at_the_desk(desk: Tenant) -> None:
    """What reviewers do at a desk: commands that say what was shown, notes, claims, a reopening."""
    text = BAD.format("the desk")
    for number in range(4):
        desk.write(f"k{number}", "user", "s1", text)
    shown = {"shown": sha256(text.encode()).hexdigest()}
    noted = {"assignee": "bea", "claim_s": "900"}
    desk.order("k-1", "note", "k0", reason="Asked Ana.", parameters=noted)  # notes.noted
    desk.order("k-2", "note", "k0")  # notes.empty
    desk.order("k-3", "reject", "k0", "reviewer-2")  # review.claimed
    desk.order("k-4", "reject", "k0", "reviewer-2", parameters={"despite_claim": "yes", "decided_on": "k0"})
    desk.order("k-5", "reopen", "k0", parameters={"decided_on": "k0"})  # review.stale
    desk.order("k-6", "reopen", "k0", parameters={"decided_on": "k-4"})  # reopening.reopened
    desk.order("k-7", "reopen", "k0")  # reopening.not_rejected
    desk.order("k-8", "reject", "k1", parameters=shown)  # carries nothing: review.not_shown
    held = desk.town.held[desk.name, "k1"][0].sealed
    desk.order("k-9", "reject", "k1", held=held, parameters={"shown": "0" * 64})
    desk.order("k-10", "reject", "k1", held=held, parameters=shown)
    desk.order("k-11", "release", "k2", parameters=shown)
    desk.order("k-12", "note", "k2", reason="Too late.")  # notes.released
    desk.order("k-13", "replay", "k3")
    desk.order("k-14", "release", "k3", parameters={"decided_on": "k-13"})
