"""State rows of the partitions that a worker owns: one RocksDB each, a prefix of the changelog at every moment.

A change goes to the changelog and into an overlay, which reads see at once. The local store gets it, together with the
changelog's offset in one atomic write, when the transaction that holds it is committed. So whatever was sent and never
committed is in no store, and :mod:`memsluice.runtimes.kafka.restore` goes on exactly where the store ends.
"""

import contextlib
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import rocksdict

from memsluice.clock import Clock, wall_ms
from memsluice.errors import RowsDamaged, StateError
from memsluice.events.records import RowChange
from memsluice.log import get_logger
from memsluice.runtimes.kafka.spec import MIB

LOG = get_logger(__name__)
KEY_BYTES_MAX: Final = 1024
OFFSET_KEY: Final = b"__faust\0offset__"
"""Row of a partition's own store that has the changelog offset of the last change in it. The name is Faust's: a store
that Faust wrote has it too."""
AT_END_KEY: Final = b"__memsluice\0at-end__"
"""Row that has the time at which the store was last known to be at the log's end (Unix ms)."""
OWN_KEYS: Final = (AT_END_KEY, OFFSET_KEY)
EMPTIED_AT_ONCE: Final = 10_000
CACHE_BYTES, WRITE_BUFFER_BYTES, FILE_BYTES, OPEN_FILES_MAX, BLOOM_BITS = 8 * MIB, 8 * MIB, 16 * MIB, 1_000, 10

DAMAGED: Final = "DAMAGED"
"""A file in a store's folder that says what was found out about it."""
DAMAGE: Final = ("corruption", "no such file", "input/output error")
"""What RocksDB says of a store that is damaged. A full disk, or a lock that another process has, is no damage."""
WORDS_CHARS_MAX: Final = 200

_Overlay = dict[bytes, tuple[int, bytes | None]]


@dataclass(frozen=True, slots=True)
class PendingRows:
    """One event's changes that are not committed yet, each with the number of its write."""

    partition: int
    rows: tuple[tuple[int, RowChange], ...]

    @property
    def changes(self) -> list[RowChange]:
        """The changes, in their order."""
        return [change for _, change in self.rows]


class StateRows:
    """The rows below one folder, ``state-<partition>.db`` a partition. Not safe for several threads."""

    def __init__(self, folder: Path, now_ms: Clock = wall_ms) -> None:
        self._folder = folder
        self._now_ms = now_ms
        self._stores: dict[int, Any] = {}
        self._overlays: dict[int, _Overlay] = {}
        self._version = 0

    def open(self, partition: int) -> None:
        """Open a partition's store, which is made where it is missing or damaged; once open it stays open."""
        if partition not in self._stores:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._stores[partition] = self._opened(partition, self._folder / f"state-{partition}.db")

    def _opened(self, partition: int, folder: Path) -> Any:
        mark = folder / DAMAGED
        if not mark.exists():
            try:
                return rocksdict.Rdict(str(folder), options=_options())
            except Exception as error:  # rocksdict has no other
                if not _damage(error):
                    raise
                why = _words(error)
        else:
            why = "found out before"
            with contextlib.suppress(OSError):  # that it is there says enough
                why = mark.read_text(encoding="utf-8", errors="replace")
        LOG.warning("local rows are damaged: all are restored anew", partition=partition, folder=str(folder), why=why)
        shutil.rmtree(folder)
        return rocksdict.Rdict(str(folder), options=_options())

    def notice(self, partition: int, error: Exception) -> None:
        """Take in an error of a partition's store. Raises RowsDamaged where it is damage: it is made anew when it is
        opened next."""
        if _damage(error):
            folder = self._folder / f"state-{partition}.db"
            with contextlib.suppress(OSError):  # a full disk: it is found out again
                (folder / DAMAGED).write_text(_words(error), encoding="utf-8")
            raise RowsDamaged(
                f"the local rows of partition {partition} in {folder} are damaged ({_words(error)}): they are restored "
                "from the changelog"
            ) from error

    def discard(self, partition: int | None = None) -> None:
        """Drop every change that is not committed, or one partition's: it was given up, and is restored from the
        changelog."""
        if partition is None:
            self._overlays.clear()
        else:
            self._overlays.pop(partition, None)

    def close(self, keep: frozenset[int] = frozenset()) -> None:
        """Close the stores but for those to ``keep``."""
        for partition in [each for each in self._stores if each not in keep]:
            try:
                self._stores.pop(partition).close()
            except Exception as error:  # damaged, or on a full disk: whatever it lacks is restored from the changelog
                LOG.warning("local rows could not be closed cleanly", partition=partition, why=_words(error))

    def rows(self, partition: int) -> "PartitionRows":
        """Return read access to one partition's rows."""
        return PartitionRows(self, partition)

    def put(self, partition: int, changes: Sequence[RowChange]) -> PendingRows:
        """Make changes visible to reads; :meth:`settle` stores them. Raises StateError for a key of a wrong length."""
        for change in changes:
            if not 0 < len(change.key) <= KEY_BYTES_MAX or change.key in OWN_KEYS:
                raise StateError(f"a row's key must have 1 to {KEY_BYTES_MAX} bytes, has {len(change.key)}")
        overlay = self._overlays.setdefault(partition, {})
        rows = []
        for change in changes:
            self._version += 1
            overlay[change.key] = (self._version, change.value)
            rows.append((self._version, change))
        return PendingRows(partition, tuple(rows))

    def settle(self, pending: PendingRows, offset: int) -> None:
        """Store what is committed with the changelog offset of its last row, atomically; in the order of the writes.

        A negative offset (the broker knew the record and no longer where it lies) leaves the offset as it was: those
        rows are restored once more, to what they are.
        """
        overlay = self._overlays.get(pending.partition, {})
        for version, change in pending.rows:
            if (entry := overlay.get(change.key)) is not None and entry[0] == version:
                del overlay[change.key]
        self.restore(pending.partition, pending.changes, offset, at_end=True)

    def restore(self, partition: int, changes: Sequence[RowChange], offset: int, *, at_end: bool = False) -> None:
        """Store committed changes and the changelog offset of the last one, atomically; ``at_end``: nothing is behind
        them in the log."""
        if not changes and not at_end:
            return
        batch = rocksdict.WriteBatch(raw_mode=True)
        for change in changes:
            if change.value is None:
                batch.delete(change.key)
            else:
                batch.put(change.key, change.value)
        if offset >= 0:
            batch.put(OFFSET_KEY, str(offset).encode())
        if at_end:
            batch.put(AT_END_KEY, str(self._now_ms()).encode())
        self._write(partition, batch)

    def _write(self, partition: int, batch: Any) -> None:
        try:
            self.store(partition).write(batch)
        except Exception as error:
            self.notice(partition, error)
            raise

    def stands(self, partition: int) -> int | None:
        """Return the changelog offset up to which the local store has a partition's rows; None where it has none."""
        found = self._own(partition, OFFSET_KEY)
        return None if found is None else int(found)

    def age_ms(self, partition: int) -> int | None:
        """Return how long ago the local store was at the changelog's end; None where it does not know."""
        found = self._own(partition, AT_END_KEY)
        return None if found is None else self._now_ms() - int(found)

    def _own(self, partition: int, key: bytes) -> bytes | None:
        try:
            found: bytes | None = self.store(partition).get(key)
        except Exception as error:
            self.notice(partition, error)
            raise
        return found

    def empty(self, partition: int) -> None:
        """Remove all rows of a partition from the local store; where it stands last, so that a kill leaves it old."""
        keys = [key for key, _ in self.stored_rows(partition, b"", b"")]
        for start in range(0, len(keys), EMPTIED_AT_ONCE):
            batch = rocksdict.WriteBatch(raw_mode=True)
            for key in keys[start : start + EMPTIED_AT_ONCE]:
                batch.delete(key)
            self._write(partition, batch)
        last = rocksdict.WriteBatch(raw_mode=True)
        for key in OWN_KEYS:
            last.delete(key)
        self._write(partition, last)

    def stored_rows(self, partition: int, prefix: bytes, start: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Yield what is stored under a prefix, from a key on."""
        cursor = self.store(partition).iter()
        cursor.seek(start)
        while cursor.valid():
            key = cursor.key()
            if not key.startswith(prefix):
                return
            if key not in OWN_KEYS:
                yield key, cursor.value()
            cursor.next()
        try:
            cursor.status()  # damage ends it early, as the last row does
        except Exception as error:
            self.notice(partition, error)
            raise

    def overlay(self, partition: int) -> _Overlay:
        """Return the changes of a partition that are not committed yet: version and value of each key."""
        return self._overlays.get(partition, {})

    def store(self, partition: int) -> Any:
        """Return a partition's RocksDB. Raises StateError where it is not open: the partition is not this worker's."""
        if partition not in self._stores:
            raise StateError(f"the rows of partition {partition} are asked for, and it was given up")
        return self._stores[partition]


def _damage(error: Exception) -> bool:
    return any(word in str(error).lower() for word in DAMAGE)


def _words(error: Exception) -> str:
    return str(error)[:WORDS_CHARS_MAX]


def _options() -> Any:
    """Return RocksDB's options, a partition each; the defaults of Faust are 2 GiB of cache, 192 MiB of buffers."""
    options = rocksdict.Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_max_open_files(OPEN_FILES_MAX)
    options.set_write_buffer_size(WRITE_BUFFER_BYTES)
    options.set_target_file_size_base(FILE_BYTES)
    blocks = rocksdict.BlockBasedOptions()
    blocks.set_bloom_filter(BLOOM_BITS, block_based=False)
    blocks.set_block_cache(rocksdict.Cache(CACHE_BYTES))
    options.set_block_based_table_factory(blocks)
    return options


class PartitionRows:
    """Rows of one partition: changes that are not committed over the local store."""

    __slots__ = ("_partition", "_state")

    def __init__(self, state: StateRows, partition: int) -> None:
        self._state = state
        self._partition = partition

    def get(self, key: bytes) -> bytes | None:
        """Return the row's value, or None where there is none."""
        entry = self._state.overlay(self._partition).get(key)
        if entry is not None:
            return entry[1]
        try:
            value: bytes | None = self._state.store(self._partition).get(key)
        except Exception as error:
            self._state.notice(self._partition, error)
            raise
        return value

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield at most ``limit`` rows whose key starts with ``prefix`` and lies beyond ``after``, in key order."""
        overlay = self._state.overlay(self._partition)
        start = prefix if after is None else max(prefix, after + b"\0")
        fresh = sorted(key for key in overlay if key.startswith(prefix) and key >= start)
        stored = self._state.stored_rows(self._partition, prefix, start)
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
