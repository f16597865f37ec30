"""All that is watched of a service's recalls, in bounded memory."""

from collections import OrderedDict

from memsluice.recall.signals.entries import EntryPolicy, EntryWatch
from memsluice.recall.signals.seen import Seen, Signal
from memsluice.recall.signals.sweeps import SweepPolicy, SweepWatch

TENANTS_MAX = 64
"""Tenants whose entries are watched, those that asked last; one that comes back is learned anew."""


class RecallWatch:
    """Takes every answer of a service and says what is unusual. Not safe for several threads."""

    def __init__(
        self,
        entries: EntryPolicy | None = None,
        sweeps: SweepPolicy | None = None,
        tenants_max: int = TENANTS_MAX,
    ) -> None:
        self._policy = entries or EntryPolicy()
        self._sweeps = SweepWatch(sweeps or SweepPolicy())
        self._tenants: OrderedDict[str, EntryWatch] = OrderedDict()
        self._tenants_max = tenants_max

    def given(self, seen: Seen, now_ms: int) -> tuple[list[Signal], bool]:
        """As :meth:`see`, of entries that were asked for by name: none of them was near to anything, but all were
        given."""
        return self._sweeps.see(seen, now_ms)

    def see(self, seen: Seen, now_ms: int) -> tuple[list[Signal], bool]:
        """Take an answer (now in Unix ms); return what it shows, and whether there was room to count all of it."""
        watch = self._tenants.get(seen.tenant)
        if watch is None:
            watch = self._tenants[seen.tenant] = EntryWatch(seen.tenant, self._policy, now_ms)
            if len(self._tenants) > self._tenants_max:
                self._tenants.popitem(last=False)
        self._tenants.move_to_end(seen.tenant)
        found, whole = watch.see(seen, now_ms)
        swept, all_kept = self._sweeps.see(seen, now_ms)
        return found + swept, whole and all_kept
