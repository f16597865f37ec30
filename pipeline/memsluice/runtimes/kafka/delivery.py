"""What a stage's runner gives to its lanes (``lanes.py``), which bring it to the broker, and what these ask of it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from memsluice.errors import StateError
from memsluice.events.records import Output
from memsluice.runtimes.kafka.faults import Faults
from memsluice.runtimes.kafka.spec import StageSpec
from memsluice.runtimes.kafka.state import PendingRows


@dataclass(slots=True)
class RecordResult:
    """What one record led to, on its way to the broker."""

    message: Any
    generation: int
    outputs: Sequence[Output]
    rows: PendingRows | None = None
    urgent: bool = True
    """Whether somebody may be waiting for it; what is not urgent is committed with more of its kind."""


@dataclass(frozen=True, slots=True)
class Owner:
    """What the lanes need of the stage's runner: its app, what it may send to, and whom it tells."""

    spec: StageSpec
    app: Any
    faults: Faults
    release: Callable[[Any], None]
    """Called with a message whose offset was committed."""
    fail: Callable[[BaseException], None]
    fail_partition: Callable[[int, BaseException], None]
    """Called with an error that belongs to one partition alone, or may."""
    dropped: Callable[[Any], bool]
    """Tells whether a message is of a partition that was parked since it was fetched."""

    def check(self, output: Output) -> None:
        """Raise StateError for an output to a topic that the stage's spec does not name."""
        if output.topic not in self.spec.outputs:
            raise StateError(f"stage {self.spec.name} may not send to {output.topic}")
