"""What is told of facts that contradict others, and of what one principal's facts build."""

from typing import Literal

from pydantic import Field

from memsluice.gate.policy.part import Part


class GraphPolicy(Part):
    """Facts beside facts (:mod:`memsluice.gate.checks.claims`, :mod:`memsluice.gate.checks.graph`)."""

    action: Literal["ignore", "report"] = Field(
        default="ignore",
        description="report: writes of kind facts are compared with what others said, and what that shows stands in "
        "their verdicts. ignore: no facts are remembered.",
    )
    agree: int = Field(default=2, ge=2, le=8, description="Independent principals who agree on a fact.")
    hub_links: int = Field(
        default=12,
        ge=2,
        le=10_000,
        description="Links in 24 hours from a principal's node to what others introduced.",
    )
    hijack_links: int = Field(
        default=6, ge=2, le=10_000, description="Links in 24 hours from what others built to one principal's nodes."
    )
    inner_links: int = Field(
        default=40, ge=2, le=10_000, description="Links in 24 hours among one principal's own nodes."
    )
