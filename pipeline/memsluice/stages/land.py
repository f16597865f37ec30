"""*land*: verify what was accepted once more, write it to the vector store, and say that it is there.

Stateless and waiting on the network, so it works in batches. What an accepted record can come to:

* landed: a record of memory.store.v1 with its version;
* withdrawn by a command: what lies there is removed, and the store record says so;
* expired before it arrived: not written, what it replaces is removed, and the store record says withdrawn;
* older than what the store has, and the gate admitted that: nothing, the newer one's record is or will be there.
  A higher version that the gate never admitted was planted: it is overwritten;
* a seal that does not hold, or an object that the store refuses: a dead letter, with the record's own bytes.

A store that is down is waited for: the same batch again, with growing pauses, until it is written or the worker is
told to stop. Nothing is skipped, and nothing is committed meanwhile.
"""

import threading
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import orjson

from memsluice.envelope.keys import Keyring, Purpose
from memsluice.envelope.records import StoreRecord, landing_from_bytes, stored_to_bytes
from memsluice.envelope.seals import Admission, admission_verify_inside
from memsluice.errors import InputError, MalformedEvent, SealError, StoreError, StoreUnavailable, WrongPartition
from memsluice.events.headers import EVENT_ID, passed_on
from memsluice.events.partition import partition_of
from memsluice.events.records import Output, Record
from memsluice.log import get_logger
from memsluice.stages.dead_letter import dead_letters
from memsluice.stores.base import (
    UPSERT_MAX,
    Partition,
    StoreAnswer,
    StoredObject,
    UpsertResult,
    VectorStore,
    expected_id,
    from_accepted,
    newest,
    withdrawn,
)
from memsluice.topics.names import STORE

SEAL_REASON = "seal"
REFUSED_REASON = "store_refused"
RETRY_FIRST_S = 0.4
RETRY_MAX_S = 5.0
WARN_EVERY = 10
"""A store that stays down is reported at the first attempt and at every tenth."""

_LOG = get_logger(__name__)
_PLANTED = "the store held higher versions that the gate never admitted; they are overwritten"
_T = TypeVar("_T")
_Landing = tuple[StoreRecord, StoredObject]
"""What the store record will say, and the object; one that is withdrawn is an expired object without content."""


class LandStage:
    """The stage object. ``keys`` is asked anew for each batch; ``now_ms`` is Unix milliseconds.

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
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._keys = keys
        self._store = store
        self._partitions = partitions
        self._now_ms = now_ms
        self._given_up = threading.Event()
        self._wait = wait

    def give_up(self) -> None:
        """End a wait for the store at once: the batch in hand raises StoreUnavailable and is not committed."""
        self._given_up.set()
        self._store.close()

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Return each record's outputs. Raises StoreUnavailable after :meth:`give_up`, ConfigError without keys."""
        self._given_up = threading.Event()
        keyring, now_ms = self._keys(), self._now_ms()
        drafts = [self._verified(record, keyring, now_ms) for record in batch]
        outcomes = self._settle(drafts, keyring, now_ms)
        older = sum(outcome.outcome is StoreAnswer.OLDER for outcome in outcomes.values())
        if older:  # re-deliveries, as a rule
            _LOG.info("the store or the batch has newer versions", records=older)
        kid = keyring.signing(Purpose.SEAL, now_ms).kid
        results = []
        for position, (record, draft) in enumerate(zip(batch, drafts, strict=True)):
            if isinstance(draft, InputError):
                results.append(dead_letters(record, draft))
            else:
                results.append(_outputs(record, draft[0], outcomes[position], keyring, kid))
        return results

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
            return _stored(landing.admission, now_ms), from_accepted(landing)
        except (SealError, MalformedEvent, UnicodeDecodeError) as error:
            return InputError(str(error), code=SEAL_REASON)

    def _settle(
        self, drafts: Sequence[_Landing | InputError], keyring: Keyring, now_ms: int
    ) -> dict[int, UpsertResult]:
        """Bring the store to what the batch says; return the outcome of each draft that is one, by position."""
        items = {position: draft[1] for position, draft in enumerate(drafts) if not isinstance(draft, InputError)}
        outcomes = {position: UpsertResult(item.object_id, StoreAnswer.OLDER) for position, item in items.items()}
        latest = newest(items.items())
        live = [position for position in latest if not _expired(items[position], now_ms)]
        for start in range(0, len(live), UPSERT_MAX):
            part = live[start : start + UPSERT_MAX]
            self._upsert(items, part, outcomes)
            older = [position for position in part if outcomes[position].outcome is StoreAnswer.OLDER]
            if planted := self._planted(items, older, keyring):
                named = items[planted[0]]
                _LOG.warning(_PLANTED, objects=len(planted), tenant=named.tenant, object_id=named.object_id)
                self._upsert(items, planted, outcomes, overwrite=True)
        for position in latest:
            if position not in live and self._until_answered(partial(self._withdraw, items[position], keyring)):
                outcomes[position] = UpsertResult(items[position].object_id, StoreAnswer.LANDED)
        return outcomes

    def _upsert(
        self,
        items: dict[int, StoredObject],
        positions: list[int],
        outcomes: dict[int, UpsertResult],
        *,
        overwrite: bool = False,
    ) -> None:
        """Write objects, again and again those that the store could not take yet."""
        waiting = positions

        def attempt() -> None:
            nonlocal waiting
            results = self._store.upsert([items[position] for position in waiting], overwrite=overwrite)
            outcomes.update(zip(waiting, results, strict=True))
            failed = [position for position in waiting if outcomes[position].outcome is StoreAnswer.UNAVAILABLE]
            if failed:
                waiting = failed
                raise StoreUnavailable(f"{len(failed)} objects: {outcomes[failed[0]].detail}")

        self._until_answered(attempt)

    def _planted(self, items: dict[int, StoredObject], older: Sequence[int], keyring: Keyring) -> list[int]:
        """Return which of the items that the store says it has newer versions of it has none of.

        Asked only of those (re-deliveries, as a rule), so that landing pays nothing for it.
        """
        ids: dict[Partition, list[str]] = defaultdict(list)
        for position in older:
            ids[items[position].partition].append(items[position].object_id)
        held: dict[Partition, dict[str, str]] = {}
        for partition, wanted in ids.items():
            held[partition] = self._until_answered(partial(self._store.admissions, *partition, wanted))
        return [n for n in older if not _newer(keyring, items[n], held[items[n].partition].get(items[n].object_id))]

    def _withdraw(self, item: StoredObject, keyring: Keyring) -> bool:
        """Remove what was withdrawn, or what an expired entry replaces; False where the store has something newer."""
        held = self._store.admissions(item.tenant, item.zone, [item.object_id])
        if _newer(keyring, item, held.get(item.object_id)):
            return False
        if held:
            self._store.delete(item.tenant, item.zone, [item.object_id])
        return True

    def _until_answered(self, action: Callable[[], _T]) -> _T:
        """Return the action's result, repeating it while the store does not answer or lets nobody in."""
        pause_s, attempts = RETRY_FIRST_S, 0
        while True:
            try:
                return action()
            except StoreError as error:
                attempts += 1
                if attempts % WARN_EVERY == 1:
                    _LOG.warning("the store does not take the batch, trying again", attempts=attempts, why=str(error))
                if (self._wait or self._given_up.wait)(pause_s):
                    raise StoreUnavailable(f"given up while waiting for the store: {error}") from error
            pause_s = min(2 * pause_s, RETRY_MAX_S)


def _newer(keyring: Keyring, item: StoredObject, held: str | None) -> bool:
    """Whether the admission that lies in the store is the gate's own, of this very object, and of a higher version.

    ``held`` is None where the store has no such object. What version the object itself states is not asked: whoever
    can write to the store can state any.
    """
    try:
        admission = admission_verify_inside(keyring, item.tenant, orjson.loads(held or ""))
    except (SealError, orjson.JSONDecodeError):
        return False
    mine = item.object_id == admission.object_id == expected_id(admission) and admission.zone is item.zone
    return mine and admission.version > item.version


def _expired(item: StoredObject, now_ms: int) -> bool:
    return item.expires_ms is not None and item.expires_ms <= now_ms


def _stored(admission: Admission, now_ms: int) -> StoreRecord:
    """Return what the store record says of an entry that landed, or arrived too late to."""
    return StoreRecord(
        object_id=admission.object_id,
        tenant=admission.tenant,
        version=admission.version,
        zone=admission.zone,
        event_id=admission.event_id,
        content_digest=admission.content_digest,
        expires_ms=admission.expires_ms,
        withdrawn=admission.expires_ms is not None and admission.expires_ms <= now_ms,
    )


def _outputs(record: Record, stored: StoreRecord, result: UpsertResult, keyring: Keyring, kid: str) -> list[Output]:
    if result.outcome is StoreAnswer.REFUSED:
        return dead_letters(record, InputError(result.detail, code=REFUSED_REASON))
    if result.outcome is StoreAnswer.OLDER:
        return []
    headers = (*passed_on(record.headers), (EVENT_ID, stored.event_id.encode()))
    value = stored_to_bytes(keyring, kid, stored)
    return [Output(STORE, record.partition, stored.object_id.encode(), value, headers)]
