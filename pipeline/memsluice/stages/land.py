"""*land*: verify what was accepted once more, write it to the vector store, and say that it is there.

It waits on the network, so it works in batches. What an accepted record can come to:

* landed, and read back as it was written: a record of memory.store.v1 with its version;
* withdrawn by a command: what lies there is removed, and the store record says so;
* expired before it arrived: not written, what it replaces is removed, and the store record says withdrawn;
* older than what memory.store.v1 says of the object, its withdrawal included: nothing at all
  (:mod:`memsluice.stores.log_index`), so that no lower version is ever published after a higher one;
* older than another one of its batch: its store record, as if they had come one by one. The batch may be committed in
  parts, and what replaces it may be refused when it comes again;
* older than what the store has, and the log has not: it is overwritten. That was planted, or left behind by a batch
  that was given up, and comes again;
* a seal that does not hold, or an object that the store refuses or does not give back as it was written: a dead
  letter, with the record's own bytes.

A store that is down is waited for: the same batch again, with growing pauses, until it is written or the worker is
told to stop. Nothing is skipped, and nothing is committed meanwhile. A tenant that the store keeps refusing while it
takes others' writes is put off (:mod:`memsluice.stages.deferring`).
"""

import threading
from bisect import bisect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from time import monotonic

import orjson

from memsluice.envelope.keys import Keyring, Purpose
from memsluice.envelope.records import StoreRecord, landing_from_bytes, stored_to_bytes
from memsluice.envelope.seals import Admission, admission_verify_inside
from memsluice.errors import InputError, MalformedEvent, SealError, StoreError, StoreUnavailable, WrongPartition
from memsluice.events.headers import EVENT_ID, passed_on
from memsluice.events.ids import scope_tag
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.events.records import Output, Record
from memsluice.log import get_logger
from memsluice.stages.dead_letter import dead_letters
from memsluice.stages.deferring import Deferring
from memsluice.stages.patience import Patience
from memsluice.stages.settling import Settling, names
from memsluice.stages.store_sweep import UNVERIFIED, StoreSweep, SweepThread
from memsluice.stores.base import (
    Partition,
    StoreAnswer,
    StoredObject,
    UpsertResult,
    VectorStore,
    expected_id,
    from_accepted,
    over,
    owner_of,
    withdrawn,
)
from memsluice.stores.compare import difference
from memsluice.stores.log_index import LogIndex
from memsluice.topics.names import STORE

__all__ = ["REFUSED_REASON", "SEAL_REASON", "LandStage"]

SEAL_REASON = "seal"
REFUSED_REASON = "store_refused"

CANARIES = 8
"""Tenants that are asked for a write to see whether the store takes any, and objects of each zone of theirs that are
looked at for one to write."""
LOOKED_MAX = 64
"""Tenants that are looked at for that, at once: of one that holds nothing intact nothing can be written. The next look
goes on behind them."""

_LOG = get_logger(__name__)
_Landing = tuple[StoreRecord, StoredObject]
"""What the store record will say, and the object; one that is withdrawn is an expired object without content."""
Counted = Callable[[str, int], None]
"""Is told by name how often something happened that an operator should hear of."""


def _ignore(_name: str, _amount: int) -> None:
    return None


class LandStage:
    """The stage object. ``keys`` is asked anew for each batch; ``now_ms`` is Unix milliseconds.

    ``log`` is what memory.store.v1 says of the objects; it is read to its end when a partition comes (:meth:`owns`),
    and follows what this stage publishes. Without it, only what this object itself landed is a floor.

    ``sweep`` mends the store between batches, once :meth:`owns` said where.

    ``wait(seconds)`` pauses between attempts and returns True when the batch in hand is to be given up; by default it
    waits for :meth:`give_up`. Made for one batch at a time.
    """

    def __init__(
        self,
        keys: Callable[[], Keyring],
        store: VectorStore,
        partitions: int,
        now_ms: Callable[[], int],
        *,
        log: LogIndex | None = None,
        sweep: StoreSweep | None = None,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._keys = keys
        self._store = store
        self._partitions = partitions
        self._now_ms = now_ms
        self._log = log if log is not None else LogIndex(lambda _ended: _NOTHING, keys)
        self._log.forged = partial(self._count, UNVERIFIED)
        self._read: set[int] = set()
        self._reading = threading.Lock()
        self._patience = Patience(wait)
        self._counted: Counted = _ignore
        self._busy = threading.Lock()
        self._owned: frozenset[int] | None = None
        self._deferring = Deferring(self._takes_others, self._lands_for, now_ms)
        self._canary = ""
        """The tenant that was looked at last."""
        self._sweep = None if sweep is None else SweepThread(sweep, self._busy, self._count)

    def tell(self, counted: Counted) -> None:
        """Tell ``counted`` from now on, by name, what an operator should hear of."""
        self._counted = counted

    def _count(self, name: str, amount: int) -> None:
        self._counted(name, amount)

    def owns(self, partitions: Collection[int]) -> None:
        """Read the store log of each partition to its end before its next batch: another worker may have written it.

        The store is swept for these partitions from now on, and for no other.
        """
        with self._reading:
            self._read.clear()
            self._owned = frozenset(partitions)
            self._log.forget_said()
            if partitions:
                self._patience.renew()
        if self._sweep is not None:
            self._sweep.owns(partitions)

    def forget(self, partition: int) -> None:
        """Know nothing of what was said of a partition and not committed: it was parked, and its records come again.
        Waits for the batch in hand, which may have some of them."""
        with self._busy:
            self._log.forget_said(partition)

    def give_up(self) -> None:
        """End a wait for the store at once: the batch in hand raises StoreUnavailable and is not committed.

        So does any other that comes before :meth:`owns` says again what is this worker's; nothing is swept until then.
        """
        self._patience.end()
        if self._sweep is not None:
            self._sweep.owns(())
        self._store.close()

    def refused_s(self) -> float:
        """Return for how many seconds the store, or the broker that has its log, has taken and given nothing."""
        return self._patience.refused_s()

    def unswept_s(self) -> float:
        """Return for how many seconds the sweep has done nothing, though it has partitions to sweep."""
        return 0.0 if self._sweep is None else self._sweep.idle_s()

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Return each record's outputs. Raises StoreUnavailable after :meth:`give_up`, ConfigError without keys."""
        term = self._patience.term()
        with self._busy:
            try:
                self._patience.begin(term)
                return self._process(batch)
            finally:
                if self._sweep is not None:
                    self._sweep.last_batch_s = monotonic()

    def _process(self, batch: Sequence[Record]) -> list[list[Output]]:
        keyring, now_ms = self._keys(), self._now_ms()
        drafts = [self._verified(record, keyring, now_ms) for record in batch]
        items = {number: draft[1] for number, draft in enumerate(drafts) if not isinstance(draft, InputError)}
        self._catch_up({batch[number].partition for number in items})
        floors = self._floors, self._floors_now
        settling = Settling(self._store, keyring, self._patience, *floors, self._deferring, self._count)
        outcomes = settling.settle(items, now_ms)
        older = sum(outcome.outcome is StoreAnswer.OLDER for outcome in outcomes.values())
        if older:  # re-deliveries, as a rule
            _LOG.info("the log, the store or the batch has newer versions", records=older)
        kid = keyring.signing(Purpose.SEAL, now_ms).kid
        results, said = [], list[tuple[int, StoreRecord]]()
        for number, (record, draft) in enumerate(zip(batch, drafts, strict=True)):
            if isinstance(draft, InputError):
                results.append(dead_letters(record, draft))
                continue
            results.append(_outputs(record, draft[0], outcomes[number], keyring, kid))
            if outcomes[number].outcome is StoreAnswer.LANDED:
                said.append((record.partition, draft[0]))
        self._say(said)
        return results

    def _say(self, said: Iterable[tuple[int, StoreRecord]]) -> None:
        """Take in what the log will say; not of a batch of a term that is over, which will not be committed."""
        with self._reading:  # so that :meth:`owns` forgets all of it, or none of it is said
            if self._patience.is_over():
                raise StoreUnavailable("the partition was given to somebody else before what was landed could be said")
            for partition, record in said:
                self._log.say(partition, [record])

    def _catch_up(self, partitions: Iterable[int]) -> None:
        """Read the store log of the partitions that were assigned since they were read last."""
        for partition in sorted(partitions):
            with self._reading:
                if partition in self._read:
                    continue
                self._read.add(partition)
            try:
                self._patience.until_answered(partial(self._log.catch_up, partition, self._patience.ended))
            except BaseException:
                with self._reading:
                    self._read.discard(partition)
                raise

    def _takes_others(self, tenants: Collection[str]) -> bool:
        """Write an object of another tenant's once more, as it lies there: whether the store takes writes at all.

        Of a tenant that this worker lands for, and as the log says: nothing is turned back by it.
        """
        others = sorted(one for one in self._store.tenants() if one not in tenants and self._lands_for(one))
        begin, refused = bisect(others, self._canary), 0
        for tenant in (others[begin:] + others[:begin])[:LOOKED_MAX]:
            if refused == CANARIES or self._patience.ended():
                return False
            self._canary = tenant
            try:
                took = self._writes_again(tenant)
            except StoreError as error:
                _LOG.info("the store refuses another tenant, too", tenant=tenant, why=str(error))
                took = False
            if took:
                return True
            refused += took is False
        return False

    def _lands_for(self, tenant: str) -> bool:
        return self._owned is None or partition_of(tenant, self._partitions) in self._owned

    def _writes_again(self, tenant: str) -> bool | None:
        """Return whether the store took an object of the tenant's; None where it has none that may be written."""
        keyring, now_ms, partition = self._keys(), self._now_ms(), partition_of(tenant, self._partitions)
        self._log.catch_up(partition, self._patience.ended)
        for zone in Zone:
            for item in self._first(tenant, zone):
                known = self._log.known(tenant, zone, [item.object_id]).get(item.object_id)
                lost = bool(self._log.unreadable(partition, [item.object_id]))
                if difference(item, known, keyring, now_ms, self._log.highest(partition), unreadable=lost) is None:
                    model = admission_verify_inside(keyring, tenant, orjson.loads(item.admission)).model
                    (result,) = self._store.upsert([replace(item, model=model)])
                    return result.outcome is StoreAnswer.LANDED
        return None

    def _first(self, tenant: str, zone: Zone) -> Iterator[StoredObject]:
        """Yield a tenant's first objects, each asked for by itself: planted ones may fit into no answer together."""
        after = ""
        for _ in range(CANARIES):
            if not (found := self._store.page(tenant, zone, after, 1)):
                return
            yield found[0]
            after = found[0].object_id

    def _floors(self, items: Iterable[StoredObject]) -> dict[tuple[Partition, str], int]:
        """Return the versions that the log has of these objects."""
        return {
            (partition, object_id): known.version
            for partition, ids in names(items).items()
            for object_id, known in self._log.known(*partition, ids).items()
        }

    def _floors_now(self, items: Iterable[StoredObject]) -> dict[tuple[Partition, str], int]:
        """Return the versions that the log has by now: another worker may own the partition, and write it."""
        wanted = list(items)
        for partition in sorted({partition_of(item.tenant, self._partitions) for item in wanted}):
            self._log.catch_up(partition, self._patience.ended)
        return self._floors(wanted)

    def _verified(self, record: Record, keyring: Keyring, now_ms: int) -> _Landing | InputError:
        """Return what to land or to withdraw, or why the record is a dead letter."""
        try:
            tenant = (record.key or b"").decode()
            if record.value is None:
                raise SealError("accepted record without a value")
            landing = landing_from_bytes(keyring, tenant, record.value)
            if partition_of(tenant, self._partitions) != record.partition:
                return WrongPartition(f"tenant belongs on {partition_of(tenant, self._partitions)}")
            if isinstance(landing, StoreRecord):
                return landing, withdrawn(landing)
            if expected_id(landing.admission) != landing.admission.object_id:
                raise SealError("object id is not the one of what was admitted")
            return _stored(landing.admission, record.offset, now_ms), from_accepted(landing)
        except (SealError, MalformedEvent, UnicodeDecodeError) as error:
            return InputError(str(error), code=SEAL_REASON)


class _Nothing:
    def read(self, partition: int, from_offset: int = 0) -> Iterator[Record]:
        """Yield nothing: there is no log."""
        return iter(())


_NOTHING = _Nothing()


def _stored(admission: Admission, place: int, now_ms: int) -> StoreRecord:
    """Return what the store record says of an entry that landed, or arrived too late to."""
    stored = StoreRecord(
        object_id=admission.object_id,
        tenant=admission.tenant,
        version=admission.version,
        zone=admission.zone,
        event_id=admission.event_id,
        content_digest=admission.content_digest,
        expires_ms=admission.expires_ms,
        withdrawn=over(admission.expires_ms, now_ms),
    )
    if stored.withdrawn:
        return stored
    scope = scope_tag(admission.tenant, admission.visibility, owner_of(admission), admission.namespace)
    return replace(stored, scope=scope, place=place)


def _outputs(record: Record, stored: StoreRecord, result: UpsertResult, keyring: Keyring, kid: str) -> list[Output]:
    if result.outcome is StoreAnswer.REFUSED:
        return dead_letters(record, InputError(result.detail, code=REFUSED_REASON))
    if result.outcome is StoreAnswer.OLDER:
        return []
    headers = (*passed_on(record.headers), (EVENT_ID, stored.event_id.encode()))
    value = stored_to_bytes(keyring, kid, stored)
    return [Output(STORE, record.partition, stored.object_id.encode(), value, headers)]
