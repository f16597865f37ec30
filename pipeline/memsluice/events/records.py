"""Records of a log, what is to be appended, and state rows: the same on Kafka and on the embedded log."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

Headers = tuple[tuple[str, bytes | None], ...]


@dataclass(frozen=True, slots=True)
class Record:
    """One record as it was read from a log.

    ``timestamp_ms`` is the log-append time in Unix milliseconds. ``headers`` keep order and repetitions.
    """

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    timestamp_ms: int = 0


@dataclass(frozen=True, slots=True)
class Output:
    """One record to be appended; the partition is always explicit (murmur2 of the tenant)."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


@dataclass(frozen=True, slots=True)
class RowChange:
    """One state row to put (``value`` bytes) or to delete (``value`` None). Keys are at most 1 KiB."""

    key: bytes
    value: bytes | None


class Rows(Protocol):
    """Read access to the state rows of one partition, with every change of earlier steps applied."""

    def get(self, key: bytes) -> bytes | None:
        """Return the row's value, or None where there is none."""

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield at most ``limit`` rows whose key starts with ``prefix`` and lies beyond ``after``, in key order."""
