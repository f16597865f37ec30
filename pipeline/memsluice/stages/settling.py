"""Brings a vector store to what a batch says, looks whether it is so, and waits for a store that does not answer.

What the store says is believed as little as possible. Its "older" counts only where the version that lies there was
signed by the gate; its "written" only once what was written can be read back.
"""

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeVar

import orjson

from memsluice.envelope.keys import Keyring
from memsluice.envelope.seals import admission_verify_inside
from memsluice.errors import BrokerUnavailable, SealError, StoreError, StoreUnavailable
from memsluice.log import get_logger
from memsluice.stages.deferring import Deferring
from memsluice.stores.agreement import same
from memsluice.stores.base import (
    UPSERT_MAX,
    Partition,
    StoreAnswer,
    StoredObject,
    UpsertResult,
    VectorStore,
    expected_id,
    newest,
)

RETRY_FIRST_S = 0.4
RETRY_MAX_S = 5.0
REFUSAL_S = 300.0
"""A refusal counts for so long unless it is repeated: an attempt that never ends is no refusal, but a hang."""
WARN_EVERY = 10
"""A store that stays down is reported at the first attempt and at every tenth."""
WRITTEN_TRIES_MAX = 3
"""Writes of one object that the store took and does not give back: after so many it is refused, for good and loudly."""
UNLIKE_NAME, PUT_OFF = "unlike", "put_off"
"""How it is counted: written and not given back; said in the log before the store has it."""
UNLIKE = "the store does not give back what was written"

_LOG = get_logger(__name__)
_PLANTED = "the store held higher versions that the gate never admitted; they are overwritten"
_T = TypeVar("_T")


class Patience:
    """Repeats what a store or a broker does not answer, with growing pauses, until it is told to stop.

    To be told to stop counts for the whole term, an assignment of partitions, and so for a batch too that came before
    and begins after: it is another worker's by then. ``wait(seconds)`` pauses and returns True when the work in hand is
    to be given up.
    """

    def __init__(
        self, wait: Callable[[float], bool] | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._term = self._given_up = threading.Event()
        self._wait = wait
        self._monotonic = monotonic
        self._refused: tuple[float, float] | None = None
        """When what is asked refused first, and last; None while it does not. Set whole: other threads read it."""

    def renew(self) -> None:
        """Begin a term: what was told before counts for those who came before."""
        self._term = threading.Event()

    def term(self) -> threading.Event:
        """Return the term in force, for :meth:`begin`; to be asked when a batch comes, before it waits for anything."""
        return self._term

    def begin(self, term: threading.Event) -> None:
        """Begin a batch that came in a term. Raises StoreUnavailable where that was told to stop since."""
        self._given_up = term
        if term.is_set():
            raise StoreUnavailable("the stage was told to stop before this batch began")

    def end(self) -> None:
        """End at once what this term's batches wait for, the one in hand and those that came."""
        self._term.set()
        self._given_up.set()

    def ended(self) -> bool:
        """Whether the batch in hand was given up."""
        return self._given_up.is_set()

    def refused_s(self) -> float:
        """Return for how many seconds nothing has been taken; 0.0 where something was, or nobody says no any more."""
        refused, now_s = self._refused, self._monotonic()
        return 0.0 if refused is None or now_s - refused[1] > REFUSAL_S else max(now_s - refused[0], RETRY_FIRST_S)

    def until_answered(self, action: Callable[[], _T]) -> _T:
        """Return the action's result, repeating it while nobody answers or lets us in. Raises StoreUnavailable."""
        try:
            return self._repeated(action)
        finally:
            self._refused = None

    def _repeated(self, action: Callable[[], _T]) -> _T:
        pause_s, attempts = RETRY_FIRST_S, 0
        while True:
            try:
                return action()
            except (StoreError, BrokerUnavailable) as error:
                attempts += 1
                now_s = self._monotonic()
                self._refused = (now_s if self._refused is None else self._refused[0], now_s)
                if attempts % WARN_EVERY == 1:
                    _LOG.warning("the store does not take the batch, trying again", attempts=attempts, why=str(error))
                if (self._wait or self._given_up.wait)(pause_s):
                    raise StoreUnavailable(f"given up while waiting for the store: {error}") from error
            pause_s = min(2 * pause_s, RETRY_MAX_S)


class Settling:
    """One batch on its way into the store. ``floors`` are the versions that the log already has, by place and id.

    ``counted`` is told how many objects the store did not give back as they were written, and how many were put off.
    """

    def __init__(
        self,
        store: VectorStore,
        keyring: Keyring,
        patience: Patience,
        floors: Mapping[tuple[Partition, str], int],
        deferring: Deferring,
        counted: Callable[[str, int], None],
    ) -> None:
        self._store = store
        self._keyring = keyring
        self._patience = patience
        self._floors = floors
        self._deferring = deferring
        self._counted = counted
        self._unlike = Counter[int]()
        self._apart = False
        """Whether tenants are written one by one: a call that failed as a whole does not say for whom."""

    def settle(self, items: Mapping[int, StoredObject], now_ms: int) -> dict[int, UpsertResult]:
        """Bring the store to what numbered objects say; return what became of each. ``now_ms`` (Unix ms) says which of
        them are over, and so taken out instead."""
        outcomes = {number: UpsertResult(item.object_id, StoreAnswer.OLDER) for number, item in items.items()}
        latest = [number for number in newest(items.items()) if not self._below_floor(items[number])]
        waiting = {number: items[number] for number in latest}

        def attempt() -> None:
            why = self._attempt(waiting, now_ms, outcomes)
            if waiting:
                raise StoreUnavailable(f"{len(waiting)} objects: {why}")

        self._patience.until_answered(attempt)
        return outcomes

    def _below_floor(self, item: StoredObject) -> bool:
        return item.version < self._floors.get((item.partition, item.object_id), -1)

    def _attempt(self, waiting: dict[int, StoredObject], now_ms: int, outcomes: dict[int, UpsertResult]) -> str:
        """Take out of ``waiting`` what is settled, or put off; return why the rest is not. Raises StoreError where
        the store as a whole does not answer."""
        self._put_off(waiting, outcomes)
        tenants = sorted({item.tenant for item in waiting.values()})
        why = ""
        for group in [[tenant] for tenant in tenants] if self._apart else [tenants]:
            part = {number: item for number, item in waiting.items() if item.tenant in group}
            try:
                outcomes.update(self._once(part, now_ms))
            except StoreError as error:
                if not self._apart or self._patience.ended():
                    self._apart = True
                    raise
                self._store.tenants()  # raises where it is not this tenant alone
                why = str(error)
                continue
            for number in part:
                if outcomes[number].outcome is StoreAnswer.UNAVAILABLE:
                    why = outcomes[number].detail
                else:
                    del waiting[number]
            self._deferring.took(set(group) - {item.tenant for item in waiting.values()})
        if waiting:
            self._deferring.refused({item.tenant for item in waiting.values()})
            self._put_off(waiting, outcomes)
        return why

    def _put_off(self, waiting: dict[int, StoredObject], outcomes: dict[int, UpsertResult]) -> None:
        """Say of tenants that are put off what the log will say: the sweep brings the store to it."""
        tenants = self._deferring.put_off({item.tenant for item in waiting.values()})
        off = [number for number, item in waiting.items() if item.tenant in tenants]
        for number in off:
            outcomes[number] = UpsertResult(waiting.pop(number).object_id, StoreAnswer.LANDED, PUT_OFF)
        if off:
            self._counted(PUT_OFF, len(off))

    def _once(self, items: Mapping[int, StoredObject], now_ms: int) -> dict[int, UpsertResult]:
        """Write and take out, once; return what became of each object. Raises StoreError."""
        outcomes = dict[int, UpsertResult]()
        live = [number for number, item in items.items() if not over(item, now_ms)]
        for start in range(0, len(live), UPSERT_MAX):
            part = live[start : start + UPSERT_MAX]
            outcomes.update(self._upsert(items, part))
            older = [number for number in part if outcomes[number].outcome is StoreAnswer.OLDER]
            if planted := self._planted(items, older):
                named = items[planted[0]]
                _LOG.warning(_PLANTED, objects=len(planted), tenant=named.tenant, object_id=named.object_id)
                outcomes.update(self._upsert(items, planted, overwrite=True))
        self._take_back({n: items[n] for n in live if outcomes[n].outcome is StoreAnswer.REFUSED})
        gone = {number: item for number, item in items.items() if over(item, now_ms)}
        away = self._withdrawn(gone)
        for number, item in gone.items():
            answer = StoreAnswer.LANDED if number in away else StoreAnswer.OLDER
            outcomes[number] = UpsertResult(item.object_id, answer)
        return outcomes

    def _upsert(
        self, items: Mapping[int, StoredObject], numbers: Sequence[int], *, overwrite: bool = False
    ) -> dict[int, UpsertResult]:
        """Write objects and read back those that landed."""
        results = self._store.upsert([items[number] for number in numbers], overwrite=overwrite)
        found = dict(zip(numbers, results, strict=True))
        landed = {n: items[n] for n, result in found.items() if result.outcome is StoreAnswer.LANDED}
        return found | self._not_given_back(landed)

    def _not_given_back(self, landed: Mapping[int, StoredObject]) -> dict[int, UpsertResult]:
        """Read back what the store says it took; return the outcome of each that is not there as it was written."""
        found, parts = dict[int, UpsertResult](), _by_partition(landed)
        held = self._store.held_of({part: [landed[number].object_id for number in parts[part]] for part in parts})
        for partition, numbers in parts.items():
            for number in numbers:
                item, there = landed[number], held[partition].get(landed[number].object_id)
                if there is not None and same(item, there):
                    continue
                if there is not None and newer(self._keyring, item, there.admission):  # another owner's, meanwhile
                    found[number] = UpsertResult(item.object_id, StoreAnswer.OLDER)
                    continue
                self._unlike[number] += 1
                last = self._unlike[number] >= WRITTEN_TRIES_MAX
                found[number] = UpsertResult(
                    item.object_id, StoreAnswer.REFUSED if last else StoreAnswer.UNAVAILABLE, UNLIKE
                )
                _LOG.error(UNLIKE, tenant=item.tenant, object_id=item.object_id, last=last)
                if last:
                    self._store.delete(*partition, [item.object_id])
        if found:
            self._counted(UNLIKE_NAME, sum(result.outcome is not StoreAnswer.OLDER for result in found.values()))
        return found

    def _take_back(self, refused: Mapping[int, StoredObject]) -> None:
        """Take out what the store refuses and took all the same: from an attempt whose answer was lost. It is a dead
        letter, so that no record of the log would ever say what lies there."""
        held = self._admissions(refused)
        there = {n: item for n, item in refused.items() if lies(self._keyring, item, held.get(n))}
        for partition, numbers in _by_partition(there).items():
            self._store.delete(*partition, [there[number].object_id for number in numbers])

    def _planted(self, items: Mapping[int, StoredObject], older: Sequence[int]) -> list[int]:
        """Return which of the items that the store says it has newer versions of it has none of.

        Asked only of those (re-deliveries, as a rule), so that landing pays nothing for it.
        """
        held = self._admissions({number: items[number] for number in older})
        return [number for number in older if not newer(self._keyring, items[number], held.get(number))]

    def _withdrawn(self, items: Mapping[int, StoredObject]) -> set[int]:
        """Take objects out; return the numbers of those that lie there no more, and in no newer version either.

        What was taken out is asked for once more: it must be gone before the log says so.
        """
        held = self._admissions(items)
        stay = {number for number in held if newer(self._keyring, items[number], held[number])}
        away = {number: items[number] for number in held if number not in stay}
        for partition, numbers in _by_partition(away).items():
            self._store.delete(*partition, [items[number].object_id for number in numbers])
        if away and (left := self._admissions(away)):
            raise StoreUnavailable(f"{len(left)} objects that were taken out are still there")
        return set(items) - stay

    def _admissions(self, items: Mapping[int, StoredObject]) -> dict[int, str]:
        """Return what lies as admission under those objects' ids, by number; nothing for those that are not there."""
        found = dict[int, str]()
        for partition, numbers in _by_partition(items).items():
            for start in range(0, len(numbers), UPSERT_MAX):
                part = numbers[start : start + UPSERT_MAX]
                held = self._store.admissions(*partition, [items[number].object_id for number in part])
                found |= {n: held[items[n].object_id] for n in part if items[n].object_id in held}
        return found


def _by_partition(items: Mapping[int, StoredObject]) -> dict[Partition, list[int]]:
    found: dict[Partition, list[int]] = defaultdict(list)
    for number, item in items.items():
        found[item.partition].append(number)
    return found


def newer(keyring: Keyring, item: StoredObject, held: str | None) -> bool:
    """Whether the admission that lies in the store is the gate's own, of this very object, and of a higher version.

    ``held`` is None where the store has no such object. What version the object itself states is not asked: whoever
    can write to the store can state any.
    """
    version = _admitted(keyring, item, held)
    return version is not None and version > item.version


def lies(keyring: Keyring, item: StoredObject, held: str | None) -> bool:
    """Whether the admission that lies in the store is the gate's own, of this very object, and of its version."""
    return _admitted(keyring, item, held) == item.version


def _admitted(keyring: Keyring, item: StoredObject, held: str | None) -> int | None:
    try:
        admission = admission_verify_inside(keyring, item.tenant, orjson.loads(held or ""))
    except (SealError, orjson.JSONDecodeError):
        return None
    mine = item.object_id == admission.object_id == expected_id(admission) and admission.zone is item.zone
    return admission.version if mine else None


def over(item: StoredObject, now_ms: int) -> bool:
    """Whether an object's time is over (Unix ms)."""
    return item.expires_ms is not None and item.expires_ms <= now_ms


def names(items: Iterable[StoredObject]) -> dict[Partition, list[str]]:
    """Return the ids of objects by the partition that they lie in."""
    found: dict[Partition, list[str]] = defaultdict(list)
    for item in items:
        found[item.partition].append(item.object_id)
    return found
