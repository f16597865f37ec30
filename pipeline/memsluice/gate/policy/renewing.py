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

    def due(self, life_seconds: int | None, expires_ms: int | None, now_ms: int) -> bool:
        """Return whether so much of an entry's time is over (Unix ms) that its use may renew it. ``life_seconds`` is
        its tier's whole time; without one, or an end, nothing is."""
        if not self.enabled or expires_ms is None or life_seconds is None:
            return False
        return expires_ms - now_ms <= (1 - self.least_elapsed) * life_seconds * 1000
