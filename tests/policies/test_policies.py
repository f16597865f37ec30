"""Comparing policies, reading from the audit which is in force, and the commands that change it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.command import run as whole
from tests.gate.build import RING, TENANT, MemoryRows, sealed
from tests.gate.test_activation import FOR_ALL, STRICT, order
from tests.stages.test_screen import apply, record, stage

from memsluice.errors import ConfigError, PolicyError
from memsluice.events.models import Command
from memsluice.events.names import EventType
from memsluice.events.records import Record
from memsluice.gate.policy.diff import EVERYONE, FieldChange, between
from memsluice.gate.policy.lint import Severity, lint
from memsluice.gate.policy.model import default, parse, shipped, shipped_names
from memsluice.keystore.store import KeyStore
from memsluice.operations.policies.commands import activation, ending
from memsluice.operations.policies.desk import PolicyDesk
from memsluice.operations.policies.history import in_force, reaches_back
from memsluice.topics.names import AUDIT

NOW = datetime(2026, 5, 4, tzinfo=UTC)


class Audit:
    """What *screen* wrote to the audit, in memory."""

    name = "memory"

    def __init__(self, *events) -> None:
        rows, screen, self.records = MemoryRows(), stage(), list[Record]()
        for offset, fields in enumerate(events):
            event = sealed("operator", EventType.COMMAND, offset, approvers=("op-1", "op-2"), **fields)
            step = screen.process(record(event, offset), rows)
            apply(rows, step)
            self.records += [
                Record(AUDIT, output.partition, offset, output.key, output.value, output.headers)
                for output in step.outputs
                if output.topic == AUDIT
            ]

    def end(self, partition: int) -> int:
        """Return the next offset."""
        return len(self.records)

    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield all."""
        yield from self.records[from_offset:]


def test_a_difference_names_who_which_field_and_both_values() -> None:
    """Equal policies differ in nothing; an override differs for its tenant alone."""
    assert between(default(), default()) == ()
    house = parse("name: default\nmemsad: {kappa: 1.5}\ntenants: {acme: {mode: shadow}}\n")
    assert FieldChange(EVERYONE, "memsad.kappa", 2.0, 1.5) in between(default(), house)
    assert FieldChange("acme", "mode", "enforce", "shadow") in between(default(), house)


def test_the_audit_alone_says_what_is_in_force_and_who_signed_it() -> None:
    """A tenant's own policy before everybody's; a refused activation is none; an ended one is gone."""
    assert in_force(Audit(), RING, TENANT, 8) is None
    refused = order(STRICT, digest="0" * 64)
    audit = Audit(order(FOR_ALL, tenant="*"), order(STRICT), refused)
    found = in_force(audit, RING, TENANT, 8)
    assert (found.tenant, found.approvers, found.policies().of(TENANT).name) == (TENANT, ("op-1", "op-2"), "strict")
    digest = found.policies().default.digest
    assert found.digest == digest
    ended = ending(audit, RING, TENANT, "c", NOW)
    after = Audit(order(FOR_ALL, tenant="*"), order(STRICT), order(None, digest=ended.digest))
    assert in_force(after, RING, TENANT, 8).tenant == "*"


class Followed(Audit):
    """An audit that can be followed: what was appended since is there at once."""

    def follow(self, offsets: Mapping[int, int], timeout_s: float) -> list[Record]:
        """Return what lies behind the offsets."""
        return [one for one in self.records for part, offset in offsets.items()
                if one.partition == part and one.offset >= offset]  # fmt: skip


def test_an_answer_is_heard_beside_records_that_do_not_verify(tmp_path: Path) -> None:
    """Garbage under the command's own id neither stops nor replaces the gate's answer; each partition answers once."""
    audit = Followed(order(STRICT))
    (good,) = audit.records
    forged = (good.value or b"").replace(b'"sig":"', b'"sig":"AAAA')
    audit.records = [replace(good, value=forged), replace(good, offset=1), replace(good, offset=2)]
    command = sealed("operator", EventType.COMMAND, 0, **order(STRICT)).payload
    assert isinstance(command, Command)
    keys = KeyStore.init(tmp_path, 0)
    keys.save_keyring(RING)
    desk = PolicyDesk("memory", audit, keys, lambda command, signers: None, lambda: None)
    told = desk.answered(command, {good.partition: 0}, 0)
    assert [told[good.partition].event_id, len(told)] == [command.id, 1]
    assert desk.answered(command, {good.partition: 3}, 0) == {}


def test_an_audit_that_lost_its_beginning_is_not_silent_about_activations() -> None:
    """Retention took the oldest records: that none tells of an activation means nothing any more, and it is known."""
    assert reaches_back(Audit(), TENANT, 8)
    audit = Audit(order(STRICT), order(STRICT, digest="0" * 64))
    assert reaches_back(audit, TENANT, 8)
    audit.records = audit.records[1:]
    assert in_force(audit, RING, TENANT, 8) is None
    assert not reaches_back(audit, TENANT, 8)


def test_a_record_that_does_not_verify_changes_nothing() -> None:
    """Whoever writes to the audit topic without the gate's key puts no policy in force in anybody's eyes."""
    audit = Audit(order(STRICT))
    forged = audit.records[0].value.replace(b'"sig":"', b'"sig":"AAAA')
    audit.records = [Record(AUDIT, 0, 0, TENANT.encode(), forged)]
    assert in_force(audit, RING, TENANT, 8) is None


def test_what_the_gate_would_refuse_is_refused_before_anybody_signs() -> None:
    """A typo, a tenant's policy with overrides, a policy that does not fit: said in a sentence, by field."""
    with pytest.raises(PolicyError, match="profle"):
        activation("name: x\nprofle: strict\n", "*", "c", NOW)
    with pytest.raises(PolicyError, match="tenants"):
        activation("name: x\ntenants: {a: {mode: shadow}}\n", "acme", "c", NOW)
    many = "".join(f"  tenant-{n}: {{name: own-{n}, mode: shadow}}\n" for n in range(100))
    with pytest.raises(PolicyError, match="characters"):
        activation(f"name: x\ntenants:\n{many}", "*", "c", NOW)
    with pytest.raises(ConfigError, match="no policy of its own"):
        ending(Audit(order(FOR_ALL, tenant="*")), RING, TENANT, "c", NOW)


def test_what_is_signed_is_what_the_file_says() -> None:
    """The command carries the file's own fields, and its digest binds them: a later default changes no old order."""
    command = activation("name: x\nmemsad: {kappa: 1.5}\ntenants: {}\n", "*", "c", NOW)
    assert command.policy == '{"memsad":{"kappa":1.5},"name":"x"}'
    assert (command.target, command.tenant, len(command.digest)) == ("x", "*", 64)


@pytest.mark.parametrize(
    "words", [("policy", "check"), ("policy", "diff"), ("policy", "evaluate"), ("rescreen", "--policy")]
)
def test_a_file_that_is_no_policy_is_said_in_one_sentence(words: tuple[str, ...], tmp_path: Path) -> None:
    """The line and what is wrong with it, not the parser's dump; a file that is not there is named in words."""
    file, home = tmp_path / "README.md", ("--home", str(tmp_path)) if words[1] != "check" else ()
    file.write_text("# Title\n\nname: x\nText: like this: is no YAML\n")
    shown = whole(*words, str(file), *home)
    assert (shown.code, f"{file}, line 4: mapping values are not allowed here." in shown.said) == (1, True), shown.said
    assert "\u23ce" not in shown.err
    file.write_bytes(b"\xff\xfe")
    assert f"{file} is not a policy file: it is not UTF-8 text" in whole(*words, str(file), *home).said
    shown = whole(*words, str(tmp_path / "absent"), *home)
    assert f"{tmp_path / 'absent'} cannot be used: no such file or directory; check the name" in shown.said
    assert "Errno" not in shown.said


def test_what_ships_is_listed_and_printed_as_it_is() -> None:
    """Each shipped policy is valid and named as its file; the file that is printed is the one that can be activated."""
    assert shipped_names() == ("default", "published-rolling")
    listed = whole("policy", "shipped").out
    for name in shipped_names():
        policy = parse(shipped(name)).default
        assert policy.name == name
        assert name in listed
        assert whole("policy", "shipped", name).out == shipped(name)
        assert not [remark for remark in lint(parse(shipped(name))) if remark.severity is Severity.ERROR]
    with pytest.raises(PolicyError, match=r"nothing: no policy of that name ships; there are: default, published"):
        shipped("nothing")


def test_published_rolling_lets_memsad_decide_alone_by_drift() -> None:
    """The user's own words: MEMSAD, calibrated by a rolling, drift-aware window; nothing else holds."""
    policy = parse(shipped("published-rolling")).default
    assert (policy.detector, policy.memsad.enabled, policy.instructions.enabled) == ("memsad", True, False)
    assert (policy.memsad.calibration.strategy, policy.memsad.kappa) == ("m_star", 3.0)
