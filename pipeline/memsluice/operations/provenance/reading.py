"""An entry as the verdicts tell of it. Pure."""

from dataclasses import dataclass, replace
from typing import Any

from memsluice.envelope.verdict import Decision, Verdict, Withdrawal
from memsluice.events.names import EventType
from memsluice.operations.trace.life import EntryStanding, Placed, moves

LIFTED = frozenset({"declassification.declassified", "declassification.lifted"})
REVOKED = frozenset({"revocation.contained", "revocation.removed", "revocation.labelled", "revocation.held"})


def is_new_write(verdict: Verdict) -> bool:
    """Whether a verdict is the first on a write, not on an earlier one sent once more."""
    return verdict.type == EventType.WRITE and verdict.decision is not Decision.DUPLICATE


@dataclass(slots=True)
class TracedEntry:
    """One write, who wrote it, and where it is. ``placed`` is by the verdict that placed it last."""

    tenant: str
    event_id: str
    digest: str
    offset: int
    channel: str
    agent: str
    principal: str
    session: str
    kid: str
    written_ms: int
    parents: tuple[str, ...]
    causes: tuple[str, ...]
    placed: Placed
    replaced: bool = False
    revoked: bool = False
    looked_back: bool = False
    repeated_id: bool = False

    @classmethod
    def of(cls, verdict: Verdict) -> "TracedEntry":
        """Return the entry of a write's verdict."""
        return cls(
            tenant=verdict.tenant,
            event_id=verdict.event_id,
            digest=verdict.content_digest,
            offset=verdict.offset,
            channel=verdict.channel,
            agent=verdict.agent,
            principal=verdict.principal,
            session=verdict.session,
            kid=verdict.kid,
            written_ms=verdict.decided_ms,
            parents=verdict.parents,
            causes=verdict.taint_causes,
            placed=Placed.of(verdict),
            repeated_id=_repeats(verdict),
        )

    def followed_by(self, verdict: Verdict) -> bool:
        """Whether the verdict on a write of this id says where the entry is from then on: its id was free again."""
        return verdict.offset > self.offset and not _repeats(verdict)

    def order(self, verdict: Verdict) -> None:
        """Learn from the verdict on a command about it, or on a recall that renews it.

        One about another content under its id says nothing, nor one about another held write of id and content.
        """
        if verdict.content_digest != self.digest or verdict.sealed_offset <= self.placed.sealed_offset:
            return
        if verdict.target_offset not in (None, self.offset):
            return
        codes = {finding.code for finding in verdict.findings}
        self.revoked = bool(codes & REVOKED) or (self.revoked and not codes & LIFTED)
        if moves(verdict):
            until_ms = self.placed.held_until_ms  # a replay that holds it again gives it no more time
            self.placed = replace(Placed.of(verdict), held_until_ms=until_ms)
            self.replaced = self.looked_back = False

    def looked(self, verdict: Verdict, gone: Withdrawal) -> None:
        """Learn from a recall's verdict that look back took it out; what is made from it from then on is tainted."""
        if gone.content_digest != self.digest or verdict.sealed_offset <= self.placed.sealed_offset:
            return
        self.placed = replace(
            self.placed,
            sealed_offset=verdict.sealed_offset,
            decided_ms=verdict.decided_ms,
            decision=verdict.decision,
            object_id=None,
            zone=None,
            action="",
            by=verdict.event_id,
        )
        self.looked_back, self.replaced = True, False

    def standing(self, now_ms: int) -> EntryStanding:
        """Return where it is now (Unix ms)."""
        return EntryStanding.WITHDRAWN if self.looked_back else self.placed.standing(now_ms, replaced=self.replaced)

    @property
    def tainted(self) -> bool:
        """Whether what is made from it is tainted: by its label, its tier, a revocation, or look back."""
        return self.placed.taint or not self.placed.tier.trusted or self.revoked or self.looked_back

    def as_data(self, now_ms: int) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "tenant": self.tenant,
            "event_id": self.event_id,
            "now": self.standing(now_ms).value,
            "tier": self.placed.tier,
            "tainted": self.tainted,
            "revoked": self.revoked,
            "withdrawn_by": self.placed.by if self.looked_back else None,
            "visibility": self.placed.visibility,
            "object_id": self.placed.object_id,
            "channel": self.channel,
            "agent": self.agent,
            "principal": self.principal,
            "session": self.session,
            "key": self.kid,
            "written_ms": self.written_ms,
        }


def _repeats(verdict: Verdict) -> bool:
    return verdict.has("duplicates.other_content")
