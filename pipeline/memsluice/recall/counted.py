"""How many entries of a scope a store lacks, counted now and then: to count them takes it long."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field

from memsluice import log

EVERY_S = 60.0
"""How long a count stands. Weaviate looks at each object that it counts by a filter: 6 to 20 ms a thousand."""
AT_ONCE_MAX = 5_000
"""Up to so many entries a count is waited for."""
PLACES_MAX = 10_000
"""Places whose count is kept, the last that were asked about."""
CLOSE_S = 10.0
_LOG = log.get_logger(__name__)

Place = tuple[str, ...]
"""Tenant, zone, namespace and whose entries."""


@dataclass(slots=True)
class _Kept:
    missing: int = 0
    due: float = float("-inf")
    turn: threading.Lock = field(default_factory=threading.Lock)


class Counted:
    """What is missing at places as of their last counts. Safe for several threads.

    A large place is counted beside the answers, in one thread for all: until its first count has ended nothing is
    known to be missing, and one that fails leaves the last one standing. *land*'s sweep finds what is missing, too.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._places: OrderedDict[Place, _Kept] = OrderedDict()
        self._lock = threading.Lock()
        self._beside: threading.Thread | None = None
        self._closed = False

    def missing(self, place: Place, number: int, count: Callable[[], int]) -> int:
        """Return how many are missing; ``count`` finds that out, of ``number`` that should lie there.

        Raises what ``count`` raises, where it is waited for.
        """
        kept = self._kept(place)
        if number > AT_ONCE_MAX:
            return self._known(kept, count)
        with kept.turn:  # who comes meanwhile waits for it, and is not told 0 because nobody has counted yet
            if self._monotonic() >= kept.due:
                kept.missing = count()
                kept.due = self._monotonic() + EVERY_S
            return kept.missing

    def close(self, timeout_s: float = CLOSE_S) -> None:
        """Begin no further count beside the answers, and wait for the one that is under way, at most so long."""
        with self._lock:
            self._closed = True
        self.settle(timeout_s)

    def settle(self, timeout_s: float = CLOSE_S) -> None:
        """Wait for the count that is under way, at most so long."""
        if (beside := self._beside) is not None:
            beside.join(timeout_s)

    def _kept(self, place: Place) -> _Kept:
        with self._lock:
            kept = self._places.setdefault(place, _Kept())
            self._places.move_to_end(place)
            while len(self._places) > PLACES_MAX:
                self._places.popitem(last=False)
            return kept

    def _known(self, kept: _Kept, count: Callable[[], int]) -> int:
        with self._lock:
            known, busy = kept.missing, self._beside is not None and self._beside.is_alive()
            if not busy and not self._closed and self._monotonic() >= kept.due:
                kept.due = float("inf")  # until it has ended
                self._beside = threading.Thread(target=self._renew, args=(kept, count), daemon=True)
                self._beside.start()
        return known

    def _renew(self, kept: _Kept, count: Callable[[], int]) -> None:
        try:
            kept.missing = count()
        except Exception as error:  # its kind alone: nobody waits for it, and the next count is due as after any other
            _LOG.warning("entries that should be in the store were not counted", why=type(error).__name__)
        finally:
            kept.due = self._monotonic() + EVERY_S
