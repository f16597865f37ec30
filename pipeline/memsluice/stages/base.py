"""What a stage is: ordinary code over records and rows, which never sees a consumer, a producer or a table.

The two runtimes (:mod:`memsluice.runtimes.kafka` and :mod:`memsluice.runtimes.embedded`) move the bytes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from memsluice.envelope.verdict import Verdict
from memsluice.events.records import Output, Record, RowChange, Rows


@dataclass(frozen=True, slots=True)
class Step:
    """What one record led to. ``changes`` are applied in the order given, outputs sent after them.

    ``verdict`` is for whoever watches: what was decided now; None where nothing was (a repetition, a marker).
    """

    outputs: Sequence[Output] = field(default_factory=tuple)
    changes: Sequence[RowChange] = field(default_factory=tuple)
    verdict: Verdict | None = None


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
