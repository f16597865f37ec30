"""One record must not stop a partition: header names that are no UTF-8, and batches that unpack to too much.

Kafka carries a header's name as bytes and the broker does not look at them. aiokafka decodes them as UTF-8 while it
reads a batch: one record with other bytes, from anybody who may write to an intake topic, raises UnicodeDecodeError at
every fetch, and that partition never advances again. So such a batch is read once more with those bytes escaped
(``\\xff``): the record arrives, and is judged like any other.

aiokafka unpacks a compressed batch whole, and a few kB can hold more than there is memory. Of a batch that unpacks to
more than :data:`~memsluice.readers.batches.UNPACKED_BYTES_MAX` each offset arrives without key and value, with a header
that says so: it gets its dead letter and its place in the order, and its bytes stay where they are. Of the others only
as much is unpacked ahead as is taken.
"""

from collections.abc import Iterator
from typing import Any

from aiokafka.consumer import fetcher
from aiokafka.record.default_records import _DefaultRecordBatchPy, _DefaultRecordPy
from aiokafka.record.memory_records import MemoryRecords

from memsluice.events.names import NOT_UNPACKED_HEADER
from memsluice.readers.batches import UNPACKED_BYTES_MAX, TooLarge, too_large

LENGTH_AT = 8
"""A batch starts with its base offset (8 bytes) and the length of what follows (4 bytes)."""
OVERHEAD_BYTES = 12
LOG_APPEND_TIME = 1
TAKEN_BYTES_MAX = 2 * 1024 * 1024
"""Bytes of one partition's records that are handed on at once, but for the record that goes beyond."""


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
        if (over := too_large(self._data)) is not None:
            return _stand_ins(over)
        try:
            records = list(self._batch)
        except UnicodeDecodeError:
            records = list(_EscapingBatch(bytearray(self._data)))
        return iter(records)


def _stand_ins(batch: TooLarge) -> Iterator[Any]:
    """Yield, one at a time, what stands for the records of a batch that is not unpacked: their places alone."""
    told = [(NOT_UNPACKED_HEADER, str(UNPACKED_BYTES_MAX).encode())]
    for offset in range(batch.first, batch.last + 1):
        yield _DefaultRecordPy(offset, batch.append_ms, LOG_APPEND_TIME, None, None, told)


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


class BoundedResult(fetcher.FetchResult):  # type: ignore[misc]
    """What a fetch brought of one partition, handed on in pieces: few kB may unpack to as much as may be unpacked at
    once, again and again, and aiokafka counts records alone."""

    _partition_records: Any

    def getall(self, max_records: int | None = None) -> list[Any]:
        """Return the next records: so many at most, and none behind those that reach ``TAKEN_BYTES_MAX``."""
        taken: list[Any] = []
        if not self.check_assignment(self._topic_partition) or not self.has_more():
            return taken
        size = 0
        for record in self._partition_records:
            taken.append(record)
            size += len(record.key or b"") + len(record.value or b"")
            if size >= TAKEN_BYTES_MAX or (max_records is not None and len(taken) >= max_records):
                self._update_position()
                return taken
        self._update_position()
        self._partition_records = None
        return taken


def install() -> None:
    """Let every aiokafka consumer of this process read such records. Doing it again changes nothing."""
    fetcher.MemoryRecords = TolerantRecords
    fetcher.FetchResult = BoundedResult
