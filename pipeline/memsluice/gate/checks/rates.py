"""Write limits per principal, tier and day (seed 002, pattern 5). What exceeds them is held; a reviewer may release."""

from memsluice.envelope.registry import DEFAULT_TIER
from memsluice.envelope.seals import Identity
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Action
from memsluice.gate.policy.model import Policy
from memsluice.gate.policy.renewing import RenewOnUsePolicy
from memsluice.gate.state import windows
from memsluice.gate.state.kinds import RATE
from memsluice.gate.state.rows import SEPARATOR, TenantRows

COMMAND = "command"
"""First part of the ids that count commands; no principal's id has only one part more."""
RENEWED = "renewed"
"""The same of those that count renewals on use: of all entries, and of each."""
BUCKETS = 24


def check(rows: TenantRows, principal: str, identity: Identity, policy: Policy, now_ms: int) -> Finding | None:
    """Count this write, or return a finding where the last 24 hours are full (such a write is not counted).

    Each channel of a principal has its own count, so an agent cannot use up the day of the person it works for. A
    payload that asks for a lower tier than its channel's is counted by the channel's: asking escapes no limit.
    """
    tier = min(identity.tier, DEFAULT_TIER[identity.channel])
    limit = policy.writes_per_day.of(tier)
    if limit is None:
        return None
    row_id = SEPARATOR.join((principal, identity.channel, str(tier.value)))
    seen, live = windows.count(rows, RATE, row_id, now_ms, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
    if seen >= limit:
        return Finding("rates.exceeded", Decision.QUARANTINE, {"writes": seen, "writes_per_day_max": limit})
    windows.add(rows, RATE, row_id, now_ms, live, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
    return None


def check_command(rows: TenantRows, action: Action, per_day_max: int | None, now_ms: int) -> Finding | None:
    """Count a command that would be carried out, or return a finding where the tenant's last 24 hours are full."""
    if per_day_max is None:
        return None
    row_id = SEPARATOR.join((COMMAND, action.value))
    seen, live = windows.count(rows, RATE, row_id, now_ms, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
    if seen >= per_day_max:
        return Finding("rates.commands", Decision.REJECT, {"carried_out": seen, "per_day_max": per_day_max})
    windows.add(rows, RATE, row_id, now_ms, live, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
    return None


def check_renewal(rows: TenantRows, event_id: str, rule: RenewOnUsePolicy, now_ms: int) -> Finding | None:
    """Count a renewal on use, or return a finding where the last 24 hours of the tenant or the entry are full."""
    counted = {}
    for name, one, most in (("tenant", "", rule.per_day), ("entry", event_id, rule.per_entry_per_day)):
        row_id = SEPARATOR.join((RENEWED, one))
        seen, live = windows.count(rows, RATE, row_id, now_ms, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
        if seen >= most:
            return Finding("rates.renewals", Decision.REJECT, {"of": name, "renewed": seen, "per_day_max": most})
        counted[row_id] = live
    for row_id, live in counted.items():
        windows.add(rows, RATE, row_id, now_ms, live, bucket_ms=windows.HOUR_MS, buckets=BUCKETS)
    return None
