"""What one tenant's store records say is current, in bounded memory: nothing here grows with what has ended."""

from collections import Counter
from collections.abc import Iterable
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from memsluice.envelope.records import StoreRecord
from memsluice.errors import StoreError
from memsluice.events.models import Zone
from memsluice.recall.reader import Current

OBJECTS_PER_TENANT_MAX = 1_000_000
"""Live objects of one tenant that an index holds (some 450 bytes each); beyond it, that tenant's questions fail."""
GONE_PER_TENANT_MAX = 50_000
"""Withdrawn or expired objects that are remembered, so that a re-delivered older record does not bring one back.

Beyond it the longest gone are forgotten: unknown objects are withheld as well, under another reason.
"""
LISTED_MAX = 1_000
"""Objects of a scope that are named; of more only the number is told."""
_SPARE = 64


_Searched = tuple[Zone, str]
"""A zone, and the tag of a scope."""


class _Live(NamedTuple):
    version: int
    expires_ms: int | None
    searched: _Searched


class Lying(NamedTuple):
    """What the log says lies in some scopes: how many objects, which, where they are no more than LISTED_MAX, and how
    many lie in the zone, whatever their scope."""

    number: int
    ids: frozenset[str] | None
    all: int = 0


class Landed:
    """One tenant's objects: the live ones, and the last of those that ended. Not safe for several threads."""

    def __init__(
        self, tenant: str, objects_max: int = OBJECTS_PER_TENANT_MAX, gone_max: int = GONE_PER_TENANT_MAX
    ) -> None:
        self._tenant = tenant
        self._objects_max = objects_max
        self._gone_max = gone_max
        self._live: dict[str, _Live] = {}
        self._gone: dict[str, int] = {}  # in the order of going
        self._scopes: dict[_Searched, set[str]] = {}
        self._of_zone: Counter[Zone] = Counter()
        self._ends: list[tuple[int, str]] = []  # heap; entries of versions that were replaced are skipped
        self._over = False

    def put(self, stored: StoreRecord, now_ms: int) -> None:
        """Take a record, unless a newer version is known. ``now_ms`` (Unix ms) says what has ended already."""
        object_id, version = stored.object_id, stored.version
        known = self._live.get(object_id)
        if version < (self._gone.get(object_id, -1) if known is None else known.version):
            return
        if stored.withdrawn or (stored.expires_ms is not None and stored.expires_ms <= now_ms):
            self._end(object_id, version)
        elif known is not None or self._room(now_ms):
            self._gone.pop(object_id, None)
            self._drop(object_id)
            self._live[object_id] = _Live(version, stored.expires_ms, (stored.zone, stored.scope))
            self._of_zone[stored.zone] += 1
            if stored.scope:  # a record of an older version does not say where it is searched
                self._scopes.setdefault((stored.zone, stored.scope), set()).add(object_id)
            if stored.expires_ms is not None:
                self._end_at(stored.expires_ms, object_id)

    def erase(self, object_id: str) -> None:
        """Forget an object altogether."""
        self._drop(object_id)
        self._gone.pop(object_id, None)

    def current(self, object_id: str) -> Current | None:
        """Return what is known of an object; None: nothing, which readers withhold."""
        if (live := self._live.get(object_id)) is not None:
            return Current(live.version, withdrawn=False)
        gone = self._gone.get(object_id)
        return None if gone is None else Current(gone, withdrawn=True)

    def lying(self, zone: Zone, scopes: Iterable[str]) -> Lying:
        """Return what lies in these scopes, by their tags; what is over and not yet dropped is among it."""
        found = [some for tag in scopes if (some := self._scopes.get((zone, tag)))]
        count = sum(map(len, found))
        ids = frozenset().union(*found) if count <= LISTED_MAX else None
        return Lying(count, ids, self._of_zone[zone])

    def among(self, zone: Zone, scopes: Iterable[str], object_ids: Iterable[str]) -> list[str]:
        """Return those of the objects that lie in these scopes, by their tags."""
        searched = {(zone, tag) for tag in scopes}
        live = ((one, self._live.get(one)) for one in object_ids)
        return [one for one, found in live if found is not None and found.searched in searched]

    def _drop(self, object_id: str) -> None:
        live = self._live.pop(object_id, None)
        if live is None:
            return
        self._of_zone[live.searched[0]] -= 1
        if (scope := self._scopes.get(live.searched)) is not None:
            scope.discard(object_id)
            if not scope:
                del self._scopes[live.searched]

    def expire(self, now_ms: int) -> None:
        """Drop what has ended by now (Unix ms)."""
        while self._ends and self._ends[0][0] <= now_ms:
            ended_ms, object_id = heappop(self._ends)
            live = self._live.get(object_id)
            if live is not None and live.expires_ms == ended_ms:
                self._end(object_id, live.version)

    def check(self) -> None:
        """Raise StoreError where the tenant had more live objects than are held: what is current is not known."""
        if self._over:
            raise StoreError(
                f"tenant {self._tenant} has more than {self._objects_max} live entries, the limit of the freshness "
                "index: its questions are refused; other tenants' are not. Let entries expire, then restart the "
                "reader."
            )

    def _room(self, now_ms: int) -> bool:
        """Whether one more object fits; the first that does not ends the tenant's answers and frees its memory."""
        if not self._over and len(self._live) >= self._objects_max:
            self.expire(now_ms)
            if len(self._live) >= self._objects_max:
                self._over = True
                self._live.clear()
                self._of_zone.clear()
                self._scopes.clear()
                self._ends.clear()
        return not self._over

    def _end(self, object_id: str, version: int) -> None:
        self._drop(object_id)
        self._gone.pop(object_id, None)
        self._gone[object_id] = version
        if len(self._gone) > self._gone_max:
            del self._gone[next(iter(self._gone))]

    def _end_at(self, expires_ms: int, object_id: str) -> None:
        heappush(self._ends, (expires_ms, object_id))
        if len(self._ends) > 2 * len(self._live) + _SPARE:
            self._ends = [(live.expires_ms, found) for found, live in self._live.items() if live.expires_ms is not None]
            heapify(self._ends)
