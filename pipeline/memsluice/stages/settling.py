"""Brings a vector store to what a batch says, and looks whether it is so.

What the store says is believed as little as possible. Its "older" counts only where the log says so, too; its
"written" only once what was written can be read back, and its "deleted" once it is not there any more.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

from memsluice.envelope.keys import Keyring
from memsluice.errors import StoreError, StoreUnavailable
from memsluice.log import get_logger
from memsluice.stages.deferring import Deferring
from memsluice.stages.patience import Patience
from memsluice.stores.agreement import admitted, same, seen
from memsluice.stores.base import (
    UPSERT_MAX,
    Partition,
    StoreAnswer,
    StoredObject,
    UpsertResult,
    VectorStore,
    newest,
    over,
)

WRITTEN_TRIES_MAX = 3
"""Writes of one object that the store took and does not give back: after so many it is refused, for good and loudly."""
UNLIKE_NAME, PUT_OFF = "unlike", "put_off"
"""How it is counted: written and not given back; said in the log before the store has it."""
GAVE_WAY = "gave way to a newer version of its batch"
REFUSED = StoreAnswer.REFUSED
UNLIKE = "the store does not give back what was written"

_LOG = get_logger(__name__)
_PLANTED = "the store held higher versions that the gate never admitted, which land overwrites"
_Name = tuple[Partition, str]
Floors = Callable[[Iterable[StoredObject]], Mapping[_Name, int]]


class Settling:
    """One batch on its way into the store. ``floors`` gives the versions that the log has of objects, by place and id;
    ``floors_now`` reads the log on first, and raises StoreError or BrokerUnavailable.

    ``counted`` is told how many objects the store did not give back as they were written, and how many were put off.
    """

    def __init__(
        self,
        store: VectorStore,
        keyring: Keyring,
        patience: Patience,
        floors: Floors,
        floors_now: Floors,
        deferring: Deferring,
        counted: Callable[[str, int], None],
    ) -> None:
        self._store = store
        self._keyring = keyring
        self._patience = patience
        self._floors = floors
        self._floors_now = floors_now
        self._deferring = deferring
        self._counted = counted
        self._unlike = Counter[int]()
        self._refused: dict[int, UpsertResult] = {}
        """What the store last said of the objects that it refuses, should their tenant be put off."""
        self._above: set[int] = set()
        """Objects above which the store has a version that the log had not, at the last look."""
        self._apart = False
        """Whether tenants are written one by one: a call that failed as a whole does not say for whom."""

    def settle(self, items: Mapping[int, StoredObject], now_ms: int) -> dict[int, UpsertResult]:
        """Bring the store to what numbered objects say; return what became of each. ``now_ms`` (Unix ms) says which of
        them are over, and so taken out instead."""
        outcomes = {number: UpsertResult(item.object_id, StoreAnswer.OLDER) for number, item in items.items()}
        floors = self._floors(items.values())
        left = {number: item for number, item in items.items() if item.version >= floors.get(_name(item), -1)}
        while left:
            latest = {number: left[number] for number in newest(left.items())}
            self._settle(latest, now_ms, outcomes)
            refused = {_name(one): one.version for n, one in latest.items() if outcomes[n].outcome is REFUSED}
            left = {number: item for number, item in left.items() if item.version < refused.get(_name(item), -1)}
        self._give_way(items, floors, outcomes)
        return outcomes

    def _give_way(
        self, items: Mapping[int, StoredObject], floors: Mapping[_Name, int], outcomes: dict[int, UpsertResult]
    ) -> None:
        """Have the log say of the versions before one that landed that they did, too, each in its turn: a batch is
        committed in parts, and what comes behind one may be refused when it comes again."""
        landed: dict[_Name, int] = {}
        for number in sorted(items, reverse=True):
            item, name = items[number], _name(items[number])
            if outcomes[number].outcome is StoreAnswer.LANDED:
                landed[name] = item.version
            elif outcomes[number].outcome is StoreAnswer.OLDER and (
                floors.get(name, -1) <= item.version < landed.get(name, -1)
            ):
                outcomes[number] = UpsertResult(item.object_id, StoreAnswer.LANDED, GAVE_WAY)

    def _settle(self, items: Mapping[int, StoredObject], now_ms: int, outcomes: dict[int, UpsertResult]) -> None:
        """Settle at most one version of each object."""
        waiting = dict(items)

        def attempt() -> None:
            why = self._attempt(waiting, now_ms, outcomes)
            if waiting:
                raise StoreUnavailable(f"{len(waiting)} objects: {why}")

        self._patience.until_answered(attempt)

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
            landed = (part[number] for number in part if outcomes[number].outcome is StoreAnswer.LANDED)
            wrote = {item.tenant for item in landed if not over(item.expires_ms, now_ms)}
            self._deferring.took(wrote - {item.tenant for item in waiting.values()})
        if waiting:
            self._deferring.refused({item.tenant for item in waiting.values()})
            self._put_off(waiting, outcomes)
        return why

    def _put_off(self, waiting: dict[int, StoredObject], outcomes: dict[int, UpsertResult]) -> None:
        """Say of tenants that are put off what the log will say: the sweep brings the store to it. What the store
        refused before they were stays refused."""
        tenants = self._deferring.put_off({item.tenant for item in waiting.values()})
        off = [number for number, item in waiting.items() if item.tenant in tenants]
        for number in off:
            said = UpsertResult(waiting.pop(number).object_id, StoreAnswer.LANDED, PUT_OFF)
            outcomes[number] = self._refused.get(number, said)
        if off:
            self._counted(PUT_OFF, len(off))

    def _once(self, items: Mapping[int, StoredObject], now_ms: int) -> dict[int, UpsertResult]:
        """Write and take out, once; return what became of each object. Raises StoreError."""
        outcomes = dict[int, UpsertResult]()
        live = [number for number, item in items.items() if not over(item.expires_ms, now_ms)]
        for start in range(0, len(live), UPSERT_MAX):
            part = live[start : start + UPSERT_MAX]
            outcomes.update(self._upsert(items, part))
            older = [number for number in part if outcomes[number].outcome is StoreAnswer.OLDER]
            if late := self._in_its_way(items, older):
                outcomes.update(self._upsert(items, late, overwrite=True))
        for number in live:
            self._refused.pop(number, None)
        self._refused |= (refused := {n: outcomes[n] for n in live if outcomes[n].outcome is REFUSED})
        outcomes.update(self._take_back({number: items[number] for number in refused}))
        gone = {number: item for number, item in items.items() if over(item.expires_ms, now_ms)}
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
        if overwrite:  # nothing is older then: a store that says so has not written it
            older = [number for number, result in found.items() if result.outcome is StoreAnswer.OLDER]
            found |= {n: UpsertResult(items[n].object_id, StoreAnswer.UNAVAILABLE, "not overwritten") for n in older}
        landed = {n: items[n] for n, result in found.items() if result.outcome is StoreAnswer.LANDED}
        return found | self._not_given_back(landed)

    def _not_given_back(self, landed: Mapping[int, StoredObject]) -> dict[int, UpsertResult]:
        """Read back what the store says it took; return the outcome of each that is not there as it was written."""
        found, parts, unlike = dict[int, UpsertResult](), _by_partition(landed), 0
        held = self._store.held_of({part: [landed[number].object_id for number in parts[part]] for part in parts})
        for partition, numbers in parts.items():
            for number in numbers:
                item, there = landed[number], held[partition].get(landed[number].object_id)
                if there is not None and same(item, there):
                    continue
                if there is not None and newer(self._keyring, item, there.admission):  # the log will tell whose
                    found[number] = UpsertResult(item.object_id, StoreAnswer.UNAVAILABLE, "a newer version came")
                    continue
                unlike += 1
                self._unlike[number] += 1
                last = self._unlike[number] >= WRITTEN_TRIES_MAX
                found[number] = UpsertResult(item.object_id, REFUSED if last else StoreAnswer.UNAVAILABLE, UNLIKE)
                _LOG.error(UNLIKE, tenant=item.tenant, object_id=item.object_id, last=last)
        if unlike:
            self._counted(UNLIKE_NAME, unlike)
        return found

    def _take_back(self, refused: Mapping[int, StoredObject]) -> dict[int, UpsertResult]:
        """Take out what the store refuses and took all the same: from an attempt whose answer was lost, or to give it
        back otherwise. It is a dead letter, so that no record of the log would ever say what lies there.

        Return what is no dead letter: the log has the object in this version, and it lies there as it was written (a
        record that was delivered again, to a store that takes nothing just now), or in a newer one by now.
        """
        held, found = self._held(refused), dict[int, UpsertResult]()
        if not held:
            return found
        floors, away = self._floors_now(refused.values()), dict[int, StoredObject]()
        for number, there in held.items():
            item, floor = refused[number], floors.get(_name(refused[number]), -1)
            if floor > item.version:
                found[number] = UpsertResult(item.object_id, StoreAnswer.OLDER)
            elif floor == item.version:  # what lies there is the log's, and the sweep's where it is not the same
                if same(item, there):
                    found[number] = UpsertResult(item.object_id, StoreAnswer.LANDED)
            elif _admitted(self._keyring, item, there.admission) in (None, item.version):
                away[number] = there
        self._remove(away)
        return found

    def _in_its_way(self, items: Mapping[int, StoredObject], older: Sequence[int]) -> list[int]:
        """Return which of the items that the store says it has newer versions of the log has none of: those were
        planted, or left by a batch that was given up, and come again.

        Asked only of those (re-deliveries, as a rule), so that landing pays nothing for it.
        """
        if not older:
            return []
        held = self._admissions({number: items[number] for number in older})
        above = [number for number in older if newer(self._keyring, items[number], held.get(number))]
        overtaken = self._overtaken(items, above)
        self._go_on()
        if planted := [number for number in held if number not in above]:
            named = items[planted[0]]
            _LOG.warning(_PLANTED, objects=len(planted), tenant=named.tenant, object_id=named.object_id)
        return [number for number in older if number not in overtaken]

    def _overtaken(self, items: Mapping[int, StoredObject], numbers: Sequence[int]) -> set[int]:
        """Return those of which the log has a newer version by now, where the store has one.

        Raises StoreUnavailable at the first look at which the log has none: another owner's may be on its way there.
        """
        asked = [items[number] for number in numbers]
        floors = self._floors_now(asked) if asked else {}
        found = {number for number in numbers if floors.get(_name(items[number]), -1) > items[number].version}
        if fresh := set(numbers) - found - self._above:
            self._above |= fresh
            raise StoreUnavailable(f"it has newer versions of {len(fresh)} objects, and the log has not")
        return found

    def _withdrawn(self, items: Mapping[int, StoredObject]) -> set[int]:
        """Take objects out; return the numbers of those that lie there no more, and of which the log has no newer
        version either."""
        held = self._held(items)
        above = [number for number in held if newer(self._keyring, items[number], held[number].admission)]
        stay = self._overtaken(items, above)
        left = self._remove({number: there for number, there in held.items() if number not in stay})
        if left:
            raise StoreUnavailable(f"other versions of {len(left)} objects came as they were taken out")
        return set(items) - stay

    def _go_on(self) -> None:
        """Raise StoreUnavailable where this worker was told to stop: what lies there is another one's by now."""
        if self._patience.ended():
            raise StoreUnavailable("the stage was told to stop before it changed what lies in the store")

    def _remove(self, there: Mapping[int, StoredObject]) -> dict[int, str]:
        """Take out what was seen lying there, and nothing newer that another owner brought since; return the admission
        of what was. Raises StoreUnavailable where something stays, or this worker was told to stop.

        What another owner writes of the very same version, just while this one waits for the answer, can go with it:
        the log has it then, and the sweep lands it again.
        """
        for partition, numbers in _by_partition(there).items():
            self._go_on()
            objects = [there[number] for number in numbers]
            ids = [one.object_id for one in objects]
            self._store.delete(*partition, ids, seen=seen(objects, self._keyring))
        left = self._admissions(there)
        if stay := [number for number, admission in left.items() if admission == there[number].admission]:
            raise StoreUnavailable(f"{len(stay)} objects that were taken out are still there")
        return left

    def _held(self, items: Mapping[int, StoredObject]) -> dict[int, StoredObject]:
        """Return what lies under those objects' ids, by number; nothing for those that are not there."""
        found = dict[int, StoredObject]()
        for partition, numbers in _by_partition(items).items():
            for start in range(0, len(numbers), UPSERT_MAX):
                part = numbers[start : start + UPSERT_MAX]
                held = self._store.held(*partition, [items[number].object_id for number in part])
                found |= {n: held[items[n].object_id] for n in part if items[n].object_id in held}
        return found

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


def _admitted(keyring: Keyring, item: StoredObject, held: str | None) -> int | None:
    admission = admitted(item, held, keyring)
    return None if admission is None else admission.version


def _name(item: StoredObject) -> _Name:
    return item.partition, item.object_id


def names(items: Iterable[StoredObject]) -> dict[Partition, list[str]]:
    """Return the ids of objects by the partition that they lie in."""
    found: dict[Partition, list[str]] = defaultdict(list)
    for item in items:
        found[item.partition].append(item.object_id)
    return found
