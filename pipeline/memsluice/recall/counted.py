"""How many of the entries that everybody may read a store lacks, counted now and then: to count them takes it long."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from memsluice.errors import StoreError

EVERY_S = 60.0
"""How long a count stands. Weaviate looks at each object that it counts by a filter: some 20 ms a thousand."""
AT_ONCE_MAX = 5_000
"""Up to so many entries the first count is waited for."""
PLACES_MAX = 10_000
"""Places whose count is kept, the last that were asked about."""

Place = tuple[str, str, str]
"""Tenant, zone and namespace."""


@dataclass(slots=True)
class _Kept:
    missing: int = 0
    due: float = float("-inf")


class Counted:
    """What is missing at a place as of its last count, which is renewed beside the recalls. Safe for several threads.

    A count that is not waited for is one of all at a time, in a thread of its own, and what it raises of the store
    leaves the last one standing: *land*'s sweep finds what is missing, too.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._places: OrderedDict[Place, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._beside: threading.Thread | None = None

    def missing(self, place: Place, number: int, count: Callable[[], int]) -> int:
        """Return how many are missing; ``count`` finds that out, of ``number`` that should lie there."""
        with self._lock:
            kept = self._places.get(place)
            first = kept is None
            if kept is None:
                kept = self._places[place] = _Kept()
                while len(self._places) > PLACES_MAX:
                    self._places.popitem(last=False)
            self._places.move_to_end(place)
            if self._monotonic() < kept.due:
                return kept.missing
            waits = first and number <= AT_ONCE_MAX
            if not waits and self._beside is not None and self._beside.is_alive():
                return kept.missing
            kept.due, known = self._monotonic() + EVERY_S, kept.missing
            if not waits:
                self._beside = threading.Thread(target=self._renew, args=(kept, count), daemon=True)
                self._beside.start()
                return known
        try:
            kept.missing = count()
        except BaseException:
            kept.due = float("-inf")
            raise
        return kept.missing

    def settle(self) -> None:
        """Wait for the count that is under way."""
        if (beside := self._beside) is not None:
            beside.join()

    def _renew(self, kept: _Kept, count: Callable[[], int]) -> None:
        try:
            kept.missing = count()
        except StoreError:
            kept.due = float("-inf")
