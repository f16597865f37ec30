"""The readers' freshness index: what memory.store.v1 says is current, read from the log and not from the store.

An old version of an entry is validly sealed for ever. Whoever can write to the store could put it back; only a record
outside the store tells that it is old, or withdrawn. **Staleness bound: none at the moment of asking.** Each question
first reads the tenant's partition to the end that the broker reports then, and fails where that takes longer than
its time limit; so every landing or withdrawal acknowledged before the question counts.

What has ended (expired, withdrawn) takes no lasting room, and one tenant's entries take none of another's
(:mod:`memsluice.recall.landed`).
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from memsluice.clock import Clock, wall_ms
from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import StoreRecord, stored_of_any, stored_of_record
from memsluice.events.models import Zone
from memsluice.events.partition import partition_of
from memsluice.events.records import Record
from memsluice.readers.base import ReadToItsEnd
from memsluice.recall.joined import Joined
from memsluice.recall.landed import OBJECTS_PER_TENANT_MAX, Landed, Lying
from memsluice.recall.reader import Current

verified = stored_of_any
"""Returns a store record once its seal holds under the key of the tenant it names; None where it does not."""


class FreshnessIndex:
    """Versions of landed objects by id (:class:`~memsluice.recall.missing.Freshness`). Safe for several threads.

    The seal of every record is verified, so the keyring must hold the gate's HMAC keys: the index belongs into the
    recall service, not into an agent's process. Records that do not verify are left out, and counted. ``now_ms`` is
    the clock (Unix ms) by which entries expire; ``objects_max`` bounds the live objects of each tenant.

    Questions of one partition that come together share a read of it, which began after the last of them came. Those
    of other partitions do not wait for it, where ``log`` may be read by several threads, a partition each.
    """

    def __init__(
        self,
        log: ReadToItsEnd,
        keys: Callable[[], Keyring],
        partitions: int,
        now_ms: Clock = wall_ms,
        objects_max: int = OBJECTS_PER_TENANT_MAX,
    ) -> None:
        self._log = log
        self._keys = keys
        self._now_ms = now_ms
        self._objects_max = objects_max
        self._next = [0] * partitions
        self._reads = [Joined(partial(self._read_on, partition)) for partition in range(partitions)]
        self._tenants: dict[str, Landed] = {}
        self._lock = threading.Lock()
        self.unverified = 0

    def current(self, tenant: str, object_ids: Sequence[str]) -> Mapping[str, Current]:
        """Return what the log, read to its end, says of these objects of the tenant; what ended counts as withdrawn.

        Raises BrokerUnavailable, and StoreError where this tenant has more live objects than the index holds.
        """
        self._reads[partition_of(tenant, len(self._reads))].run()
        return self.known(tenant, object_ids)

    def known(self, tenant: str, object_ids: Sequence[str]) -> Mapping[str, Current]:
        """Return as :meth:`current` what was known when the log was read last. Raises StoreError as it does."""
        with self._lock:
            landed = self._tenants.get(tenant)
            if landed is None:
                return {}
            landed.check()
            landed.expire(self._now_ms())
            answers = ((object_id, landed.current(object_id)) for object_id in object_ids)
            return {object_id: found for object_id, found in answers if found is not None}

    def lying(self, tenant: str, zone: Zone, scopes: Iterable[str]) -> Lying:
        """Return what lies in scopes of the tenant, by their tags, as of the last :meth:`current` of it."""
        with self._lock:
            landed = self._tenants.get(tenant)
            return Lying(0, frozenset()) if landed is None else landed.lying(zone, scopes)

    def among(self, tenant: str, zone: Zone, scopes: Iterable[str], object_ids: Iterable[str]) -> list[str]:
        """Return those of the objects that lie in scopes of the tenant, as of the last :meth:`current` of it."""
        with self._lock:
            landed = self._tenants.get(tenant)
            return [] if landed is None else landed.among(zone, scopes, object_ids)

    def _read_on(self, partition: int) -> None:
        """Read a partition to its end. One thread at a time does so, and no lock is held while the broker is asked."""
        end = self._log.end(partition)
        if self._next[partition] >= end:
            return
        keyring, now_ms = self._keys(), self._now_ms()
        for record in self._log.read(partition, self._next[partition]):
            stored = None if record.value is None else stored_of_record(keyring, record)
            with self._lock:
                self._apply(record, stored, now_ms)
            self._next[partition] = record.offset + 1
        # The last of it is the mark of a transaction, no record: who waited for one would wait at each question.
        self._next[partition] = max(self._next[partition], end)

    def _apply(self, record: Record, stored: StoreRecord | None, now_ms: int) -> None:
        if record.value is None:  # a tombstone: the tenant was erased, and the record no longer says which
            object_id = (record.key or b"").decode("utf-8", "replace")
            for landed in self._tenants.values():
                landed.erase(object_id)
            return
        if stored is None:
            self.unverified += 1
            return
        if stored.tenant not in self._tenants:
            self._tenants[stored.tenant] = Landed(stored.tenant, self._objects_max)
        self._tenants[stored.tenant].put(stored, now_ms)
