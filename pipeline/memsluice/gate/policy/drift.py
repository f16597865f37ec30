"""What is done about one principal's many writes that each tell agents a little to do."""

from typing import Literal

from pydantic import Field

from memsluice.gate.policy.part import Part


class DriftPolicy(Part):
    """Drift by small steps (:mod:`memsluice.gate.checks.drift`; seed 002's tool permission drift)."""

    action: Literal["ignore", "report", "hold"] = Field(
        default="report", description="What happens to a write by which its principal's steps exceed the limit."
    )
    allowance: float = Field(
        default=1.2, gt=0, le=10, description="What ln(1 / p) of a write may be before it counts as a step."
    )
    limit: float = Field(default=5.0, gt=0, le=1_000, description="Sum of steps above which a write is told of.")
    days: int = Field(default=30, ge=1, le=365, description="Days without a step after which the sum begins anew.")
