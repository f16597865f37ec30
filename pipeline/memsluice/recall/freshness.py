"""The readers' freshness index: what memory.store.v1 says is current, read from the log and not from the store.

An old version of an entry is validly sealed for ever. Whoever can write to the store could put it back; only a record
outside the store tells that it is old, or withdrawn. **Staleness bound: none at the moment of asking.** Each question
first reads the tenant's partition to the end that the broker reports then, and fails where that takes longer than
its time limit; so every landing or withdrawal acknowledged before the question counts.
"""

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, Protocol

import orjson

from memsluice.envelope import dsse
from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import Stored, stored_from_bytes
from memsluice.errors import InputError, SealError, StoreError
from memsluice.events.partition import partition_of
from memsluice.recall.reader import Current

OBJECTS_MAX = 2_000_000
"""Objects that an index holds (some 300 bytes each); beyond it, answers are refused rather than guessed."""


class LogRecord(NamedTuple):
    """A record of memory.store.v1 as it was read."""

    offset: int
    key: bytes | None
    value: bytes | None


class StoreLog(Protocol):
    """Where memory.store.v1 is read from: the broker, or the embedded runtime's log."""

    def read(self, partition: int, from_offset: int) -> Iterable[LogRecord]:
        """Yield what the partition holds from an offset to its present end. Raises StoreUnavailable."""


class FreshnessIndex:
    """Versions of landed objects by id (:class:`~memsluice.recall.recaller.Freshness`). Safe for several threads.

    The seal of every record is verified, so the keyring must hold the gate's HMAC keys: the index belongs into the
    recall service, not into an agent's process. Records that do not verify are left out, and counted.
    """

    def __init__(self, log: StoreLog, keys: Callable[[], Keyring], partitions: int) -> None:
        self._log = log
        self._keys = keys
        self._partitions = partitions
        self._next: dict[int, int] = {}
        self._objects: dict[str, Current] = {}
        self._lock = threading.Lock()
        self.unverified = 0

    def current(self, tenant: str, object_ids: Sequence[str]) -> Mapping[str, Current]:
        """Return what the log, read to its end, says of these objects. Raises StoreUnavailable, StoreError."""
        with self._lock:
            self._catch_up(partition_of(tenant, self._partitions))
            return {found: self._objects[found] for found in object_ids if found in self._objects}

    def _catch_up(self, partition: int) -> None:
        keyring = self._keys()
        for record in self._log.read(partition, self._next.get(partition, 0)):
            self._apply(record, keyring)
            self._next[partition] = record.offset + 1

    def _apply(self, record: LogRecord, keyring: Keyring) -> None:
        object_id = (record.key or b"").decode("utf-8", "replace")
        if record.value is None:
            self._objects.pop(object_id, None)  # a tombstone: the tenant was erased
            return
        stored = verified(keyring, record.value)
        if stored is None or stored.object_id != object_id:
            self.unverified += 1
            return
        known = self._objects.get(object_id)
        if known is not None and known.version > stored.version:
            return
        if known is None and len(self._objects) >= OBJECTS_MAX:
            raise StoreError(f"the freshness index holds {OBJECTS_MAX} objects, which is its limit")
        self._objects[object_id] = Current(stored.version, stored.withdrawn)


def verified(keyring: Keyring, value: bytes) -> Stored | None:
    """Return a store record once its seal holds under the key of the tenant it names; None where it does not."""
    try:
        claimed = orjson.loads(dsse.parse(orjson.loads(value)).payload)
        return stored_from_bytes(keyring, str(claimed["tenant"]), value)
    except (orjson.JSONDecodeError, InputError, SealError, KeyError, TypeError):
        return None
