"""The verdict's one reader and one writer: whatever was sent is read whole, and sent again as it was."""

from dataclasses import fields, replace
from typing import Any

import orjson
import pytest
from tests.envelope.made import finding, made, score, usual
from tests.gate.build import RING

from memsluice.envelope import verdict as module
from memsluice.envelope.codec import canonical
from memsluice.envelope.records import verdict_from_bytes, verdict_to_bytes
from memsluice.envelope.verdict import NEEDED, Decision, Verdict, Withdrawal
from memsluice.errors import SealError
from memsluice.events.models import Tier, Visibility, Zone

GONE = Withdrawal("o-1", Zone.EXTERNAL, "e7", "d7")
WHOLE = made(
    decision=Decision.CONTAIN,
    reasons=("monitor.rule_4_tainted",),
    findings=(finding("detect.scored", score=0.25, parts={"wording": 0.5}), finding("b.c", Decision.CONTAIN)),
    taint_causes=("tool:o-1",),
    seal_kid="seal-1",
    score=score(p=0.25, bound=None),
    object_id="o",
    zone=Zone.EXTERNAL,
    visibility=Visibility.SESSION,
    tier=Tier.EXTERNAL_TOOL,
    expires_ms=7,
    approvers=("k1", "k2"),
    parents=("e1",),
    returned=("e2",),
    withdraws=(GONE, replace(GONE, object_id="o-2")),
    usual=usual(p=0.5),
)


def sent(verdict: Verdict) -> Any:
    """Return a verdict as a topic carries it."""
    return orjson.loads(canonical(verdict.to_json()))


@pytest.mark.parametrize("verdict", [made(), WHOLE])
def test_what_is_sent_is_read_as_it_was_decided(verdict: Verdict) -> None:
    """Every field, nested ones in their types: a reader sees what the gate saw."""
    again = Verdict.from_json(sent(verdict))
    assert again == verdict
    names = [one.name for one in fields(Verdict)]
    assert [type(getattr(again, name)) for name in names] == [type(getattr(verdict, name)) for name in names]
    assert verdict_from_bytes(RING, "acme", verdict_to_bytes(RING, "acme", replace(verdict, seal_kid="seal-1"))) == (
        replace(verdict, seal_kid="seal-1")
    )


def test_every_field_that_is_no_json_value_has_a_reader() -> None:
    """A nested field that is added can't be forgotten on the way back."""
    assert set(module._READERS) == set(module._NESTED)


def test_a_verdict_of_another_version_is_sent_again_as_it_was() -> None:
    """Without what was added since, and with what a later version knows: re-delivery sends the very bytes."""
    whole = sent(WHOLE)
    early = {name: value for name, value in whole.items() if name in NEEDED}
    read = Verdict.from_json(early)
    assert (read.action, read.occurred_ms, read.withdraws, read.usual) == ("", 0, (), None)
    assert canonical(read.to_json()) == canonical(early)
    late = whole | {"of_a_later_version": {"a": [1]}}
    assert Verdict.from_json(late) == WHOLE
    assert canonical(Verdict.from_json(late).to_json()) == canonical(late)


def test_what_a_command_withdraws_was_once_no_list() -> None:
    """An early version wrote the one object of a command, or null."""
    whole = sent(WHOLE)
    assert Verdict.from_json(whole | {"withdraws": whole["withdraws"][0]}).withdraws == (GONE,)
    assert Verdict.from_json(whole | {"withdraws": None}).withdraws == ()


def test_a_changed_verdict_is_written_as_it_is_now() -> None:
    """What was read is remembered for that verdict alone, and not for one that was made of it."""
    moved = replace(Verdict.from_json(sent(made())), held_until_ms=9)
    assert moved.to_json()["held_until_ms"] == 9


@pytest.mark.parametrize("name", sorted(NEEDED))
def test_a_verdict_that_lacks_what_it_always_had_is_refused(name: str) -> None:
    """A record that is sealed but no verdict is a seal error, whoever reads it."""
    with pytest.raises(SealError):
        Verdict.from_json({field: value for field, value in sent(WHOLE).items() if field != name})


@pytest.mark.parametrize(
    "changed",
    [
        {"decision": "maybe"},
        {"decision": None},
        {"reasons": 7},
        {"findings": [{}]},
        {"findings": [{"code": "a", "decision": "maybe", "detail": {}}]},
        {"findings": None},
        {"tier": 9},
        {"tier": "one"},
        {"zone": "nowhere"},
        {"visibility": "some"},
        {"score": {}},
        {"score": 7},
        {"usual": {"size": 1}},
        {"withdraws": [{"object_id": "o"}]},
        {"withdraws": 7},
        {"parents": None},
    ],
)
def test_a_malformed_verdict_is_a_seal_error(changed: dict[str, Any]) -> None:
    """Another version's word for a thing is refused by type, not by a stray KeyError."""
    with pytest.raises(SealError):
        Verdict.from_json(sent(WHOLE) | changed)


@pytest.mark.parametrize("value", [None, 7, "text", [], {}, [["tenant", "acme"]]])
def test_what_is_no_verdict_is_a_seal_error(value: Any) -> None:
    """So is whatever else is sealed as one."""
    with pytest.raises(SealError):
        Verdict.from_json(value)


def test_a_verdict_about_another_tenant_is_a_seal_error() -> None:
    """A tenant's key says whose verdict it is, and the verdict has to agree."""
    data = verdict_to_bytes(RING, "acme", made(tenant="globex", seal_kid="seal-1"))
    with pytest.raises(SealError):
        verdict_from_bytes(RING, "acme", data)
