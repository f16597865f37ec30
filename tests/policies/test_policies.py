"""Comparing policies, reading from the audit which is in force, and the commands that change it."""

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from tests.gate.build import RING, TENANT, MemoryRows, sealed
from tests.gate.test_activation import FOR_ALL, STRICT, order
from tests.stages.test_screen import apply, record, stage

from memsluice.errors import ConfigError, PolicyError
from memsluice.events.names import EventType
from memsluice.gate.policy import default, parse
from memsluice.policies.diff import EVERYONE, Change, between
from memsluice.policies.history import in_force
from memsluice.policies.ordering import activation, ending
from memsluice.stages.records import Record
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
    assert Change(EVERYONE, "memsad.kappa", 2.0, 1.5) in between(default(), house)
    assert Change("acme", "mode", "enforce", "shadow") in between(default(), house)


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
