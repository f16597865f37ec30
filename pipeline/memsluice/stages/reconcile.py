"""Makes a store say what the log says: looks at one stretch of a tenant's zone at a time, and mends what differs.

*land*'s sweep and ``memsluice store`` are both this. What the log says lies there, and does not or not as it was
admitted, is landed again from memory.accepted.v1; what the log does not know, or no longer, is removed. Both are done
on what store and log say at that moment, not on what they said when they were compared.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import Accepted, landing_from_bytes
from memsluice.errors import AnswerTooLarge, MalformedEvent, SealError
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.stores.agreement import seen
from memsluice.stores.base import StoreAnswer, StoredObject, VectorStore, from_accepted
from memsluice.stores.compare import Compared, Difference, compare
from memsluice.stores.log_index import Ended, Known, LogIndex, Reader

STRETCH = 256
"""Objects that are compared at a time, 1 to UPSERT_MAX."""
NEAR = 500
"""Records that are read over on the way to the next one that is wanted, instead of asking for it anew."""


@dataclass(frozen=True, slots=True)
class Mended:
    """What became of differences: ids removed, landed again, those that the store did not take, which another round
    mends, and those that are left as they are: the accepted log has no record of them, or the store log none that
    verifies."""

    removed: tuple[str, ...] = ()
    landed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    left: Mapping[str, Difference] = field(default_factory=dict)


class Reconciler:
    """Compares and mends. ``accepted`` opens memory.accepted.v1; ``now_ms`` is Unix milliseconds.

    ``ended`` is asked wherever logs are read; once it says True, StoreUnavailable or BrokerUnavailable is raised.

    *land* may write to the tenant's partition meanwhile. What it has written and not yet said in the log is left alone,
    and what it writes to an object that is just being taken out stays. What it writes to one that is just being landed
    again may give way to the version before: the next comparison finds that, and mends it. Raises StoreError,
    BrokerUnavailable.
    """

    def __init__(
        self,
        store: VectorStore,
        log: LogIndex,
        accepted: Callable[[Ended], Reader],
        keys: Callable[[], Keyring],
        partitions: int,
        now_ms: Callable[[], int],
    ) -> None:
        self._store = store
        self._log = log
        self._open_accepted = accepted
        self._accepted: Reader | None = None
        self._keys = keys
        self._partitions = partitions
        self._now_ms = now_ms
        self.ended: Ended = bool

    def look(self, tenant: str, zone: Zone, after: str = "", limit: int = STRETCH) -> Compared:
        """Compare the next objects by id beyond ``after``. The log is read to its end first."""
        partition = partition_of(tenant, self._partitions)
        self._log.catch_up(partition, self.ended)
        try:
            held = self._store.page(tenant, zone, after, limit)
        except AnswerTooLarge:  # planted among the others: fewer at a time, in few steps, since each may wait long
            if limit == 1:
                raise
            return self.look(tenant, zone, after, max(limit // 4, 1))
        until = held[-1].object_id if len(held) == limit else None
        known = self._log.between(tenant, zone, after, until, limit)
        if len(known) == limit:  # the log may have more than these: only as far as both were read
            last = max(known)
            until = last if until is None else min(last, until)
            held = [item for item in held if item.object_id <= until]
            known = {one: said for one, said in known.items() if one <= until}
        there = {*known, *(item.object_id for item in held)}
        unreadable, highest = self._log.unreadable(partition, there), self._log.highest(partition)
        found = compare(held, known, self._keys(), self._now_ms(), highest, unreadable)
        return Compared(len(there), found, until)

    def walk(self, tenant: str, zone: Zone) -> Iterator[Compared]:
        """Yield a whole partition, stretch by stretch."""
        after: str | None = ""
        while after is not None:
            compared = self.look(tenant, zone, after)
            yield compared
            after = compared.end

    def mend(self, tenant: str, zone: Zone, ids: Collection[str], *, search: bool = False) -> Mended:
        """Mend objects that differed, as far as they still do.

        With ``search`` the whole partition of the accepted log is read for records whose place the store record does
        not say: those that were landed by an older version.
        """
        wanted, keyring, partition = sorted(ids), self._keys(), partition_of(tenant, self._partitions)
        self._log.catch_up(partition, self.ended)
        known = self._log.known(tenant, zone, wanted)
        held = self._store.held(tenant, zone, wanted)
        now_ms = self._now_ms()
        unreadable, highest = self._log.unreadable(partition, wanted), self._log.highest(partition)
        still = compare(list(held.values()), known, keyring, now_ms, highest, unreadable)
        left: dict[str, Difference] = {one: how for one, how in still.items() if how is Difference.UNREADABLE}
        lying = {one: known[one] for one in still.keys() - unreadable if one in known and known[one].lies(now_ms)}
        away = sorted(still.keys() - left - lying.keys())
        records = self._records(tenant, partition, lying, keyring, search=search)
        landed = self._land_again(records)
        if away:
            self._store.delete(tenant, zone, away, seen=seen([held[one] for one in away], keyring))
        there = {item.object_id for item in records}
        left |= {one: still[one] for one in lying if one not in there}
        return Mended(tuple(away), tuple(landed), tuple(there.difference(landed)), left)

    def only_in_store(self, tenant: str) -> int:
        """Return how many entries lie there and could not be landed again: memory.accepted.v1 has no record of them
        that verifies, or the log's own does not."""
        partition, keyring, found = partition_of(tenant, self._partitions), self._keys(), 0
        there = {(item.object_id, item.version) for item in self._entries(tenant, partition, keyring)}
        for zone in Zone:
            after: str | None = ""
            while after is not None:
                compared = self.look(tenant, zone, after)
                known = self._log.between(tenant, zone, after, compared.end, STRETCH)
                kinds = {one: compared.differs.get(one) for one in known if known[one].lies(self._now_ms())}
                lies = {one for one, how in kinds.items() if how is not Difference.MISSING}
                lost = {one for one in lies if (one, known[one].version) not in there}
                found += len(lost.union(one for one, how in compared.differs.items() if how is Difference.UNREADABLE))
                after = compared.end
        return found

    def land_all(self, tenant: str) -> int:
        """Land whatever the log says lies in a tenant's partitions, which were dropped; return how many objects."""
        partition, keyring, landed = partition_of(tenant, self._partitions), self._keys(), 0
        batch: list[StoredObject] = []
        for item in self._entries(tenant, partition, keyring):
            batch.append(item)
            if len(batch) == STRETCH:
                landed += self._land_current(tenant, partition, batch)
                batch = []
        return landed + self._land_current(tenant, partition, batch)

    def _land_current(self, tenant: str, partition: int, items: Sequence[StoredObject]) -> int:
        """Land those that lie there by the log as it is now, and nothing over what *land* wrote in the meantime."""
        self._log.catch_up(partition, self.ended)
        now_ms, known = self._now_ms(), dict[str, Known]()
        for zone in Zone:
            known |= self._log.known(tenant, zone, [item.object_id for item in items if item.zone is zone])
        unreadable = self._log.unreadable(partition, known)
        lying = {one: said.version for one, said in known.items() if said.lies(now_ms) and one not in unreadable}
        current = [item for item in items if lying.get(item.object_id) == item.version]
        return len(self._land_again(current, overwrite=False))

    def _land_again(self, items: Sequence[StoredObject], *, overwrite: bool = True) -> list[str]:
        if not items:
            return []
        results = self._store.upsert(items, overwrite=overwrite)
        return [result.object_id for result in results if result.outcome is StoreAnswer.LANDED]

    def _is_ended(self) -> bool:
        return self.ended()

    def _reader(self) -> Reader:
        if self._accepted is None:
            self._accepted = self._open_accepted(self._is_ended)
        return self._accepted

    def _records(
        self, tenant: str, partition: int, lying: Mapping[str, Known], keyring: Keyring, *, search: bool
    ) -> list[StoredObject]:
        """Return what was accepted of the objects, in the version that the log says, as far as it is still there."""
        found: dict[str, StoredObject] = {}
        for record in self._at(partition, sorted({said.place for said in lying.values() if said.place is not None})):
            item = _entry(record, tenant, keyring)
            if item is not None and item.object_id in lying and lying[item.object_id].version == item.version:
                found[item.object_id] = item
        if search and len(found) < len(lying):
            for item in self._entries(tenant, partition, keyring):
                if item.object_id in lying and lying[item.object_id].version == item.version:
                    found[item.object_id] = item
        return list(found.values())

    def _at(self, partition: int, places: Sequence[int]) -> Iterator[Record]:
        """Yield the accepted records at ascending offsets, as far as they are still there."""
        number = 0
        while number < len(places):
            for record in self._reader().read(partition, places[number]):
                while number < len(places) and places[number] < record.offset:  # deleted by its age
                    number += 1
                if number < len(places) and places[number] == record.offset:
                    yield record
                    number += 1
                if number == len(places) or places[number] - record.offset > NEAR:
                    break
            else:
                return

    def _entries(self, tenant: str, partition: int, keyring: Keyring) -> Iterator[StoredObject]:
        """Yield whatever was accepted for a tenant, as far as the log goes back."""
        for record in self._reader().read(partition, 0):
            if record.key == tenant.encode() and (item := _entry(record, tenant, keyring)) is not None:
                yield item


def _entry(record: Record, tenant: str, keyring: Keyring) -> StoredObject | None:
    """Return the entry that an accepted record asks for, once it verifies; None for a withdrawal, or what is none."""
    try:
        landing = landing_from_bytes(keyring, tenant, record.value or b"")
        return from_accepted(landing) if isinstance(landing, Accepted) else None
    except (SealError, MalformedEvent):
        return None
