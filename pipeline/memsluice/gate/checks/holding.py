"""The quarantine's caps: what overflows is recorded and not kept; what is kept is never evicted.

Held writes are capped per principal, and so are rejected ones that are kept; these per tenant as well, since a key that
may write for anybody can invent principals.
"""

from memsluice.envelope.codec import canonical
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.limits import HELD_CHARS_MAX
from memsluice.events.models import Write
from memsluice.gate.policy.model import Policy
from memsluice.gate.state import windows
from memsluice.gate.state.kinds import ALL_REFUSED, HELD, REFUSED, CountsRow
from memsluice.gate.state.rows import RowKind, TenantRows

EVERYBODY = "all"
"""Id of the one row of a tenant's own count."""
BESIDE_BYTES_MAX = 8_192
"""What a sealed write's record has beside the payload: vector, digests, names. A tenth of it is usual."""


def check(rows: TenantRows, principal: str, policy: Policy, now_ms: int) -> Finding | None:
    """Count one more held entry of a principal, or return a finding where its share is full."""
    most = policy.quarantine.per_principal_max
    seen = _seen(rows, HELD, principal, policy, now_ms)
    if seen >= most:
        return Finding("holding.full", Decision.REJECT, {"held": seen, "held_max": most})
    _add(rows, HELD, principal, policy, now_ms)
    return None


def check_refused(rows: TenantRows, sealed: Sealed, policy: Policy, now_ms: int) -> Finding | None:
    """Count one more rejected write that is kept, or return why only its verdict is.

    Either its principal's or its tenant's share is full, so that rejections fill no disk, or no command could carry it
    to a replay.
    """
    write = sealed.payload
    assert isinstance(write, Write)
    size = len(canonical(write.model_dump(mode="json")))
    chars = (size + BESIDE_BYTES_MAX) * 4 // 3  # a sealed record is base64
    if chars > HELD_CHARS_MAX:
        return Finding("holding.too_large", Decision.ACCEPT, {"chars": chars, "chars_max": HELD_CHARS_MAX})
    full = _refused_full(rows, write.principal, policy, now_ms)
    if full is not None:
        return full
    _add_refused(rows, write.principal, policy, now_ms)
    return None


def check_again(rows: TenantRows, principal: str, state: str, policy: Policy, now_ms: int) -> Finding | None:
    """Count once more what was ``held`` or ``refused`` until it was rejected, or return a finding: no place is left."""
    if state != "refused":
        return check(rows, principal, policy, now_ms)
    full = _refused_full(rows, principal, policy, now_ms)
    if full is not None:
        return Finding("holding.full", Decision.REJECT, full.detail)
    _add_refused(rows, principal, policy, now_ms)
    return None


def _refused_full(rows: TenantRows, principal: str, policy: Policy, now_ms: int) -> Finding | None:
    shares = policy.quarantine
    for kind, row_id, most, whose in (
        (REFUSED, principal, shares.refused_per_principal_max, "principal"),
        (ALL_REFUSED, EVERYBODY, shares.refused_per_tenant_max, "tenant"),
    ):
        seen = _seen(rows, kind, row_id, policy, now_ms)
        if seen >= most:
            return Finding("holding.not_kept", Decision.ACCEPT, {"kept": seen, "kept_max": most, "share": whose})
    return None


def _add_refused(rows: TenantRows, principal: str, policy: Policy, now_ms: int) -> None:
    _add(rows, REFUSED, principal, policy, now_ms)
    _add(rows, ALL_REFUSED, EVERYBODY, policy, now_ms)


def give_back(rows: TenantRows, principal: str, state: str, held_ms: int, policy: Policy, now_ms: int) -> None:
    """Count one entry of a principal less: one that was ``held`` or ``refused`` at ``held_ms`` (Unix ms) is decided."""
    counted = ((REFUSED, principal), (ALL_REFUSED, EVERYBODY)) if state == "refused" else ((HELD, principal),)
    days = policy.quarantine.age_days
    for kind, row_id in counted:
        windows.remove(rows, kind, row_id, held_ms, now_ms, bucket_ms=windows.DAY_MS, buckets=days)


def _seen(rows: TenantRows, kind: RowKind[CountsRow], row_id: str, policy: Policy, now_ms: int) -> int:
    days = policy.quarantine.age_days
    return windows.count(rows, kind, row_id, now_ms, bucket_ms=windows.DAY_MS, buckets=days)[0]


def _add(rows: TenantRows, kind: RowKind[CountsRow], row_id: str, policy: Policy, now_ms: int) -> None:
    days = policy.quarantine.age_days
    _, live = windows.count(rows, kind, row_id, now_ms, bucket_ms=windows.DAY_MS, buckets=days)
    windows.add(rows, kind, row_id, now_ms, live, bucket_ms=windows.DAY_MS, buckets=days)
