"""Every activation that the audit has: what is in force, which versions there were, and whose they are to see."""

from tests.gate.build import PARTITION, RING, TENANT
from tests.gate.test_activation import FOR_ALL, STRICT, order
from tests.policies.test_policies import NOW, Audit

from memsluice.operations.policies import activations
from memsluice.operations.policies.activations import Activations
from memsluice.operations.policies.commands import ending
from memsluice.operations.policies.history import in_force


class OnePartition(Audit):
    """An audit whose records lie on the tenant's partition; it notes how many of them were read."""

    reads = 0

    def read(self, partition: int, from_offset: int = 0):
        """Yield what the partition holds from an offset on."""
        for record in self.records[from_offset:] if partition == PARTITION else ():
            self.reads += 1
            yield record


def known(audit: OnePartition) -> Activations:
    """Return what an audit says."""
    found = Activations()
    found.learn(audit, RING)
    return found


def test_what_is_in_force_is_what_a_look_at_the_tenant_finds() -> None:
    """Everybody's and a tenant's own; a refused activation is none; what ended is not in force, and stays a version."""
    refused = order(STRICT, digest="0" * 64)
    audit = OnePartition(order(FOR_ALL, tenant="*"), order(STRICT), refused)
    found = known(audit)
    assert [one.tenant for one in found.in_force(None)] == ["*", TENANT]
    assert found.in_force(None)[1] == in_force(audit, RING, TENANT, 8)
    ended = ending(audit, RING, TENANT, "c", NOW)
    after = known(OnePartition(order(FOR_ALL, tenant="*"), order(STRICT), order(None, digest=ended.digest)))
    assert [one.tenant for one in after.in_force(None)] == ["*"]
    assert [one.tenant for one in after.versions(None)] == [TENANT, "*"]


def test_it_is_read_on_and_never_anew() -> None:
    """A second look reads nothing that the first one read."""
    audit = OnePartition(order(FOR_ALL, tenant="*"), order(STRICT))
    found = known(audit)
    before = audit.reads
    found.learn(audit, RING)
    assert audit.reads == before == 2


def test_a_tenant_s_own_policy_is_nobody_else_s_to_see() -> None:
    """Whoever sees other tenants alone is shown everybody's."""
    found = known(OnePartition(order(FOR_ALL, tenant="*"), order(STRICT)))
    assert [one.tenant for one in found.in_force(frozenset({"globex"}))] == ["*"]
    assert [one.tenant for one in found.versions(frozenset({TENANT}))] == [TENANT, "*"]


def test_versions_and_tenants_are_bounded(monkeypatch) -> None:
    """Of one tenant the latest versions are kept; tenants beyond the bound are counted."""
    monkeypatch.setattr(activations, "VERSIONS_MAX", 2)
    monkeypatch.setattr(activations, "TENANTS_MAX", 1)
    found = known(OnePartition(order(STRICT), order(STRICT), order(STRICT), order(FOR_ALL, tenant="*")))
    assert len(found.versions(None)) == 2
    assert found.left_out == 1


def test_an_audit_that_lost_its_beginning_says_so() -> None:
    """What is not there may have been: the page that shows it has to say that."""
    audit = OnePartition(order(FOR_ALL, tenant="*"), order(STRICT))
    assert known(audit).whole
    del audit.records[0]
    assert not known(audit).whole
