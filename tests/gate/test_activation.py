"""Activating policies: ordered like every change of a decision, two signatures, a bad one changes nothing."""

from datetime import UTC, datetime

import pytest
from tests.gate.build import RING, T0, TENANT, Core, MemoryRows, sealed
from tests.stages.test_screen import apply, record, stage, write

from memsluice.envelope.seals import open_
from memsluice.envelope.verdict import Decision
from memsluice.errors import PolicyError
from memsluice.events.limits import POLICY_CHARS_MAX
from memsluice.events.names import VERDICT, EventType
from memsluice.gate.commands.activation import digest_of, in_force, text_of
from memsluice.gate.policy.model import default, parse
from memsluice.operations.policies.commands import activation
from memsluice.topics.names import AUDIT

STRICT = text_of({"name": "strict", "profile": "strict"})
FOR_ALL = text_of({"name": "house", "tenants": {TENANT: {"name": "own", "mode": "shadow"}}})


def order(text: str | None, **fields):
    """Return the fields of an activation."""
    base = {"action": "activate", "target": "p", "expires_at": "2030-01-01T00:00:00Z", "policy": text}
    return base | ({"digest": digest_of(text)} if text is not None else {}) | fields


def activate(core: Core, text: str | None, approvers=("op-1", "op-2"), **fields):
    """Have an activation decided."""
    return core.see("operator", EventType.COMMAND, approvers=approvers, **order(text, **fields)).verdict


def force(core: Core, tenant: str = TENANT) -> str:
    """Return the name of the policy in force."""
    return in_force(core.rows, tenant, default().of).name


def test_an_activated_policy_is_in_force_from_the_next_event_on() -> None:
    """Two operators sign, the audit has digest and text, and what was in force before."""
    core = Core()
    verdict = activate(core, STRICT)
    assert (verdict.decision, force(core)) == (Decision.RECORD, "strict")
    (finding,) = verdict.findings
    assert finding.code == "activation.activated"
    assert finding.detail["was"] == default().default.digest
    assert finding.detail["text"] == STRICT


@pytest.mark.parametrize(
    ("text", "change", "reason"),
    [
        (STRICT, {"approvers": ("op-1",)}, "activation.approvals"),
        (STRICT, {"digest": "0" * 64}, "activation.other_digest"),
        (text_of({"name": "x", "profle": "strict"}), {}, "activation.invalid"),
        ("[1]", {}, "activation.invalid"),
        (text_of({"name": "x", "tenants": {"a": {"mode": "shadow"}}}), {}, "activation.invalid"),
        (text_of({"name": "x", "tenants": {"A B": {"mode": "shadow"}}}), {}, "activation.invalid"),
        ('{"name":"x","mode":"enforce","mode":"shadow"}', {}, "activation.invalid"),
        ('{"name":"x","memsad":' + "[" * 500 + "]" * 500 + "}", {}, "activation.invalid"),
        (None, {"digest": "0" * 64}, "activation.nothing_to_end"),
        (STRICT, {"expires_at": "2020-01-01T00:00:00Z"}, "commands.expired"),
    ],
)
def test_what_may_not_be_in_force_is_refused_and_the_old_policy_stays(text, change, reason) -> None:
    """One signature, another text than was signed for, a typo, an expired order: refused by name."""
    core = Core()
    activate(core, text_of({"name": "before"}))
    if reason == "activation.nothing_to_end":
        core = Core()
    was = force(core)
    assert activate(core, text, **change).reasons == (reason,)
    assert force(core) == was


def test_only_operators_activate() -> None:
    """A reviewer decides about entries, not about the rules."""
    outcome = Core().see("reviewer", EventType.COMMAND, approvers=("r-1", "r-2"), **order(STRICT))
    assert outcome.verdict.reasons == ("commands.not_permitted",)


def test_a_tenants_own_policy_goes_before_everybodys_until_it_is_ended() -> None:
    """Activations for all, for one, and the end of one's own, which names what it ends."""
    rows, screen = MemoryRows(), stage()

    def decided(offset: int, **fields):
        event = sealed("operator", EventType.COMMAND, offset, approvers=("op-1", "op-2"), **fields)
        step = screen.process(record(event, offset), rows)
        apply(rows, step)
        (audit,) = [output for output in step.outputs if output.topic == AUDIT]
        return open_(RING, event.tenant, VERDICT, audit.value)["reasons"]

    def named(tenant: str) -> str:
        return in_force(rows, tenant, default().of).name

    assert named(TENANT) == "default"
    assert decided(0, **order(FOR_ALL, tenant="*")) == []
    assert (named(TENANT), named("globex")) == ("own", "house")
    assert decided(1, **order(STRICT)) == []
    assert (named(TENANT), named("globex")) == ("strict", "house")
    assert decided(2, **order(None, digest="0" * 64)) == ["activation.other_digest"]
    assert decided(3, **order(None, digest=digest_of(STRICT))) == []
    assert named(TENANT) == "own"


def test_a_write_is_decided_by_the_policy_in_force_at_its_place_in_the_log() -> None:
    """Not by the one in force when it is read: a replay of the log gives the same verdicts."""
    rows, screen, policies = MemoryRows(), stage(), []
    day = [
        write(0),
        sealed("operator", EventType.COMMAND, 1, approvers=("op-1", "op-2"), **order(STRICT)),
        write(2),
    ]
    for event in day:
        step = screen.process(record(event, event.position.offset), rows)
        apply(rows, step)
        policies.append(step.verdict.policy.split("@")[0])
    assert policies == ["default", "default", "strict"]
    assert not stage().process(record(day[0], 7), rows).outputs  # decided once, and by the old one


def test_an_activations_rows_stay_within_the_limit_of_an_event() -> None:
    """The longest policy lies in its row alone: 4 KiB in all."""
    rows, screen = MemoryRows(), stage()
    long = {"name": "x", "tenants": {f"tenant-{n}": {"writes_per_day": {"user_observed": n + 1}} for n in range(34)}}
    text = text_of(long)
    assert 1_600 < len(text) <= POLICY_CHARS_MAX
    event = sealed("operator", EventType.COMMAND, 0, approvers=("op-1", "op-2"), **order(text, tenant="*"))
    step = screen.process(record(event, 0), rows)
    assert sum(len(change.key) + len(change.value or b"") for change in step.changes) <= 4 * 1024


def test_what_is_signed_is_what_the_file_says() -> None:
    """The order has the checked file's own meaning: a map without limits stays one, a repeated key is no policy."""
    now = datetime.fromtimestamp(T0 / 1000, UTC)
    file = "name: x\nttl_seconds: {}\ntenants: {}"
    command = activation(file, TENANT, "c-1", now)
    assert command.policy == text_of({"name": "x", "ttl_seconds": {}})
    assert parse(command.policy).default.digest == parse(file).default.digest
    with pytest.raises(PolicyError, match="repeated"):
        activation("name: x\nmode: enforce\nmode: shadow", TENANT, "c-2", now)


def test_the_audit_tells_how_many_signed_and_what_was_in_force_before() -> None:
    """Too few signatures are counted; the end of a tenant's own policy names the policy that ended."""
    core = Core()
    (told,) = core.see("operator", EventType.COMMAND, approvers=("op-1",), **order(STRICT)).verdict.findings
    assert told.detail == {"needs": 2, "has": 1}
    activate(core, STRICT)
    own = in_force(core.rows, TENANT, default().of).digest
    (ended,) = activate(core, None, digest=digest_of(STRICT)).findings
    assert (ended.code, ended.detail) == ("activation.ended", {"was": own})
