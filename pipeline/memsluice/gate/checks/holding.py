"""The quarantine's cap per principal: what overflows is refused and recorded; an older held entry is never evicted."""

from memsluice.envelope.verdict import Decision, Finding
from memsluice.gate.policy.model import Policy
from memsluice.gate.state import windows
from memsluice.gate.state.kinds import HELD
from memsluice.gate.state.rows import TenantRows


def check(rows: TenantRows, principal: str, policy: Policy, now_ms: int) -> Finding | None:
    """Count one more held entry of a principal, or return a finding where its share is full."""
    days = policy.quarantine.age_days
    seen, live = windows.count(rows, HELD, principal, now_ms, bucket_ms=windows.DAY_MS, buckets=days)
    if seen >= policy.quarantine.per_principal_max:
        detail = {"held": seen, "held_max": policy.quarantine.per_principal_max}
        return Finding("holding.full", Decision.REJECT, detail)
    windows.add(rows, HELD, principal, now_ms, live, bucket_ms=windows.DAY_MS, buckets=days)
    return None


def give_back(rows: TenantRows, principal: str, held_ms: int, policy: Policy, now_ms: int) -> None:
    """Count one held entry of a principal less: one that was held at ``held_ms`` (Unix ms) is decided."""
    days = policy.quarantine.age_days
    windows.remove(rows, HELD, principal, held_ms, now_ms, bucket_ms=windows.DAY_MS, buckets=days)
