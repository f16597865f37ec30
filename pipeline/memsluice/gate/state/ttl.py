"""How long an entry lives, by the tier it landed with (seed 002, pattern 5)."""

from memsluice.events.models import Tier
from memsluice.gate.policy.model import Policy


def expires_ms(tier: Tier, policy: Policy, now_ms: int) -> int | None:
    """Return when an entry of this tier expires (Unix ms), or None where it never does."""
    seconds = policy.ttl_seconds.of(tier)
    return None if seconds is None else now_ms + seconds * 1000
