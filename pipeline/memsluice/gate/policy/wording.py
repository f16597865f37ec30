"""How much a text may say to do, by who could be given it."""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from memsluice.events.models import Tier
from memsluice.gate.policy.part import FIELD_OF, Part


class Reach(StrEnum):
    """Who could be given a write: its writer alone, whoever relies on the agent that wrote it, or the whole tenant."""

    OWN = "own"
    RELIED = "relied"
    SHARED = "shared"


class TierFactor(Part):
    """What a budget is multiplied by, for each trust tier."""

    operator: float = Field(default=0.4, ge=0, le=10, description="For tier 1.")
    user_verified: float = Field(default=1.0, ge=0, le=10, description="For tier 2.")
    user_observed: float = Field(default=1.0, ge=0, le=10, description="For tier 3.")
    external_tool: float = Field(default=2.0, ge=0, le=10, description="For tier 4.")
    external_web: float = Field(default=2.0, ge=0, le=10, description="For tier 5.")

    def of(self, tier: Tier) -> float:
        """Return the factor of a tier."""
        value: float = getattr(self, FIELD_OF[tier])
        return value


class EvidenceFactor(TierFactor):
    """What the evidence's budget is multiplied by, for each trust tier. One that is left out has the budget itself."""

    operator: float = Field(default=1.0, ge=0, le=10, description="For tier 1.")
    external_tool: float = Field(default=1.0, ge=0, le=10, description="For tier 4.")
    external_web: float = Field(default=1.0, ge=0, le=10, description="For tier 5.")


class WordingPolicy(Part):
    """What a text says to do (:mod:`memsluice.gate.detectors.wording`). Nothing that landed before changes it.

    A budget is the share of honest texts, each kind of them counting alike, that may be held: times the tier's factor.
    """

    action: Literal["hold", "report"] = Field(
        default="hold", description="What happens to a write that says more to do than its budget allows."
    )
    own: float = Field(default=0.02, ge=0, lt=1, description="Budget of what reaches its writer alone.")
    relied: float = Field(default=0.035, ge=0, lt=1, description="Budget of what an agent writes.")
    shared: float = Field(default=0.08, ge=0, lt=1, description="Budget of what is shared, or asks to be.")
    with_pattern: float = Field(
        default=0.1, ge=0, lt=1, description="Budget of a text in which an instruction pattern occurs."
    )
    with_pattern_own: float = Field(
        default=0.05, ge=0, lt=1, description="Budget of such a text where it reaches its writer alone."
    )
    per_tier: TierFactor = Field(default=TierFactor(), description="What a budget is multiplied by.")

    def budget(self, reach: Reach, tier: Tier, *, pattern: bool = False) -> float:
        """Return the budget of a write, below 1; ``pattern``: an instruction pattern occurs in it."""
        of = {Reach.OWN: self.own, Reach.RELIED: self.relied, Reach.SHARED: self.shared}
        found = min(of[reach] * self.per_tier.of(tier), 0.999)
        if not pattern:
            return found
        return max(found, self.with_pattern_own if reach is Reach.OWN else self.with_pattern)
