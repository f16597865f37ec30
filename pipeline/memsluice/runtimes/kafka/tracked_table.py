"""State rows: a Faust table that is written through the changelog only, and tells when that is confirmed.

Faust writes the local store at once and the changelog some time. After a crash the two differ, and a re-delivered
event that finds its row locally never sends it again: the changelog lacks it for good. Here a change goes to the
changelog and into an overlay that reads see at once; the local store gets it, together with the changelog's offset in
one atomic write, when the broker has confirmed it. So the local store is a prefix of the changelog at every moment.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import faust
import rocksdict

from memsluice.errors import StateError
from memsluice.events.records import RowChange

KEY_BYTES_MAX = 1024
OFFSET_KEY = b"__faust\0offset__"
"""Where Faust's store keeps the changelog offset (faust/stores/rocksdb.py)."""

_Overlay = dict[bytes, tuple[int, bytes | None]]


@dataclass(frozen=True, slots=True)
class TrackedWrite:
    """One event's changes on their way: ``futures`` resolve when the changelog has them."""

    partition: int
    rows: tuple[tuple[int, RowChange], ...]
    futures: tuple["asyncio.Future[Any]", ...]


class TrackedTable(faust.Table):  # type: ignore[misc]
    """Table of raw bytes rows, one RocksDB a partition. Changed by :meth:`write` alone."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._overlays: dict[int, _Overlay] = {}
        self._version = 0

    def send_changelog(self, *arguments: Any, **options: Any) -> Any:
        """Refuse Faust's own way of writing: its future would be lost."""
        raise StateError("state rows are changed by what a stage returns, not through Faust's table")

    def rows(self, partition: int) -> "PartitionRows":
        """Return read access to one partition's rows."""
        return PartitionRows(self, partition)

    async def write(self, partition: int, changes: Sequence[RowChange]) -> TrackedWrite:
        """Append ``changes`` to the changelog in order and make them visible to reads.

        Raises StateError for a key that is not allowed, KafkaError when a record can't be queued.
        """
        for change in changes:
            if not 0 < len(change.key) <= KEY_BYTES_MAX or change.key == OFFSET_KEY:
                raise StateError(f"a row's key must have 1 to {KEY_BYTES_MAX} bytes, has {len(change.key)}")
        topic = self.changelog_topic.get_topic_name()
        overlay = self._overlays.setdefault(partition, {})
        append = self.app.producer.append
        rows, futures = [], []
        for change in changes:
            futures.append(await append(topic, partition, change.key, change.value))
            self._version += 1
            overlay[change.key] = (self._version, change.value)
            rows.append((self._version, change))
        return TrackedWrite(partition, tuple(rows), tuple(futures))

    def settle(self, write: TrackedWrite) -> None:
        """Store a confirmed write with its changelog offset, atomically. Writes of a partition settle in order."""
        if not write.rows:
            return
        batch = rocksdict.WriteBatch(raw_mode=True)
        overlay = self._overlays.get(write.partition, {})
        for version, change in write.rows:
            if change.value is None:
                batch.delete(change.key)
            else:
                batch.put(change.key, change.value)
            if (entry := overlay.get(change.key)) is not None and entry[0] == version:
                del overlay[change.key]
        batch.put(OFFSET_KEY, str(write.futures[-1].result().offset).encode())
        self.database(write.partition).write(batch)

    def discard(self) -> None:
        """Drop every change that is not confirmed: its partition was revoked, and is recovered from the changelog."""
        self._overlays.clear()

    def overlay(self, partition: int) -> _Overlay:
        """Return the unconfirmed changes of a partition: version and value of each key."""
        return self._overlays.get(partition, {})

    def database(self, partition: int) -> Any:
        """Return the partition's RocksDB. Never keep it: Faust closes it on revocation by dropping its reference."""
        return self.data._db_for_partition(partition)


class PartitionRows:
    """Rows of one partition: unconfirmed changes over the local store."""

    __slots__ = ("_partition", "_table")

    def __init__(self, table: TrackedTable, partition: int) -> None:
        self._table = table
        self._partition = partition

    def get(self, key: bytes) -> bytes | None:
        """Return the row's value, or None where there is none."""
        entry = self._table.overlay(self._partition).get(key)
        if entry is not None:
            return entry[1]
        value: bytes | None = self._table.database(self._partition).get(key)
        return value

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield at most ``limit`` rows whose key starts with ``prefix`` and lies beyond ``after``, in key order."""
        overlay = self._table.overlay(self._partition)
        start = prefix if after is None else max(prefix, after + b"\0")
        fresh = sorted(key for key in overlay if key.startswith(prefix) and key >= start)
        stored = self._stored(prefix, start)
        key, value = next(stored, (None, b""))
        left = limit
        while left > 0 and (fresh or key is not None):
            if fresh and (key is None or fresh[0] <= key):
                head = fresh.pop(0)
                if head == key:
                    key, value = next(stored, (None, b""))
                new = overlay[head][1] if head in overlay else None
                if new is None:
                    continue
                yield head, new
            else:
                assert key is not None
                yield key, value
                key, value = next(stored, (None, b""))
            left -= 1

    def _stored(self, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        cursor = self._table.database(self._partition).iter()
        cursor.seek(start)
        while cursor.valid():
            key = cursor.key()
            if not key.startswith(prefix):
                return
            if key != OFFSET_KEY:
                yield key, cursor.value()
            cursor.next()
