"""What an activation changes against what is in force: read from the audit, told field by field."""

from dataclasses import dataclass

from memsluice.envelope.keys import Keyring
from memsluice.events.models import Command
from memsluice.events.names import EVERYBODY
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.diff import FieldChange
from memsluice.gate.policy.model import PolicySet
from memsluice.operations.policies.history import Activated, own_and_everybodys, reaches_back
from memsluice.operations.policies.loosening import Loosening, differences, loosened
from memsluice.readers.base import TopicReader
from memsluice.topics.names import PARTITIONS


@dataclass(frozen=True, slots=True)
class Effect:
    """What a command changes. ``was`` is the digest of the policy that it is compared with, ``now`` of the one that it
    leads to, both as verdicts name them.

    ``by_file``: nothing was activated, so the file of a home stands for what is in force. ``known`` is False where the
    audit's beginning is past its retention: then another policy than the one compared with may be in force.
    """

    was: str
    now: str
    changes: tuple[FieldChange, ...]
    looser: tuple[Loosening, ...]
    by_file: bool
    known: bool

    @property
    def to_accept(self) -> bool:
        """Whether somebody must agree that more may happen than before."""
        return bool(self.looser) or not self.known


def effect_of(audit: TopicReader, keyring: Keyring, command: Command, file: PolicySet) -> Effect:
    """Return what an activation, or the end of a tenant's own policy, changes.

    ``file`` is what holds where nothing was activated: the policy file of the home. Raises BrokerUnavailable, and
    PolicyError where a newer version of memsluice knows the policy in force.
    """
    tenant = command.tenant
    own, everybodys = own_and_everybodys(audit, keyring, tenant, PARTITIONS)
    found = own or everybodys
    needed = [everybodys if tenant == EVERYBODY else own, *([everybodys] if command.policy is None else [])]
    known = None not in needed or reaches_back(audit, tenant, PARTITIONS)
    before = _policies(found, file)
    after = _policies(everybodys, file) if command.policy is None else policies.parse(command.policy)
    changes = differences(before, after, None if tenant == EVERYBODY else tenant)
    was, now = (one.of(tenant).digest for one in (before, after))
    return Effect(was, now, changes, loosened(changes, after), found is None, known)


def _policies(found: Activated | None, file: PolicySet) -> PolicySet:
    return file if found is None else found.policies()
