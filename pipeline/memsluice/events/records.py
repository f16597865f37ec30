"""What a stage consumes and produces, the same on Kafka and on the embedded log.

A stage is ordinary code over these types: it never sees a consumer, a producer or a table. The two runtimes
(:mod:`memsluice.runtimes.kafka` and :mod:`memsluice.runtimes.embedded`) move the bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

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
    """One record to be appended; the partition is always explicit (see DESIGN: murmur2 of the tenant)."""

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


@dataclass(frozen=True, slots=True)
class Step:
    """What one record led to. ``changes`` are applied in the order given, outputs sent after them.

    ``verdict`` is for whoever watches: what was decided now; None where nothing was (a repetition, a marker).
    """

    outputs: Sequence[Output] = field(default_factory=tuple)
    changes: Sequence[RowChange] = field(default_factory=tuple)
    verdict: Mapping[str, Any] | None = None


class Rows(Protocol):
    """Read access to the state rows of one partition, with every change of earlier steps applied."""

    def get(self, key: bytes) -> bytes | None:
        """Return the row's value, or None where there is none."""

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield at most ``limit`` rows whose key starts with ``prefix`` and lies beyond ``after``, in key order."""


class BatchStage(Protocol):
    """A stage without state (*seal*, *land*). ``process`` may block: the runtimes call it from worker threads.

    With more than one thread (``Tuning.threads``) it is called for several batches at once.
    """

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Return each record's outputs, aligned with ``batch``. Raising stops the worker and commits nothing."""


@runtime_checkable
class Waits(Protocol):
    """A batch stage that may wait for long inside of ``process``, such as for a store that is down."""

    def give_up(self) -> None:
        """End the wait of the batch in hand: whatever it raises is ignored, its records are read again by whoever
        owns their partitions then. Called from another thread."""


class StatefulStage(Protocol):
    """A stage with state rows (*screen*). Called for one record at a time, in the order of its partition."""

    def process(self, record: Record, rows: Rows) -> Step:
        """Decide one record. Raising stops the worker and commits nothing."""

    def forget(self, partition: int) -> None:
        """Drop whatever was cached of a partition's rows: it was revoked, or recovered anew."""
