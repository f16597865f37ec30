"""The policy that is in force for a tenant: what was activated last, as the audit has it, else the home's own file."""

from dataclasses import dataclass
from pathlib import Path

from memsluice.deployment.home import Home
from memsluice.envelope.keys import Keyring
from memsluice.errors import NotFound
from memsluice.escaping import visible
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import Policy, PolicySet
from memsluice.operations.policies.history import Activated, in_force, reaches_back
from memsluice.readers.base import TopicReader
from memsluice.topics.names import PARTITIONS

CUT = (
    "The beginning of the audit is past its retention, and a policy that was activated then is still in force. The "
    "verdict of an event names the policy that decided it: memsluice trace."
)


@dataclass(frozen=True, slots=True)
class Standing:
    """What the audit says of a tenant's policy. ``activated`` is None where it knows of no activation.

    ``whole`` is whether the audit still has its beginning: where it has not, what it does not say is not known.
    """

    tenant: str
    activated: Activated | None
    whole: bool

    def policy(self, home: Path | None) -> Policy:
        """Return the policy: the activated one, else that of the home's file.

        Raises PolicyError; NotFound where the audit has no activation, and no beginning either.
        """
        if self.activated is not None:
            return self.activated.policies().of(self.tenant)
        if not self.whole:
            raise NotFound(f"The audit has no activation for {visible(self.tenant, 80)}. {CUT}")
        return of_home(home).of(self.tenant)


def standing(audit: TopicReader, keyring: Keyring, tenant: str) -> Standing:
    """Return what the audit says of a tenant's policy. Raises BrokerUnavailable."""
    found = in_force(audit, keyring, tenant, PARTITIONS)
    return Standing(tenant, found, reaches_back(audit, tenant, PARTITIONS))


def of_home(home: Path | None) -> PolicySet:
    """Return the policies of a home's file, or those that ship. Raises PolicyError."""
    return policies.load_or_default(Home.at(home).policy_file)
