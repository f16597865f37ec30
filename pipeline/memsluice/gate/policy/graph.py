"""What is done about facts that contradict others, and about what one writer's facts build."""

from typing import Literal

from pydantic import Field

from memsluice.gate.policy.part import Part


class GraphPolicy(Part):
    """Facts as a graph (:mod:`memsluice.gate.checks.graph`; seed 000, appendix F)."""

    action: Literal["off", "report", "hold"] = Field(
        default="report",
        description="What happens to a write of kind facts that contradicts others, or builds a hub, a shortcut or a "
        "cluster. off: no facts are remembered.",
    )
    corroborated: Literal["report", "land"] = Field(
        default="report",
        description="land: a write whose facts others said, too, is not held for its questions or nearness alone.",
    )
    agree: int = Field(default=2, ge=2, le=8, description="Independent principals who agree on a fact.")
    kappa_degree: float = Field(default=3.0, gt=0, le=20, description="kappa_deg: deviations that make a hub.")
    contamination: float = Field(
        default=0.3, gt=0, le=1, description="Share of a node's last edges that are one writer's shortcuts of a day."
    )
    rings_per_day: int = Field(
        default=8, ge=0, le=10_000, description="Rings among nodes of their own that one principal closes in 24 hours."
    )
