"""What was decided when it happened: verdicts of the audit by intake record, and the policies that they name."""

from collections.abc import Iterable
from dataclasses import dataclass

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import verdict_from_bytes
from memsluice.envelope.verdict import Decision, Verdict
from memsluice.errors import PolicyError, SealError
from memsluice.events.names import TARGET_HEADER
from memsluice.gate.policy import model as policies
from memsluice.gate.policy.model import Policy, PolicySet
from memsluice.operations.policies.history import read_activation
from memsluice.operations.trace.life import taken_back
from memsluice.readers.base import TopicReader

EARLY_MS = 600_000
"""How much earlier than the sealed log's first record the audit is entered: append clocks of brokers differ."""
Place = tuple[str, int]
"""Topic and offset of an intake record, on a partition."""


@dataclass(frozen=True, slots=True)
class Told:
    """What of a verdict is compared: the decision, where the entry lies by it, the reasons, what look back took."""

    tenant: str
    event_id: str
    type: str
    action: str
    decision: str
    zone: str | None
    reasons: tuple[str, ...]
    takes_back: tuple[str, ...]
    policy: str
    at_ms: int

    @classmethod
    def of(cls, verdict: Verdict) -> "Told":
        """Return what a verdict, old or new, says."""
        return cls(
            tenant=verdict.tenant,
            event_id=verdict.event_id,
            type=verdict.type,
            action=verdict.action,
            decision=verdict.decision.value,
            zone=None if verdict.zone is None else verdict.zone.value,
            reasons=tuple(sorted(verdict.reasons)),
            takes_back=tuple(sorted(gone.event_id for gone in taken_back(verdict))),
            policy=verdict.policy,
            at_ms=verdict.decided_ms,
        )

    @property
    def shadowed(self) -> bool:
        """Whether it landed in shadow mode, though it was to be held or refused."""
        return self.zone is not None and self.decision in (Decision.QUARANTINE, Decision.REJECT)

    @property
    def fate(self) -> str:
        """The decision in a word, and what else it did."""
        landed = " (landed: shadow)" if self.shadowed else ""
        return f"{self.decision}{landed}{f', took {len(self.takes_back)} back' if self.takes_back else ''}"

    @property
    def effect(self) -> tuple[str, str | None, tuple[str, ...]]:
        """What two verdicts must agree in to have done the same: decision, zone, and what was taken back."""
        return self.decision, self.zone, self.takes_back


@dataclass(slots=True)
class Verdicts:
    """The first verdict on every intake record, of the sealed records in a range of offsets. ``unverified`` counts."""

    by_place: dict[Place, Told]
    unverified: int = 0


def verdicts(
    audit: TopicReader, keyring: Keyring, partition: int, since_ms: int, offsets: range, tenant: str | None
) -> Verdicts:
    """Read what the audit says of sealed records in ``offsets``, appended since (Unix ms). Raises BrokerUnavailable."""
    found = Verdicts({})
    for record in audit.read(partition, audit.at(partition, since_ms - EARLY_MS)):
        owner = (record.key or b"").decode(errors="replace")
        if tenant is not None and owner != tenant:
            continue
        try:
            verdict = verdict_from_bytes(keyring, owner, record.value or b"")
            if verdict.sealed_offset in offsets:
                found.by_place.setdefault((verdict.topic, verdict.offset), Told.of(verdict))
        except SealError:
            found.unverified += 1
    return found


class PolicyBook:
    """Policies by their digests: those of files, and all that the audit says were activated."""

    def __init__(self, files: Iterable[PolicySet]) -> None:
        self._known: dict[str, Policy] = {}
        for one in (*files, policies.default()):
            self._add(one)

    def _add(self, one: PolicySet) -> None:
        self._known |= {policy.digest: policy for policy in (one.default, *one.tenants.values())}

    def get(self, digest: str) -> Policy | None:
        """Return the policy that a verdict names; None where neither a file nor the audit has it."""
        return self._known.get(digest)

    def learn(self, audit: TopicReader, keyring: Keyring, partition: int, digests: Iterable[str]) -> None:
        """Read the audit from its beginning for what was activated, where a digest is unknown.

        Only commands are opened; a policy that this version cannot read stays unknown. Raises BrokerUnavailable.
        """
        if all(digest in self._known for digest in digests):
            return
        for record in audit.read(partition):
            if not any(name == TARGET_HEADER for name, _ in record.headers):
                continue
            try:
                found = read_activation(keyring, record)
                if found is not None and found.text is not None:
                    self._add(found.policies())
            except (SealError, PolicyError, KeyError):
                continue
