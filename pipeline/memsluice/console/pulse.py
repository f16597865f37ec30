"""How the stream runs, as the overview shows it: copied from the live view, by whose thread alone that is changed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memsluice.envelope.partition_orders import PartitionState
from memsluice.operations.monitor.lag import Lag
from memsluice.operations.monitor.pulse import RECENT_S, Snapshot

TENANTS_MAX = 200
"""Tenants that are shown: the busiest."""


@dataclass(frozen=True, slots=True)
class TenantPulse:
    """One tenant: what was decided in the last minute and since the view began, its calibration, and what waits."""

    name: str
    recent: int
    decisions: Mapping[str, int]
    phase: str
    window_size: int
    history_size: int
    held: int
    held_since_ms: int | None


@dataclass(frozen=True, slots=True)
class PulseNow:
    """The stream at one moment (Unix ms). ``wait_ms`` are median and 95th percentile from intake to verdict."""

    now_ms: int
    since_ms: int | None
    where: str
    recent: Mapping[str, int]
    decisions: Mapping[str, int]
    wait_ms: tuple[int, int] | None
    tenants: tuple[TenantPulse, ...]
    drifts: tuple[tuple[str, float], ...]
    unverified: int
    lags: tuple[Lag, ...]
    parked: tuple[PartitionState, ...]

    @classmethod
    def of(
        cls, seen: Snapshot, where: str, since_ms: int | None, lags: Sequence[Lag], parked: Sequence[PartitionState]
    ) -> "PulseNow":
        """Return a copy of a snapshot, whose parts go on changing."""
        tenants = tuple(
            TenantPulse(
                one.name, one.recent.count(seen.now_ms), dict(one.decisions), one.phase, one.window_size,
                one.history_size, len(one.held) + one.held_more, one.held_since_ms,
            )
            for one in seen.tenants
        )  # fmt: skip
        return cls(
            seen.now_ms, since_ms, where, dict(seen.recent), dict(seen.decisions), seen.wait_ms, tenants,
            tuple(seen.drifts), seen.unverified, tuple(lags), tuple(parked),
        )  # fmt: skip

    def seen_by(self, tenants: frozenset[str] | None) -> "TenantsPulse":
        """Return what somebody may see who may see some tenants (None: all)."""
        those = [one for one in self.tenants if tenants is None or one.name in tenants]
        decisions = Counter[str]()
        for one in those:
            decisions.update(one.decisions)
        recent = sum(one.recent for one in those)
        drifts = tuple(one for one in self.drifts if tenants is None or one[0] in tenants)
        return TenantsPulse(recent / RECENT_S, decisions, tuple(those[:TENANTS_MAX]), drifts)


@dataclass(frozen=True, slots=True)
class TenantsPulse:
    """The stream of some tenants: events a second over the last minute, and what was decided."""

    per_s: float
    decisions: Counter[str]
    tenants: tuple[TenantPulse, ...]
    drifts: tuple[tuple[str, float], ...]
