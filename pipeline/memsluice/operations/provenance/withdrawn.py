"""What look back took out of memory, and whether a reviewer let it in again: from the audit, in bounded memory."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Verdict
from memsluice.events.names import TARGET_HEADER
from memsluice.events.partition import partition_of
from memsluice.operations.held.entries import RESTORED
from memsluice.operations.trace.life import taken_back
from memsluice.operations.trace.verdicts import read
from memsluice.readers.base import TopicReader

WITHDRAWN_MAX = 10_000
"""Entries that one look holds; further ones are counted as left out."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """One entry that a recall took out (``recall``, of ``principal``, at ``at_ms``), by which numbers (``evidence``).

    ``released_by`` is the command that let it in again, ``revoked_by`` the one that rules that out; "" for none.
    """

    tenant: str
    event_id: str
    digest: str
    recall: str
    principal: str
    at_ms: int
    evidence: Mapping[str, Any]
    released_by: str = ""
    revoked_by: str = ""

    @property
    def state(self) -> str:
        """``released``, ``revoked``, or ``withdrawn``: it waits for whoever wants it back."""
        return "released" if self.released_by else "revoked" if self.revoked_by else "withdrawn"

    def as_data(self) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "tenant": self.tenant,
            "event_id": self.event_id,
            "state": self.state,
            "recall": self.recall,
            "principal": self.principal,
            "at_ms": self.at_ms,
            "evidence": dict(self.evidence),
            "digest": self.digest,
        }


@dataclass(slots=True)
class Taken:
    """What a look found, oldest first. ``unverified`` records have no seal of this home's keys and say nothing."""

    entries: list[Withdrawn] = field(default_factory=list)
    unverified: int = 0
    left_out: int = 0

    @property
    def waiting(self) -> int:
        """How many are out, and may be let in again."""
        return sum(one.state == "withdrawn" for one in self.entries)


def look(audit: TopicReader, keyring: Keyring, tenant: str | None, since_ms: int | None, partitions: int) -> Taken:
    """Return what look back took out since (Unix ms, None: ever). Raises BrokerUnavailable."""
    found = Taken()
    for partition in range(partitions) if tenant is None else (partition_of(tenant, partitions),):
        known: dict[tuple[str, str, str], Withdrawn] = {}
        for record in audit.read(partition, 0 if since_ms is None else audit.at(partition, since_ms)):
            named = any(
                name == TARGET_HEADER for name, _ in record.headers
            )  # says where to look; the seal, what counts
            if not named or (tenant is not None and record.key != tenant.encode()):
                continue
            verdict = read(keyring, record)
            if verdict is None:
                found.unverified += 1
            else:
                _learn(found, known, verdict)
        found.entries += known.values()
    found.entries.sort(key=lambda one: (one.at_ms, one.tenant, one.event_id))
    return found


def _learn(found: Taken, known: dict[tuple[str, str, str], Withdrawn], verdict: Verdict) -> None:
    told = {one["event"]: one for finding in verdict.findings for one in finding.detail.get("entries", ())}
    for gone in taken_back(verdict):
        name = (verdict.tenant, gone.event_id, gone.content_digest)
        if name not in known and len(found.entries) + len(known) >= WITHDRAWN_MAX:
            found.left_out += 1
            continue
        evidence = {part: value for part, value in told.get(gone.event_id, {}).items() if part != "event"}
        who = (verdict.event_id, verdict.principal, verdict.decided_ms)
        known[name] = Withdrawn(*name, *who, evidence)
    about = known.get((verdict.tenant, verdict.target, verdict.content_digest))
    if about is None:
        return
    codes = {finding.code for finding in verdict.findings}
    name = (about.tenant, about.event_id, about.digest)
    if RESTORED in codes:
        known[name] = replace(about, released_by=verdict.event_id)
    elif "revocation.labelled" in codes:
        known[name] = replace(about, revoked_by=verdict.event_id)
