"""What stands for RocksDB: a process's local store in a sorted dictionary, which outlives the process.

A write is one batch, all of it or nothing, as a write-ahead log has it; a kill loses none that was written. A lost
disk is an empty one, a disk put back from a copy an older prefix.
"""

from bisect import bisect_left, insort
from pathlib import Path

from memsluice.runtimes.kafka.state import StateRows

Operation = tuple[bytes, bytes | None]


class WriteBatch:
    """A batch of changes, in their order."""

    def __init__(self, raw_mode: bool = True) -> None:
        self.operations: list[Operation] = []

    def put(self, key: bytes, value: bytes) -> None:
        """Add a row."""
        self.operations.append((key, value))

    def delete(self, key: bytes) -> None:
        """Remove a row."""
        self.operations.append((key, None))


class _Cursor:
    def __init__(self, store: "Store") -> None:
        self._store = store
        self._at = 0

    def seek(self, key: bytes) -> None:
        """Go to the first row at or behind a key."""
        self._at = bisect_left(self._store.keys, key)

    def valid(self) -> bool:
        """Whether there is a row here."""
        return self._at < len(self._store.keys)

    def key(self) -> bytes:
        """Return the row's key."""
        return self._store.keys[self._at]

    def value(self) -> bytes:
        """Return the row's value."""
        return self._store.rows[self._store.keys[self._at]]

    def next(self) -> None:
        """Go on."""
        self._at += 1

    def status(self) -> None:
        """Raise where damage ended the walk: memory has none."""


class Store:
    """One partition's store."""

    def __init__(self) -> None:
        self.rows: dict[bytes, bytes] = {}
        self.keys: list[bytes] = []

    def get(self, key: bytes) -> bytes | None:
        """Return a row."""
        return self.rows.get(key)

    def write(self, batch: WriteBatch) -> None:
        """Apply a batch."""
        for key, value in batch.operations:
            if value is None:
                if self.rows.pop(key, None) is not None:
                    del self.keys[bisect_left(self.keys, key)]
            else:
                if key not in self.rows:
                    insort(self.keys, key)
                self.rows[key] = value

    def iter(self) -> _Cursor:
        """Return a cursor."""
        return _Cursor(self)

    def close(self) -> None:
        """Do nothing: what was written is there."""

    def copy(self) -> "Store":
        """Return a copy, as a backup is one."""
        made = Store()
        made.rows, made.keys = dict(self.rows), list(self.keys)
        return made


Disk = dict[int, Store]
"""The stores of one replica, by partition."""


class Rows(StateRows):
    """The runtime's own state rows over a disk of the simulation."""

    def __init__(self, disk: Disk) -> None:
        super().__init__(Path())
        self._disk = disk

    def open(self, partition: int) -> None:
        """Open a partition's store."""
        if partition not in self._stores:
            self._stores[partition] = self._disk.setdefault(partition, Store())


class Module:
    """What ``memsluice.runtimes.kafka.state`` finds in the place of rocksdict, as much as :class:`Rows` needs."""

    WriteBatch = WriteBatch
