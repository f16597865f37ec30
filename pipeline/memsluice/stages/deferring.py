"""Which tenants a store keeps refusing while it takes others' writes: what they land is put off, and holds nobody up.

Offsets are committed in order, so whoever waits for one tenant makes a partition wait. But the log is believed, and the
store is not: *land* says in the log what lies in memory, a withdrawal too, and the sweep brings the store to it once it
takes that tenant's writes again. So nothing is lost, an object's versions keep their order, and a withdrawal holds for
every reader at once. Recalls say meanwhile that the entries are missing.

A store that takes nobody's writes is waited for: only where another tenant's object was just written is one put off.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable
from typing import Final

from memsluice.log import get_logger

ATTEMPTS: Final = 14
"""Refusals in a row before a tenant is put off: with the pauses between them about a minute."""
AGAIN_MS: Final = 60_000
AGAIN_MS_MAX: Final = 600_000
"""How long a tenant that was put off is not asked for. One more refusal then puts it off again, for twice as long, the
most at the end: a tenant whose shard hangs takes seconds of everybody's with each attempt."""
TENANTS_MAX: Final = 10_000
"""Tenants that are put off at once; beyond it, the next one is waited for."""

_LOG = get_logger(__name__)


class Deferring:
    """Remembers refusals from batch to batch. ``takes_others`` says whether the store takes a write of a tenant that is
    none of those given, ``lands_for`` whether a tenant is still this worker's; ``now_ms`` is Unix milliseconds. Used by
    one thread at a time."""

    def __init__(
        self,
        takes_others: Callable[[Collection[str]], bool],
        lands_for: Callable[[str], bool],
        now_ms: Callable[[], int],
    ) -> None:
        self._takes_others = takes_others
        self._lands_for = lands_for
        self._now_ms = now_ms
        self._refused = Counter[str]()
        self._until_ms: dict[str, int] = {}
        self._pause_ms: dict[str, int] = {}
        """For how long each of those was put off the last time."""

    def put_off(self, tenants: Iterable[str]) -> set[str]:
        """Return those of the tenants that are not to be tried now."""
        now_ms = self._now_ms()
        return {tenant for tenant in tenants if self._until_ms.get(tenant, now_ms) > now_ms}

    def refused(self, tenants: Collection[str]) -> None:
        """Take in that the store answered, and took nothing of these tenants; put off those it refuses for too long."""
        self._refused.update(tenants)
        late = {tenant for tenant in tenants if self._refused[tenant] >= ATTEMPTS}
        if not late:
            return
        self._forget(late)
        if len(self._until_ms.keys() | late) > TENANTS_MAX:
            return
        if not self._takes_others({*tenants, *self.put_off(self._until_ms)}):
            return
        for tenant in sorted(late):
            pause_ms = min(2 * self._pause_ms.get(tenant, AGAIN_MS // 2), AGAIN_MS_MAX)
            if tenant not in self._until_ms:
                again_in_s = pause_ms / 1_000
                _LOG.error(
                    "the store takes others' writes, and not this tenant's: they are put off",
                    tenant=tenant,
                    again_in_s=again_in_s,
                )
            self._pause_ms[tenant], self._until_ms[tenant] = pause_ms, self._now_ms() + pause_ms

    def _forget(self, late: set[str]) -> None:
        """Forget the tenants that another worker lands for by now; where there is no room for those who are late, also
        those who are not put off any more, and wrote nothing since."""
        gone = {tenant for tenant in (*self._refused, *self._until_ms) if not self._lands_for(tenant)}
        if len(self._until_ms.keys() - gone | late) > TENANTS_MAX:
            gone |= self._until_ms.keys() - self.put_off(self._until_ms) - late
        for tenant in gone:
            self._drop(tenant)

    def _drop(self, tenant: str) -> bool:
        """Know nothing of a tenant any more; return whether it was put off."""
        self._refused.pop(tenant, None)
        self._pause_ms.pop(tenant, None)
        return self._until_ms.pop(tenant, None) is not None

    def took(self, tenants: Iterable[str]) -> None:
        """Take in that the store took what there was of these tenants."""
        for tenant in tenants:
            if self._drop(tenant):
                _LOG.warning(
                    "the store takes this tenant's writes again; the sweep lands what was put off", tenant=tenant
                )
