"""Whose events go straight on and whose wait: a quota a tenant, and once one waits, all that follow it.

Pure: the clocks are given. Events that arrive are counted by the broker's append time, so that an outage of ours, after
which everybody's events are there at once, puts nobody over a quota. Events that waited go on by the worker's clock.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

SECOND_MS: Final = 1_000
TENANTS_MAX: Final = 10_000
"""Tenants of a partition whose use is remembered; the one that was longest without an event is forgotten first."""
CATCH_UP_S: Final = 0.1
"""What a tenant whose events wait may have missed and still take: the time between two looks."""
TURN_S: Final = 0.5
TURN_EVENTS: Final = 4
"""Events that waited go on in turns: what a tenant's quota gives in so many seconds at once, and so many at most. One
commit of each stage carries a turn; and no neighbour's event waits behind more of it."""


@dataclass(frozen=True, slots=True)
class Quota:
    """So many events a second over time, and so many at once."""

    per_s: int
    burst: int


class Bucket:
    """What is left of a tenant's quota: full at first."""

    __slots__ = ("_at_ms", "_left")

    def __init__(self, quota: Quota, now_ms: int) -> None:
        self._left = float(quota.burst)
        self._at_ms = now_ms

    def take(self, quota: Quota, now_ms: int) -> bool:
        """Take one event off, if one is left. A clock that steps back gives nothing."""
        passed_ms = max(0, now_ms - self._at_ms)
        self._at_ms = max(self._at_ms, now_ms)
        self._left = min(float(quota.burst), self._left + passed_ms * quota.per_s / SECOND_MS)
        if self._left < 1:
            return False
        self._left -= 1
        return True

    def give_back(self, quota: Quota) -> None:
        """Put one event back."""
        self._left = min(float(quota.burst), self._left + 1)


class TenantLanes:
    """The tenants of one partition. ``waiting`` is how many events of each wait already."""

    def __init__(self, quota: Callable[[str], Quota | None], waiting: Mapping[str, int] | None = None) -> None:
        self.waiting = Counter(waiting or {})
        self._quota = quota
        self._buckets: OrderedDict[str, Bucket] = OrderedDict()
        self._due_s: dict[str, float] = {}
        self._turn_s: dict[str, float] = {}
        """Until when the turn of each lasts: what is due before goes on now."""

    def straight(self, tenant: str, append_ms: int) -> bool:
        """Tell whether an event goes straight on; one that does is counted, one that does not is to :meth:`wait`."""
        if self.waiting[tenant]:
            return False
        quota = self._quota(tenant)
        if quota is None:
            return True
        bucket = self._buckets.pop(tenant, None) or Bucket(quota, append_ms)
        self._buckets[tenant] = bucket
        if len(self._buckets) > TENANTS_MAX:
            self._buckets.popitem(last=False)
        return bucket.take(quota, append_ms)

    def wait(self, tenant: str) -> None:
        """Count one event that waits from now on."""
        self.waiting[tenant] += 1

    def due_s(self, tenant: str) -> float:
        """Return from when on the tenant's next waiting event may go on."""
        due_s = self._due_s.get(tenant, 0.0)
        return 0.0 if due_s < self._turn_s.get(tenant, 0.0) else due_s

    def go_on(self, tenant: str, now_s: float) -> None:
        """Count one event that waited, and goes on now."""
        quota = self._quota(tenant)
        if quota is not None:
            due_s = max(self._due_s.get(tenant, 0.0), now_s - CATCH_UP_S)
            if due_s >= self._turn_s.get(tenant, 0.0):
                self._turn_s[tenant] = now_s + min(TURN_S, TURN_EVENTS / quota.per_s)
            self._due_s[tenant] = due_s + 1 / quota.per_s
        self.waiting[tenant] -= 1
        if self.waiting[tenant] <= 0:
            del self.waiting[tenant]
            self._due_s.pop(tenant, None)
            self._turn_s.pop(tenant, None)

    def uncount(self, tenant: str, *, waited: bool) -> None:
        """Take an event for not counted: the tenant did not send it."""
        quota = self._quota(tenant)
        if quota is None:
            return
        if not waited and tenant in self._buckets:
            self._buckets[tenant].give_back(quota)
        if waited and tenant in self._due_s:
            self._due_s[tenant] -= 1 / quota.per_s
