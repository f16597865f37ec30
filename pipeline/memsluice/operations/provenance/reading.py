"""An entry as the verdicts tell of it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memsluice.envelope.verdict import Decision
from memsluice.events.models import Tier
from memsluice.events.names import EventType
from memsluice.operations.trace.life import Standing, moves, standing

KEPT = ("decision", "object_id", "zone", "visibility", "tier", "taint", "expires_ms", "withdraws", "action",
        "sealed_offset", "decided_ms", "held_until_ms")  # fmt: skip
"""Fields that are kept of the verdict that placed an entry last."""
LIFTED = frozenset({"declassification.declassified", "declassification.lifted"})
REVOKED = frozenset({"revocation.contained", "revocation.removed", "revocation.labelled", "revocation.held"})


def is_new_write(verdict: Mapping[str, Any]) -> bool:
    """Whether a verdict is the first on a write, not on an earlier one sent once more."""
    return bool(verdict["type"] == EventType.WRITE and verdict["decision"] != Decision.DUPLICATE)


@dataclass(slots=True)
class Entry:
    """One write, who wrote it, and where it is. ``placed`` has the fields KEPT of the verdict that placed it last."""

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
    placed: dict[str, Any] = field(default_factory=dict)
    replaced: bool = False
    revoked: bool = False
    looked_back: bool = False
    repeated_id: bool = False

    @classmethod
    def of(cls, verdict: Mapping[str, Any]) -> "Entry":
        """Return the entry of a write's verdict."""
        return cls(
            tenant=verdict["tenant"],
            event_id=verdict["event_id"],
            digest=verdict["content_digest"],
            offset=verdict["offset"],
            channel=verdict["channel"],
            agent=verdict["agent"],
            principal=verdict["principal"],
            session=verdict["session"],
            kid=verdict["kid"],
            written_ms=verdict["decided_ms"],
            parents=tuple(verdict.get("parents", ())),
            causes=tuple(verdict["taint_causes"]),
            placed=_slim(verdict),
            repeated_id=_repeats(verdict),
        )

    def followed_by(self, verdict: Mapping[str, Any]) -> bool:
        """Whether the verdict on a write of this id says where the entry is from then on: its id was free again."""
        return bool(verdict["offset"] > self.offset) and not _repeats(verdict)

    def order(self, verdict: Mapping[str, Any]) -> None:
        """Learn from the verdict on a command about it.

        One about another content under its id says nothing, nor one about another held write of id and content.
        """
        if verdict["content_digest"] != self.digest or verdict["sealed_offset"] <= self.placed["sealed_offset"]:
            return
        if verdict.get("target_offset") not in (None, self.offset):
            return
        codes = {finding["code"] for finding in verdict["findings"]}
        self.revoked = bool(codes & REVOKED) or (self.revoked and not codes & LIFTED)
        if moves(verdict):
            until_ms = self.placed["held_until_ms"]  # a replay that holds it again gives it no more time
            self.placed, self.replaced, self.looked_back = _slim(verdict) | {"held_until_ms": until_ms}, False, False

    def looked(self, verdict: Mapping[str, Any], gone: Mapping[str, Any]) -> None:
        """Learn from a recall's verdict that look back took it out; what is made from it from then on is tainted."""
        if gone["content_digest"] != self.digest or verdict["sealed_offset"] <= self.placed["sealed_offset"]:
            return
        new = {name: verdict[name] for name in ("sealed_offset", "decided_ms", "decision")}
        self.placed = {**self.placed, **new, "object_id": None, "zone": None, "action": "", "by": verdict["event_id"]}
        self.looked_back, self.replaced = True, False

    def standing(self, now_ms: int) -> Standing:
        """Return where it is now (Unix ms)."""
        return Standing.WITHDRAWN if self.looked_back else standing(self.placed, now_ms, replaced=self.replaced)

    @property
    def tainted(self) -> bool:
        """Whether what is made from it is tainted: by its label, its tier, a revocation, or look back."""
        return bool(self.placed["taint"]) or not Tier(self.placed["tier"]).trusted or self.revoked or self.looked_back

    def as_data(self, now_ms: int) -> dict[str, Any]:
        """Return it as JSON values."""
        return {
            "tenant": self.tenant,
            "event_id": self.event_id,
            "now": self.standing(now_ms).value,
            "tier": self.placed["tier"],
            "tainted": self.tainted,
            "revoked": self.revoked,
            "withdrawn_by": self.placed["by"] if self.looked_back else None,
            "visibility": self.placed["visibility"],
            "object_id": self.placed["object_id"],
            "channel": self.channel,
            "agent": self.agent,
            "principal": self.principal,
            "session": self.session,
            "key": self.kid,
            "written_ms": self.written_ms,
        }


def _repeats(verdict: Mapping[str, Any]) -> bool:
    return any(finding["code"] == "duplicates.other_content" for finding in verdict["findings"])


def _slim(verdict: Mapping[str, Any]) -> dict[str, Any]:
    return {name: verdict.get(name) for name in KEPT}
