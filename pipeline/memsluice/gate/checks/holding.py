"""The quarantine's caps per principal: what overflows is recorded and not kept; what is kept is never evicted."""

from memsluice.envelope.codec import canonical
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.limits import HELD_CHARS_MAX
from memsluice.events.models import Write
from memsluice.gate.policy.model import Policy
from memsluice.gate.state import windows
from memsluice.gate.state.kinds import HELD, REFUSED, CountsRow
from memsluice.gate.state.rows import RowKind, TenantRows

BESIDE_BYTES_MAX = 8_192
"""What a sealed write's record has beside the payload: vector, digests, names. A tenth of it is usual."""


def check(rows: TenantRows, principal: str, policy: Policy, now_ms: int) -> Finding | None:
    """Count one more held entry of a principal, or return a finding where its share is full."""
    most = policy.quarantine.per_principal_max
    seen = _count(rows, HELD, principal, most, policy, now_ms)
    return None if seen is None else Finding("holding.full", Decision.REJECT, {"held": seen, "held_max": most})


def check_refused(rows: TenantRows, sealed: Sealed, policy: Policy, now_ms: int) -> Finding | None:
    """Count one more rejected write of a principal that is kept, or return why only its verdict is.

    Either its principal's share is full, so that rejections fill no disk, or no command could carry it to a replay.
    """
    write = sealed.payload
    assert isinstance(write, Write)
    size = len(canonical(write.model_dump(mode="json")))
    chars = (size + BESIDE_BYTES_MAX) * 4 // 3  # a sealed record is base64
    if chars > HELD_CHARS_MAX:
        return Finding("holding.too_large", Decision.ACCEPT, {"chars": chars, "chars_max": HELD_CHARS_MAX})
    most = policy.quarantine.refused_per_principal_max
    seen = _count(rows, REFUSED, write.principal, most, policy, now_ms)
    return None if seen is None else Finding("holding.not_kept", Decision.ACCEPT, {"kept": seen, "kept_max": most})


def give_back(rows: TenantRows, principal: str, state: str, held_ms: int, policy: Policy, now_ms: int) -> None:
    """Count one entry of a principal less: one that was ``held`` or ``refused`` at ``held_ms`` (Unix ms) is decided."""
    kind = REFUSED if state == "refused" else HELD
    days = policy.quarantine.age_days
    windows.remove(rows, kind, principal, held_ms, now_ms, bucket_ms=windows.DAY_MS, buckets=days)


def _count(
    rows: TenantRows, kind: RowKind[CountsRow], principal: str, most: int, policy: Policy, now_ms: int
) -> int | None:
    """Count one more; where there is no room, count nothing and return how many there are."""
    days = policy.quarantine.age_days
    seen, live = windows.count(rows, kind, principal, now_ms, bucket_ms=windows.DAY_MS, buckets=days)
    if seen >= most:
        return seen
    windows.add(rows, kind, principal, now_ms, live, bucket_ms=windows.DAY_MS, buckets=days)
    return None
