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
CATCH_UP_S: Final = 1.0
"""What a tenant whose events wait may have missed and still take: whoever is within its quota goes before them."""
TURN_S: Final = 0.5
TURN_EVENTS: Final = 4
"""Events that waited go on in turns: what a tenant's quota gives in so many seconds at once, and so many at most. One
commit of each stage carries a turn."""


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

    def left(self, quota: Quota, now_ms: int) -> float:
        """Return how many events are left; below zero where more were charged. A clock that steps back gives none."""
        passed_ms = max(0, now_ms - self._at_ms)
        self._at_ms = max(self._at_ms, now_ms)
        self._left = min(float(quota.burst), self._left + passed_ms * quota.per_s / SECOND_MS)
        return self._left

    def take(self, quota: Quota, now_ms: int) -> bool:
        """Take one event off, if one is left."""
        if self.left(quota, now_ms) < 1:
            return False
        self._left -= 1
        return True

    def charge(self, quota: Quota, now_ms: int) -> None:
        """Take one event off that went on already, down to a debt of a burst."""
        left = self.left(quota, now_ms)
        self._left = min(left, max(-float(quota.burst), left - 1))

    def owe(self, quota: Quota, now_ms: int) -> None:
        """Take one event off that went on after it had waited, however many there were: all of them were the
        tenant's, and each had its time."""
        self._left = self.left(quota, now_ms) - 1

    def give_back(self, quota: Quota) -> bool:
        """Put one event back; tell whether the bucket is full."""
        self._left = min(float(quota.burst), self._left + 1)
        return self._left >= quota.burst


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
        return quota is None or self._bucket(tenant, quota, append_ms).take(quota, append_ms)

    def is_near(self, tenant: str, append_ms: int, unanswered_max: int) -> bool:
        """Tell whether so many events that the tenant did not send could make one of its own wait."""
        if self.waiting[tenant]:
            return True
        quota, bucket = self._quota(tenant), self._buckets.get(tenant)
        if quota is None:
            return False
        left = quota.burst if bucket is None else bucket.left(quota, append_ms)
        return left <= unanswered_max

    def _bucket(self, tenant: str, quota: Quota, now_ms: int) -> Bucket:
        bucket = self._buckets.pop(tenant, None) or Bucket(quota, now_ms)
        self._buckets[tenant] = bucket
        if len(self._buckets) > TENANTS_MAX:
            forgotten, _ = self._buckets.popitem(last=False)
            self._due_s.pop(forgotten, None)
            self._turn_s.pop(forgotten, None)
        return bucket

    def wait(self, tenant: str, now_s: float) -> None:
        """Count one event that waits from now on. What waited before has taken its time, also where all of it is
        through."""
        if not self.waiting[tenant]:
            self._due_s[tenant] = max(now_s, self._due_s.get(tenant, now_s))
        self.waiting[tenant] += 1

    def due_s(self, tenant: str) -> float:
        """Return from when on the tenant's next waiting event may go on."""
        due_s = self._due_s.get(tenant, 0.0)
        return 0.0 if due_s < self._turn_s.get(tenant, 0.0) else due_s

    def go_on(self, tenant: str, append_ms: int, now_s: float) -> None:
        """Count one event that waited, and goes on now: also for what goes straight on once nothing waits any more."""
        quota = self._quota(tenant)
        if quota is not None:
            self._bucket(tenant, quota, append_ms).owe(quota, append_ms)
            due_s = max(self._due_s.get(tenant, now_s), now_s - CATCH_UP_S)
            if due_s >= self._turn_s.get(tenant, 0.0):
                self._turn_s[tenant] = now_s + min(TURN_S, TURN_EVENTS / quota.per_s)
            self._due_s[tenant] = due_s + 1 / quota.per_s
        self.waiting[tenant] -= 1
        if self.waiting[tenant] <= 0:
            del self.waiting[tenant]

    def charge(self, tenant: str, append_ms: int) -> None:
        """Count an event that the tenant sent in nobody's lane, or in another one's."""
        quota = self._quota(tenant)
        if quota is not None:
            self._bucket(tenant, quota, append_ms).charge(quota, append_ms)

    def uncount(self, tenant: str, *, waited: bool) -> None:
        """Take an event for not counted: the tenant did not send it."""
        quota = self._quota(tenant)
        if quota is None:
            return
        if tenant in self._buckets and self._buckets[tenant].give_back(quota) and not waited:
            del self._buckets[tenant]  # names that nobody has push no tenant's bucket out
        if waited and tenant in self._due_s:
            self._due_s[tenant] -= 1 / quota.per_s
