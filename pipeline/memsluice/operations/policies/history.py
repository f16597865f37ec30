"""What the audit says of activations: the last one that holds for a tenant, with the policy's text."""

from dataclasses import dataclass

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import verdict_from_bytes
from memsluice.errors import SealError
from memsluice.events.names import EVERYBODY, EventType
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.gate.policy.model import PolicySet, parse
from memsluice.readers.base import TopicReader

ACTIVATED, ENDED = "activation.activated", "activation.ended"


@dataclass(frozen=True, slots=True)
class Activated:
    """One activation: for whom (a tenant, or ``*``), by whom, when (Unix ms), and the text; None: an own one ended."""

    tenant: str
    command_id: str
    approvers: tuple[str, ...]
    at_ms: int
    digest: str
    text: str | None

    def policies(self) -> PolicySet:
        """Return the activated policies. Raises PolicyError where a newer version of memsluice knows the text."""
        return parse(self.text or "")


def read_activation(keyring: Keyring, record: Record) -> Activated | None:
    """Return what an audit record says of an activation that was carried out; None for any other. Raises SealError."""
    tenant = (record.key or b"").decode(errors="replace")
    verdict = verdict_from_bytes(keyring, tenant, record.value or b"")
    if verdict.type != EventType.COMMAND:
        return None
    done = {finding.code: finding.detail for finding in verdict.findings}
    for code in (ACTIVATED, ENDED):
        if code in done:
            said = done[code]
            who, at_ms = verdict.approvers, verdict.decided_ms
            digest = said.get("policy", said.get("was", ""))
            return Activated(tenant, verdict.event_id, who, at_ms, digest, said.get("text"))
    return None


def in_force(audit: TopicReader, keyring: Keyring, tenant: str, partitions: int) -> Activated | None:
    """Return the activation that holds for a tenant, its own before everybody's; None where only files hold.

    Reads the tenant's partition to its end. Raises BrokerUnavailable.
    """
    own, everybodys = own_and_everybodys(audit, keyring, tenant, partitions)
    return own or everybodys


def own_and_everybodys(
    audit: TopicReader, keyring: Keyring, tenant: str, partitions: int
) -> tuple[Activated | None, Activated | None]:
    """Return the last activation of a tenant's own policy that has not ended, and that of everybody's; None: none.

    Of everybody (``*``) the second one alone. Reads the tenant's partition to its end. Raises BrokerUnavailable.
    """
    own: Activated | None = None
    everybodys: Activated | None = None
    wanted = {tenant.encode(), EVERYBODY.encode()}
    for record in audit.read(partition_of(tenant, partitions)):
        if record.key not in wanted:
            continue
        found = _read(keyring, record)
        if found is not None and found.tenant == EVERYBODY:
            everybodys = found
        elif found is not None:
            own = found if found.text is not None else None
    return own, everybodys


def reaches_back(audit: TopicReader, tenant: str, partitions: int) -> bool:
    """Whether a tenant's partition of the audit still has its beginning: where retention took it, silence says nothing.

    Raises BrokerUnavailable.
    """
    first = next(iter(audit.read(partition_of(tenant, partitions))), None)
    return audit.end(partition_of(tenant, partitions)) == 0 if first is None else first.offset == 0


def _read(keyring: Keyring, record: Record) -> Activated | None:
    try:
        return read_activation(keyring, record)
    except SealError:
        return None  # an unverified record says nothing; `memsluice trace` counts those
