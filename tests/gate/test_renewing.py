"""Renewal on use: whose recall lets what hold longer, for how long, and what never does."""

from dataclasses import replace
from typing import Any

import pytest
from tests.gate.build import T0
from tests.gate.landed import Shop
from tests.gate.looking import Looking
from tests.gate.test_landed import accepted, entry_row

from memsluice.envelope.records import Accepted
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.gate.policy.model import default, laid_over
from memsluice.gate.reasons import WORDS

DAY_MS = 86_400_000
LIFE_DAYS = 30


def shop(**rule: Any) -> Shop:
    """Return a shop whose policy renews by use; the rest of it ships."""
    return Shop(laid_over(default().default, {"renew_on_use": {"enabled": True, **rule}}))


def shared(made: Shop, **fields: Any) -> str:
    """Have an entry of Ana's shared by a reviewer; return its event id."""
    event_id = accepted(made, **fields)
    assert made.order("promote", event_id).verdict.decision is Decision.ACCEPT
    return event_id


def opened(made: Shop, session: str = "b1", principal: str = "ben") -> None:
    """Have the platform open a session of somebody."""
    made.observe("open", session=session, principal=principal)


def use(made: Shop, entry: Accepted | None, day: float = 20, **fields: Any) -> Verdict:
    """Have somebody be given an entry, and the reader carry it; ``fields`` say otherwise."""
    admission = entry.admission if entry is not None else None
    given = fields.pop("given", admission)
    returned = () if given is None else ({
        "object_id": given.object_id, "version": given.version, "event_id": given.event_id, "tier": int(given.tier),
        "taint": given.taint,
    },)  # fmt: skip
    base = {"principal": "ben", "session": "b1", "renews": "{}", "append_ms": T0 + int(day * DAY_MS)}
    return made.recall(returned=returned, carried=entry, **{**base, **fields}).verdict


def told(verdict: Verdict) -> str:
    """Return what the verdict says of the renewal; a recall is recorded whatever becomes of that."""
    assert verdict.decision is Decision.RECORD
    assert verdict.reasons == ()
    (found,) = [one for one in verdict.findings if one.code.split(".")[0] not in ("sessions", "memsad", "detect")]
    assert found.decision is Decision.ACCEPT
    assert found.code in WORDS
    return found.code


def refused(verdict: Verdict) -> str:
    """Return why nothing was renewed, having made sure that nothing lands."""
    assert (verdict.object_id, verdict.target) == (None, "")
    return told(verdict)


def test_what_somebody_else_is_given_holds_for_its_tiers_time_once_more() -> None:
    """A new version of the same object, signed by the gate, with the same content, label, writer and place; the
    verdict names the entry and says until when."""
    made = shop()
    event_id = shared(made)
    opened(made)
    before = made.accepted[event_id]
    verdict = use(made, before)
    after = made.accepted[event_id]
    until_ms = T0 + (20 + LIFE_DAYS) * DAY_MS
    assert told(verdict) == "renewing.renewed"
    same = replace(before.admission, version=verdict.sealed_offset, expires_ms=until_ms, policy=made.policy.digest)
    assert (after.admission, after.content, after.vector_text) == (same, before.content, before.vector_text)
    assert (verdict.target, verdict.object_id, verdict.expires_ms) == (event_id, same.object_id, until_ms)
    assert (verdict.content_digest, verdict.tier, verdict.withdraws) == (same.content_digest, same.tier, ())
    row = entry_row(made, event_id)
    assert (row["x"], row["version"], row.get("reviewed", "")) == (until_ms, verdict.sealed_offset, "")


def test_the_next_recall_in_flight_that_was_given_the_last_version_is_no_unverified_read() -> None:
    """The reader was honest when it read; it renews nothing, since what it carries lies there no more."""
    made = shop(per_entry_per_day=5, least_elapsed=0)
    old = made.accepted[shared(made)]
    opened(made)
    use(made, old)
    verdict = use(made, old, day=20.01)
    assert refused(verdict) == "landed.other_record"
    assert [one.detail["unknown"] for one in verdict.findings if one.code == "sessions.returned"] == [0]


def test_nothing_is_renewed_by_the_policy_that_ships() -> None:
    """Who wants it says so."""
    made = Shop()
    event_id = shared(made)
    opened(made)
    assert refused(use(made, made.accepted[event_id])) == "renewing.off"


def test_a_recall_that_carries_nothing_says_nothing_of_it() -> None:
    """Nor does it renew what it returned."""
    made = shop()
    event_id = shared(made)
    opened(made)
    verdict = use(made, made.accepted[event_id], renews=None)
    assert [one.code for one in verdict.findings if one.code.startswith("ren")] == []
    assert entry_row(made, event_id)["x"] == T0 + LIFE_DAYS * DAY_MS


@pytest.mark.parametrize(
    ("who", "by"),
    [
        ({"principal": "ana", "session": "a2"}, ["principal"]),
        ({"principal": "ben", "session": "s1"}, ["session"]),
    ],
)
def test_no_author_prolongs_what_he_wrote(who: dict[str, str], by: list[str]) -> None:
    """From whatever session he asks, and whoever speaks in the session that wrote it."""
    made = shop()
    event_id = shared(made)
    made.rows.pop(b"acme\0session\0s1", None)  # forgotten by now: else the second is a mismatch
    opened(made, who["session"], who["principal"])
    verdict = use(made, made.accepted[event_id], **who)
    assert refused(verdict) == "renewing.own"
    assert [one.detail["by"] for one in verdict.findings if one.code == "renewing.own"] == [by]


def test_no_credential_prolongs_what_it_wrote() -> None:
    """A key that may do both is its own witness."""
    made = shop()
    entry = made.accepted[shared(made)]
    opened(made)
    own = replace(entry, admission=replace(entry.admission, kid="key-reader"))
    assert refused(use(made, own)) == "renewing.own"


@pytest.mark.parametrize("how", ["unopened", "web", "tainted entry", "other person"])
def test_a_session_that_something_outside_may_steer_prolongs_nothing(how: str) -> None:
    """Nobody opened it, it read a page, it was given outside content, or it is somebody else's."""
    made = shop()
    event_id = shared(made)
    if how != "unopened":
        opened(made, principal="cem" if how == "other person" else "ben")
    if how == "web":
        made.observe("web", session="b1", principal="ben")
    if how == "tainted entry":
        made.recall(principal="ben", session="b1", zone="external", returned=({
            "object_id": "0" * 8 + "-0000-0000-0000-" + "0" * 12, "version": 1, "event_id": "e9", "tier": 5,
            "taint": True,
        },))  # fmt: skip
    verdict = use(made, made.accepted[event_id])
    if how == "other person":
        assert verdict.reasons == ("sessions.mismatch",)
        assert verdict.object_id is None
    else:
        assert refused(verdict) == "renewing.session"
    assert entry_row(made, event_id)["x"] == T0 + LIFE_DAYS * DAY_MS


@pytest.mark.parametrize("fields", [{"given": None}, {"named": True}, {"zone": "external"}])
def test_what_the_recall_did_not_find_and_give_is_not_renewed(fields: dict[str, Any]) -> None:
    """A reader that carries something else than it returned, or was asked for by name, or found as data."""
    made = shop()
    event_id = shared(made)
    opened(made)
    assert refused(use(made, made.accepted[event_id], **fields)) == "renewing.not_returned"


def test_an_older_version_is_not_renewed() -> None:
    """Its record is the gate's, and it says that it returned that version: a later one lies there."""
    made = shop()
    event_id = shared(made)
    old = made.accepted[event_id]
    opened(made)
    made.order("renew", event_id, append_ms=T0 + 2 * DAY_MS)
    assert refused(use(made, old)) == "landed.other_record"


def test_a_record_that_the_gate_did_not_seal_is_not_renewed() -> None:
    """What a recall carries is opened as what a command carries; nothing was sealed, nothing is renewed."""
    made = shop()
    event_id = shared(made)
    opened(made)
    assert refused(use(made, None, given=made.accepted[event_id].admission)) == "renewing.unsealed"


@pytest.mark.parametrize("how", ["contained", "revoked", "withdrawn", "parent revoked", "replaced"])
def test_what_is_tainted_or_gone_is_never_renewed(how: str) -> None:
    """Outside content, what was taken back, and what was made from it, whatever the reader says of it."""
    made = shop()
    parent = accepted(made)
    event_id = shared(made, parents=(parent,), key="k")
    entry = made.accepted[event_id]
    opened(made)
    if how == "contained":
        event_id = f"e{made.offset + 1}"
        assert made.write("web", principal="ana").verdict.decision is Decision.CONTAIN
        entry = made.accepted[event_id]
    elif how == "revoked":
        made.order("revoke", event_id)
    elif how == "withdrawn":
        made.order("withdraw", event_id)
    elif how == "parent revoked":
        made.order("revoke", parent)
    else:
        later = accepted(made, key="k")
        assert made.order("promote", later).verdict.object_id == entry.admission.object_id
    row = entry_row(made, event_id)
    wanted = {"contained": ("renewing.tainted", 0.001), "revoked": ("renewing.tainted", 6),
              "withdrawn": ("landed.not_landed", 20), "parent revoked": ("renewal.tainted", 20),
              "replaced": ("landed.replaced", 20)}[how]  # fmt: skip
    code, day = wanted
    assert refused(use(made, entry, day)) == code
    assert entry_row(made, event_id) == row


def test_what_does_not_end_is_left_alone() -> None:
    """An operator's words have no end to put off."""
    made = shop()
    event_id = accepted(made, "operator", visibility="shared")
    opened(made)
    assert refused(use(made, made.accepted[event_id])) == "renewal.lasts"


def test_a_use_renews_once_so_much_of_the_time_is_over() -> None:
    """Half of the tier's time by default, to the millisecond; and never what is over."""
    for day, expected in ((LIFE_DAYS / 2 - 1e-6, "renewing.early"), (LIFE_DAYS / 2, "renewing.renewed"),
                          (LIFE_DAYS, "landed.unknown")):  # fmt: skip
        made = shop()
        event_id = shared(made, append_ms=T0)
        opened(made)
        assert told(use(made, made.accepted[event_id], day)) == expected


def test_no_use_makes_an_entry_hold_beyond_the_longest_time() -> None:
    """However often it is used; a person may renew it still."""
    made = shop(longest_days=45)
    event_id = shared(made, append_ms=T0)
    opened(made)
    assert use(made, made.accepted[event_id], 20).expires_ms == T0 + 45 * DAY_MS
    assert refused(use(made, made.accepted[event_id], 44)) == "renewal.no_later"
    verdict = made.order("renew", event_id, append_ms=T0 + 44 * DAY_MS).verdict
    assert verdict.expires_ms == T0 + 74 * DAY_MS


def test_a_day_has_so_many_renewals_and_an_entry_its_own() -> None:
    """Beyond that nothing is renewed, until hours later the window moved on; what is refused counts for nothing."""
    made = shop(per_day=2, per_entry_per_day=1, least_elapsed=0)
    names = [shared(made, content=f"Note {number}.") for number in range(3)]
    opened(made)
    assert refused(use(made, made.accepted[names[0]], named=True)) == "renewing.not_returned"
    for name in names[:2]:
        assert told(use(made, made.accepted[name], 20)) == "renewing.renewed"
    again = use(made, made.accepted[names[0]], 20.1)
    full = use(made, made.accepted[names[2]], 20.1)
    assert (refused(again), refused(full)) == ("rates.renewals", "rates.renewals")
    assert [one.detail["of"] for one in (*again.findings, *full.findings) if one.code == "rates.renewals"] == [
        "tenant", "tenant",
    ]  # fmt: skip
    assert told(use(made, made.accepted[names[2]], 21.2)) == "renewing.renewed"


def test_one_entry_does_not_take_the_day_of_all() -> None:
    """A policy with short lives: the entry's own limit is met first."""
    made = shop(per_day=50, per_entry_per_day=2, least_elapsed=0)
    event_id = shared(made)
    opened(made)
    codes = [told(use(made, made.accepted[event_id], 20 + step / 100)) for step in range(4)]
    assert codes == ["renewing.renewed", "renewing.renewed", "rates.renewals", "rates.renewals"]


def test_a_recall_that_is_replayed_renews_nothing() -> None:
    """Under another intake offset the same event is a duplicate; changed, its id is another content's."""
    made = shop(per_entry_per_day=5, least_elapsed=0)
    event_id = shared(made)
    opened(made)
    entry = made.accepted[event_id]
    assert told(use(made, entry, id="r1")) == "renewing.renewed"
    row = entry_row(made, event_id)
    again = use(made, entry, id="r1")
    assert (again.decision, again.object_id) == (Decision.DUPLICATE, None)
    other = use(made, made.accepted[event_id], id="r1", question="Another?")
    assert (other.decision, other.object_id) == (Decision.REJECT, None)
    assert entry_row(made, event_id) == row


def test_look_back_goes_before_a_renewal() -> None:
    """What the very recall makes suspicious and takes out is not renewed by it."""
    made = Looking()
    made.policy = laid_over(made.policy, {"renew_on_use": {"enabled": True, "least_elapsed": 0}})
    event_id = made.passage()
    entry = made.accepted[event_id]
    given = entry.admission
    returned = ({"object_id": given.object_id, "version": given.version, "event_id": event_id, "tier": 3,
                 "taint": False},)  # fmt: skip
    opened(made)
    verdict = made.ask(returned=returned, renews="{}", carried=entry, principal="ben", session="b1").verdict
    assert [gone.event_id for gone in verdict.withdraws] == [event_id]
    assert verdict.object_id is None
    assert verdict.has("landed.not_landed")


def test_what_another_encoder_made_is_not_renewed() -> None:
    """No question of the tenant's could find it: as a reviewer's renewal is refused for it."""
    made = shop()
    event_id = shared(made)
    opened(made)
    made.write(model="another@1")
    assert refused(use(made, made.accepted[event_id], vector=None)) == "encoder.carried"


def test_a_recall_on_which_screening_fails_renews_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is recorded, what it returned taints, and nobody looked whether what it found is suspicious."""
    made = shop()
    event_id = shared(made)
    opened(made)

    def fails(*_: Any) -> None:
        raise RuntimeError("a defect")

    monkeypatch.setattr("memsluice.gate.decision.Draft.asked", fails)
    verdict = use(made, made.accepted[event_id])
    assert (verdict.decision, verdict.object_id) == (Decision.RECORD, None)
    assert "renewing.renewed" not in {one.code for one in verdict.findings}
    assert verdict.has("screening.failed")
