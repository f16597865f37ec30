"""What a stage is: ordinary code over records and rows, which never sees a consumer, a producer or a table.

The two runtimes (:mod:`memsluice.runtimes.kafka` and :mod:`memsluice.runtimes.embedded`) move the bytes.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from memsluice.envelope.partition_orders import Missing
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

    def refused_s(self) -> float:
        """Return for how many seconds what it waits for has been answering and taking nothing; 0.0 while it does not
        wait. No restart of the worker ends that. Called from another thread."""


@runtime_checkable
class Owning(Protocol):
    """A batch stage that must know which partitions are its own."""

    def owns(self, partitions: Collection[int]) -> None:
        """Be told all partitions of an assignment, once no former owner can publish anything more; none, when they are
        revoked. Called from another thread than ``process``, before the first batch of the assignment."""


@runtime_checkable
class Forgets(Protocol):
    """A batch stage that remembers what it said of a partition."""

    def forget(self, partition: int) -> None:
        """Drop whatever was not committed: the partition was parked, and its records come again. May block."""


@runtime_checkable
class Counts(Protocol):
    """A batch stage that counts what an operator should hear of."""

    def tell(self, counted: Callable[[str, int], None]) -> None:
        """Tell ``counted`` from now on how often something happened, by name."""


@runtime_checkable
class Sweeps(Protocol):
    """A batch stage that does something besides its batches, without end."""

    def unswept_s(self) -> float:
        """Return for how many seconds nothing of that was done, though there is something to do; 0.0 where there is
        not. Called from any thread."""


@runtime_checkable
class Acknowledges(Protocol):
    """A stateful stage that counts the records of other topics than its input, and misses those that are lost."""

    def acknowledge(self, partition: int, missing: Missing) -> None:
        """Take these records for passed, once, when they are found missing: an operator knows that they are lost.

        Forgotten with the partition.
        """


class StatefulStage(Protocol):
    """A stage with state rows (*screen*). Called for one record at a time, in the order of its partition."""

    def process(self, record: Record, rows: Rows) -> Step:
        """Decide one record. Raising commits nothing of it: StateError and SealError stop its partition, others the
        worker."""

    def forget(self, partition: int) -> None:
        """Drop whatever was cached of a partition's rows: it was revoked, or recovered anew."""
