"""Write limits per principal, tier and day (seed 002, pattern 5). What exceeds them is held; a reviewer may release."""

from memsluice.events.models import Tier
from memsluice.gate import windows
from memsluice.gate.policy import Policy
from memsluice.gate.rows import SEPARATOR, TenantRows
from memsluice.gate.verdict import Decision, Finding

KIND = "rate"
BUCKETS = 24


def check(rows: TenantRows, principal: str, tier: Tier, policy: Policy, now_ms: int) -> Finding | None:
    """Count this write, or return a finding where the last 24 hours are full (such a write is not counted)."""
    limit = policy.writes_per_day.of(tier)
    if limit is None:
        return None
    row_id = SEPARATOR.join((principal, str(tier.value)))
    seen, live = windows.count(rows, KIND, row_id, now_ms, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
    if seen >= limit:
        return Finding("rates.exceeded", Decision.QUARANTINE, {"writes": seen, "writes_per_day_max": limit})
    windows.add(rows, KIND, row_id, now_ms, live, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
    return None
