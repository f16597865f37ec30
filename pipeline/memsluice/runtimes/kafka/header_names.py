"""One record must not stop a partition: header names that are no UTF-8.

Kafka carries a header's name as bytes and the broker does not look at them. aiokafka decodes them as UTF-8 while it
reads a batch: one record with other bytes, from anybody who may write to an intake topic, raises UnicodeDecodeError at
every fetch, and that partition never advances again. So such a batch is read once more with those bytes escaped
(``\\xff``): the record arrives, and is judged like any other.
"""

from collections.abc import Iterator
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy
from aiokafka.record.memory_records import MemoryRecords

LENGTH_AT = 8
"""A batch starts with its base offset (8 bytes) and the length of what follows (4 bytes)."""
OVERHEAD_BYTES = 12


class _Escaping(bytearray):
    """Bytes whose slices decode as text without failing."""

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return _Escaping(found) if isinstance(index, slice) else found

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Decode, writing bytes that are no text as ``\\xff``."""
        return super().decode(encoding, "backslashreplace")


class _EscapingBatch(_DefaultRecordBatchPy):  # type: ignore[misc]
    """aiokafka's own reader in Python, over such bytes."""

    _buffer: Any

    def _maybe_uncompress(self) -> None:
        super()._maybe_uncompress()
        if not isinstance(self._buffer, _Escaping):
            self._buffer = _Escaping(self._buffer)


class TolerantBatch:
    """A record batch that can always be read; everything else passes through to aiokafka's."""

    def __init__(self, batch: Any, data: memoryview) -> None:
        self._batch = batch
        self._data = data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._batch, name)

    def __next__(self) -> Any:
        return next(self._batch)  # of control batches, which are the broker's own

    def __iter__(self) -> Iterator[Any]:
        try:
            records = list(self._batch)
        except UnicodeDecodeError:
            records = list(_EscapingBatch(bytearray(self._data)))
        return iter(records)


class TolerantRecords:
    """What a fetch brought of one partition; stands in for aiokafka's ``MemoryRecords``."""

    def __init__(self, data: bytes) -> None:
        self._records = MemoryRecords(data)
        self._data = memoryview(data)
        self._at = 0

    def size_in_bytes(self) -> int:
        """Return the size of all batches."""
        return int(self._records.size_in_bytes())

    def has_next(self) -> bool:
        """Whether another whole batch is there."""
        return bool(self._records.has_next())

    def next_batch(self) -> TolerantBatch | None:
        """Return the next batch."""
        batch = self._records.next_batch()
        if batch is None:
            return None
        length = int.from_bytes(self._data[self._at + LENGTH_AT : self._at + OVERHEAD_BYTES], "big")
        start, self._at = self._at, self._at + OVERHEAD_BYTES + length
        return TolerantBatch(batch, self._data[start : self._at])


def install() -> None:
    """Let every aiokafka consumer of this process read such records. Doing it again changes nothing."""
    fetcher.MemoryRecords = TolerantRecords
