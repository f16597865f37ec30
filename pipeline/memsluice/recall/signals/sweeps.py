"""Slow exfiltration (seed 002): a principal whose recalls, over days, go through unusually much of a tenant's memory.

How many different entries a principal was given is estimated by linear counting: each sets one of BITS bits of its day,
and from the share of bits that are set follows how many there were. Held against the others of the tenant, each day.

It sees what is collected by recalls, and not what leaves: no answer, file name or tool call comes by here.
"""

from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import TypeVar

from memsluice.recall.signals.seen import Seen, Signal, SignalKind, mark

DAY_MS = 86_400_000
BITS = 2_048
"""The estimate's standard error is 2.3 % at 4,000 different entries and 3.8 % at 8,000; what sets every bit counts as
MOST."""
MOST = round(BITS * log(BITS))
_Key = TypeVar("_Key")


@dataclass(frozen=True, slots=True)
class SweepPolicy:
    """A sweep is at least ``entries_min`` different entries in ``days``, and ``times`` what the median of the other
    principals was given, of whom there are ``others_min`` at least."""

    days: int = 7
    entries_min: int = 200
    times: float = 8.0
    others_min: int = 5
    principals_max: int = 10_000
    check_ms: int = 3_600_000


class SweepWatch:
    """All tenants' principals, ``principals_max`` of them: some 25 MB at most. Not safe for several threads.

    Beyond, the tenant that has most of them forgets who asked longest ago: one that names ever more blinds itself.
    """

    def __init__(self, policy: SweepPolicy) -> None:
        self._policy = policy
        self._given: dict[str, OrderedDict[str, dict[int, int]]] = {}
        self._principals = 0
        self._said: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._checked: OrderedDict[str, int] = OrderedDict()

    def see(self, seen: Seen, now_ms: int) -> tuple[list[Signal], bool]:
        """Take an answer (now in Unix ms); return what it shows, and whether nobody was forgotten for it. A tenant's
        principals are compared once an hour."""
        day = now_ms // DAY_MS
        days, whole = self._days(seen.tenant, seen.principal)
        for old in [one for one in days if one <= day - self._policy.days]:
            del days[old]
        for object_id in seen.objects:
            days[day] = days.get(day, 0) | 1 << mark(object_id) % BITS
        if now_ms - self._checked.get(seen.tenant, -self._policy.check_ms) < self._policy.check_ms:
            return [], whole
        _keep(self._checked, seen.tenant, now_ms, self._policy.principals_max)
        return self._compare(seen.tenant, day), whole

    def _days(self, tenant: str, principal: str) -> tuple[dict[int, int], bool]:
        """Return a principal's days, and whether there was room for him."""
        mine = self._given.setdefault(tenant, OrderedDict())
        self._principals += principal not in mine
        days = mine.setdefault(principal, {})
        mine.move_to_end(principal)
        if self._principals <= self._policy.principals_max:
            return days, True
        largest = max(self._given, key=lambda one: len(self._given[one]))
        self._given[largest].popitem(last=False)
        self._principals -= 1
        if not self._given[largest]:
            del self._given[largest]
        return days, False

    def _compare(self, tenant: str, day: int) -> list[Signal]:
        given = {
            principal: different(days, day - self._policy.days)
            for principal, days in self._given.get(tenant, {}).items()
        }
        given = {principal: count for principal, count in given.items() if count}
        if len(given) <= self._policy.others_min:
            return []
        found, ordered = [], sorted(given.values())
        for principal, count in given.items():
            if count < self._policy.entries_min or self._said.get((tenant, principal)) == day:
                continue
            usual = _median_of_others(ordered, count)
            if count >= self._policy.times * usual:
                _keep(self._said, (tenant, principal), day, self._policy.principals_max)
                found.append(Signal(SignalKind.SWEEP, tenant, principal, count, sum(given.values()), usual))
        return found


def different(days: dict[int, int], after: int) -> int:
    """Return how many different entries were given on the days later than ``after``: an estimate, 0 to MOST."""
    together = 0
    for day, bits in days.items():
        if day > after:
            together |= bits
    clear = BITS - together.bit_count()
    return MOST if clear == 0 else round(-BITS * log(clear / BITS))


def _median_of_others(ordered: Sequence[int], own: int) -> float:
    """Return the median of sorted numbers without one that is ``own``."""
    at, left = bisect_left(ordered, own), len(ordered) - 1
    low, high = ((ordered[place + (place >= at)]) for place in ((left - 1) // 2, left // 2))
    return (low + high) / 2


def _keep(kept: OrderedDict[_Key, int], key: _Key, value: int, most: int) -> None:
    kept[key] = value
    kept.move_to_end(key)
    if len(kept) > most:
        kept.popitem(last=False)
