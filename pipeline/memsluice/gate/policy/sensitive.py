"""What is done with secrets and personal data."""

from typing import Literal

from pydantic import Field

from memsluice.gate.policy.part import Part


class SensitivePolicy(Part):
    """What is done with secrets and personal data in what is written, asked or seen."""

    action: Literal["redact", "hold", "report"] = Field(
        default="redact",
        description="redact: the value is taken out before anything but the intake topic has it; hold: the write is "
        "held, whole; report: it lands, whole. The workers' policy file alone says whether *seal* takes values out.",
    )
