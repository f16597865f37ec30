"""*land*'s slow sweep: compares the store with the log while nothing else is to be done, and mends what differs.

One stretch of one tenant's zone at a time, 256 objects, so that a million take about an hour; of small tenants as many
as come to that or take TURN_S, once a second. It is also how expired entries leave the store. A worker sweeps the
partitions that it owns and no other: who does not land in a partition can not know what is on its way there.

A batch waits for one turn at most. What takes longer, reading the store log of a partition for the first time, is
done beside the batches, and ended where the partitions go to another worker.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from time import monotonic, sleep
from typing import Final

from memsluice.errors import MemsluiceError, StoreError
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.log import get_logger, said
from memsluice.stages.reconcile import STRETCH, Mended, Reconciler
from memsluice.stages.settling import PUT_OFF, UNLIKE_NAME
from memsluice.stores.base import VectorStore
from memsluice.stores.compare import Difference
from memsluice.stores.log_index import Ended, LogIndex

EVERY_S = 1.0
"""At most one turn in so long."""
TURN_S = 0.1
"""No stretch is begun later in a turn: a batch waits for it."""
IDLE_S = 0.5
"""A stretch waits until no batch was in work for so long …"""
STARVED_S = 30.0
"""… unless none was swept for so long: under constant load, expired entries must leave all the same."""
ROUND_S = 60.0
"""A round begins this long after the one before began, at the earliest."""
AFTER_FAILURE_S = 30.0
SKIPS_MAX = 16
"""Rounds, at most, that a tenant is left out for whose part of the store does not answer."""
MENDED_AT_ONCE = 64
TOLD_MAX = 1_000
"""Objects that can not be mended and were named in the log; more are counted."""
REPAIRED, UNREPAIRED, SWEPT, UNVERIFIED = "repaired", "unrepaired", "swept", "unverified"
DIFFERENCE_NAMES: Final = (*(kind.value for kind in Difference), UNLIKE_NAME, PUT_OFF)
"""Kinds that are counted; ``unlike`` is what *land* wrote and did not read back, ``put_off`` what the log says of a
tenant whose writes the store does not take."""
REPAIR_NAMES: Final = (REPAIRED, UNREPAIRED)
_TOO_OLD: Final = "the store can not be mended: see memsluice store repair"
_UNREADABLE: Final = (
    "the log's record of an entry does not verify, and it is left as it is: is a seal key missing here?"
)

_LOG = get_logger(__name__)
Counted = Callable[[str, int], None]


class StoreSweep:
    """Walks round and round the tenants of the partitions that are owned. Used by one thread at a time."""

    def __init__(self, reconciler: Reconciler, store: VectorStore, log: LogIndex, partitions: int) -> None:
        self._reconciler = reconciler
        self._store = store
        self._log = log
        self._partitions = partitions
        self._owned: frozenset[int] = frozenset()
        self._unread: list[int] = []
        """Partitions whose log was not read since the last round began."""
        self._ended: Ended = bool
        self._round: Iterator[tuple[str, Zone]] = iter(())
        self._at: tuple[str, Zone] | None = None
        self._after = ""
        self._differs: list[str] = []
        """What is still to be mended of the stretch that was looked at last, which ends with …"""
        self._end: str | None = None
        self._told: set[str] = set()
        self._misses = Counter[str]()
        """How often in a row each tenant was passed over …"""
        self._skips: dict[str, int] = {}
        """… and how many rounds it is left out for."""

    def until(self, ended: Ended) -> None:
        """Ask from now on whether to stop, wherever logs are read: then reading them raises."""
        self._ended = self._reconciler.ended = ended

    def owns(self, partitions: Collection[int]) -> None:
        """Sweep these partitions from now on, and begin anew."""
        self._owned = frozenset(partitions)
        self._round, self._at, self._differs = iter(()), None, []
        self._unread = sorted(self._owned)
        self._misses.clear()
        self._skips.clear()

    def read_on(self) -> bool:
        """Read the store log of one more partition; return False where all were read since the last round began.

        Nobody waits for it but a batch that needs the same partition's log. Raises BrokerUnavailable.
        """
        if self._unread:
            self._log.catch_up(self._unread[0], self._ended)
            del self._unread[0]
        return bool(self._unread)

    def begin_round(self) -> None:
        """Begin a round over all tenants that the log or the store has in the partitions owned."""
        while self.read_on():
            pass
        self._unread = sorted(self._owned)
        there = [one for one in self._store.tenants() if partition_of(one, self._partitions) in self._owned]
        tenants = sorted({*there, *(self._log.tenants(self._owned) if self._owned else ())} - self._skips.keys())
        self._skips = {tenant: left - 1 for tenant, left in self._skips.items() if left > 1}
        self._round = iter([(tenant, zone) for tenant in tenants for zone in Zone])
        self._at = next(self._round, None)
        self._after, self._differs = "", []

    def step(self, counted: Counted) -> bool:
        """Compare and mend one stretch; return False where the round is over.

        A tenant whose part of the store does not answer is passed over. Raises StoreError where the store does not
        answer at all, BrokerUnavailable.
        """
        at = self._at
        if at is None or partition_of(at[0], self._partitions) not in self._owned:
            return self._next()
        try:
            return self._stretch(at, counted)
        except StoreError as error:
            if self._ended():
                raise
            self._store.tenants()
            return self._pass_over(at, error)

    def _pass_over(self, at: tuple[str, Zone], error: StoreError) -> bool:
        """Leave a tenant out for some rounds, twice as many each time: batches wait while it does not answer."""
        tenant = at[0]
        self._misses[tenant] += 1
        self._skips[tenant] = min(2 ** (self._misses[tenant] - 1), SKIPS_MAX)
        _LOG.info("the sweep passes a tenant over", tenant=tenant, zone=at[1].value, why=said(error),
                  rounds=self._skips[tenant])  # fmt: skip
        while self._next() and self._at is not None and self._at[0] == tenant:
            pass
        return self._at is not None

    def _next(self) -> bool:
        self._at, self._after, self._differs = next(self._round, None), "", []
        return self._at is not None

    def _stretch(self, at: tuple[str, Zone], counted: Counted) -> bool:
        if not self._differs:
            compared = self._reconciler.look(*at, self._after)
            self._differs, self._end = sorted(compared.differs), compared.end
            counted(SWEPT, compared.looked_at)
            for kind, many in Counter(compared.differs.values()).items():
                counted(kind.value, many)
        if self._differs:
            now, self._differs = self._differs[:MENDED_AT_ONCE], self._differs[MENDED_AT_ONCE:]
            self._tell(at, self._reconciler.mend(*at, now), counted)
            if self._differs:  # with the next step, so that no batch waits for long
                return True
        end = self._end
        if end is None:
            here = self._next()
            if self._at is None or self._at[0] != at[0]:  # all of the tenant answered
                del self._misses[at[0]]
            return here
        self._after = end
        return True

    def _tell(self, at: tuple[str, Zone], mended: Mended, counted: Counted) -> None:
        counted(REPAIRED, len(mended.removed) + len(mended.landed))
        counted(UNREPAIRED, len(mended.left))
        named = {"tenant": at[0], "zone": at[1].value}
        if mended.removed or mended.landed:
            _LOG.warning("the store was mended", **named, removed=len(mended.removed), landed=len(mended.landed))
        if mended.refused:
            _LOG.info("the store took no repair: the next round tries again", **named, objects=len(mended.refused))
        for object_id, kind in mended.left.items():
            if object_id not in self._told and len(self._told) < TOLD_MAX:  # once, not with every round
                self._told.add(object_id)
                _LOG.error(_UNREADABLE if kind is Difference.UNREADABLE else _TOO_OLD, **named, object_id=object_id,
                           differs=kind.value)  # fmt: skip


class SweepThread:
    """Gives a sweep its time: between batches, in a thread that lives while partitions are owned.

    ``busy`` is held by whoever works on a batch; a stretch is swept while it is free. Whoever holds it waits for no
    reading of the sweep, which holds it for nothing but a stretch.
    """

    def __init__(self, sweep: StoreSweep, busy: threading.Lock, counted: Counted) -> None:
        self.last_batch_s = monotonic()
        self._sweep = sweep
        self._busy = busy
        self._counted = counted
        self._gate = threading.Lock()
        self._owned: frozenset[int] | None = None
        """What was said since the last stretch."""
        self._thread: threading.Thread | None = None
        self._swept_s = self._round_s = monotonic() - ROUND_S
        self._going = False
        self._moved_s: float | None = None
        """When the sweep did something last; None where it has nothing to do."""
        sweep.until(self._is_stale)

    def owns(self, partitions: Collection[int]) -> None:
        """Sweep these partitions from the next stretch on, none where there are none; waits for nobody."""
        with self._gate:
            self._owned = frozenset(partitions)
            self._moved_s = monotonic() if partitions else None
            if partitions and self._thread is None:
                self._thread = threading.Thread(target=self._run, name="land-sweep", daemon=True)
                self._thread.start()

    def idle_s(self) -> float:
        """Return for how many seconds the sweep has done nothing, though there are partitions to sweep."""
        moved_s = self._moved_s
        return 0.0 if moved_s is None else monotonic() - moved_s

    def _is_stale(self) -> bool:
        """Whether other partitions were given, or all taken, since the last stretch."""
        return self._owned is not None

    def _run(self) -> None:
        while True:
            sleep(EVERY_S)
            with self._gate:
                owned, self._owned = self._owned, None
                if owned is not None:
                    self._sweep.owns(owned)
                    self._going = False
                if owned == frozenset():
                    self._thread = None
                    return
            self._turn()

    def _turn(self) -> None:
        """Sweep one stretch, if it is time for one."""
        now_s = monotonic()
        if not self._going and now_s - self._round_s < ROUND_S:
            return
        if now_s - self.last_batch_s < IDLE_S and now_s - self._swept_s < STARVED_S:
            return
        try:
            done = self._read_on() or self._sweep_on(now_s)
        except MemsluiceError as error:
            if not self._is_stale():
                _LOG.info("the sweep of the store waits", why=said(error))
            self._later()
        except Exception as error:  # a full disk under the index, or a defect: the next stretch may do all the same
            _LOG.error("the sweep of the store failed, and is tried again", why=said(error))
            self._later()
        else:
            with self._gate:
                if done and self._moved_s is not None:
                    self._moved_s = monotonic()

    def _steps(self) -> bool:
        """Sweep stretches until one turn is over; return False where the round is."""
        looked_at, begun_s = 0, monotonic()

        def counted(name: str, amount: int) -> None:
            nonlocal looked_at
            looked_at += amount if name == SWEPT else 0
            self._counted(name, amount)

        while going := self._sweep.step(counted):
            if looked_at >= STRETCH or monotonic() - begun_s > TURN_S or self._is_stale():
                break
        return going

    def _later(self) -> None:
        self._going, self._round_s = False, monotonic() - ROUND_S + AFTER_FAILURE_S

    def _read_on(self) -> bool:
        """Read one partition's log, if a round is to begin and one is still to be read. No batch waits meanwhile."""
        return not self._going and self._sweep.read_on()

    def _sweep_on(self, now_s: float) -> bool:
        with self._busy:
            if self._is_stale():  # given to another worker while this one waited for the batch
                return False
            if self._going:
                self._going = self._steps()
            else:
                self._sweep.begin_round()
                self._round_s, self._going = now_s, True
            self._swept_s = now_s
            return True
