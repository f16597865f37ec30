"""How far its use makes an entry hold longer."""

from pydantic import Field

from memsluice.gate.policy.part import Part


class RenewOnUsePolicy(Part):
    """Renewal on use (:mod:`memsluice.gate.commands.renewing`; seed 002, "renew on use")."""

    enabled: bool = Field(
        default=False, description="Whether a shared entry that somebody else is given holds for its time once more."
    )
    least_elapsed: float = Field(
        default=0.5, ge=0, lt=1, description="Share of its tier's time that must be over before a use renews an entry."
    )
    per_day: int = Field(default=100, ge=0, le=100_000, description="Renewals on use in one tenant in 24 hours.")
    per_entry_per_day: int = Field(default=1, ge=0, le=1_000, description="Renewals on use of one entry in 24 hours.")
    longest_days: int = Field(
        default=730, ge=1, le=36_500, description="Days after it was written beyond which no use makes an entry hold."
    )
