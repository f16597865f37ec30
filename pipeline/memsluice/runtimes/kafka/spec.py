"""What the runtime has to know about a stage, and every number that can be tuned, with its unit."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal

from memsluice.envelope.partition_orders import Keys
from memsluice.errors import ConfigError
from memsluice.stages.base import BatchStage, StatefulStage
from memsluice.topics.names import PARTITION_STATES

Stage = BatchStage | StatefulStage
Kind = Literal["batch", "stateful"]

STATE_TABLE = "state"
"""Name of a stateful stage's one table; its changelog is ``<app id>-state-changelog``."""

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuning:
    """Bounds and times of one stage. Times are seconds, sizes bytes, counts records."""

    batch_size: int = 64
    """Most records handed to a batch stage at once, 1 to 1024."""
    threads: int = 1
    """Batches of a batch stage in work at the same time, 1 to 16. More than one only where no batch depends on what
    another did; results leave in order all the same."""
    batch_bytes: int = 8 * MIB
    """A batch ends when keys and values together reach this size."""
    linger_s: float = 0.01
    """How long a batch that is not full may wait for more, and only right after a full one: an idle stage never
    waits, a saturated one does not fall back to batches of one because of a hiccup."""
    in_flight: int = 1024
    """Most records whose sends (outputs or changelog) the broker has not confirmed yet."""
    transaction_records: int = 500
    """Most records whose rows, outputs and offsets are committed together."""
    transaction_timeout_s: float = 30.0
    """After so long the broker ends a transaction that its worker left open; readers of committed records wait until
    then, or until another worker takes the partition over."""
    drain_s: float = 3.0
    """How long a revocation or a stop waits for records in work. What is not finished then is read again."""
    stop_s: float = 8.0
    """A worker told to stop ends within this time, whatever hangs."""
    session_s: float = 30.0
    heartbeat_s: float = 3.0
    rebalance_s: float = 10.0
    stream_buffer: int = 1024
    """Records Faust may queue before the stage; fetching stops above."""
    max_poll_records: int = 500
    max_request_bytes: int = 5 * MIB
    """Largest record that can be sent; above the largest input, or its dead letter fails."""
    fetch_wait_s: float = 0.5
    """How long the broker holds a fetch that has nothing to return."""
    fetch_gather_s: float = 0.02
    """How long it gathers what a fetch returns, while a tenant over its quota goes on sending."""

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= 1024:
            raise ConfigError(f"batch_size must be 1 to 1024, is {self.batch_size}")
        if not 1 <= self.threads <= 16:
            raise ConfigError(f"threads must be 1 to 16, is {self.threads}")
        if self.in_flight < 1 or self.batch_bytes < 1 or self.transaction_records < 1:
            raise ConfigError("in_flight, batch_bytes and transaction_records must be positive")
        if self.drain_s >= self.rebalance_s or self.drain_s >= self.stop_s:
            raise ConfigError(
                "drain_s must be below rebalance_s and stop_s: a revocation may not outlast the rebalance"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class StageSpec:
    """One stage as the runtime sees it.

    ``stage`` is the object, or a function without arguments that makes it (heavy models load once, at start).
    A stateful stage has exactly one input, because its rows belong to that topic's partitions.
    """

    name: str
    app_id: str
    """Faust app id: the consumer group, and the prefix of transactional ids and of a changelog."""
    user: str
    """The broker's principal for this stage."""
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    """Topics the stage may send to; an output to any other ends the worker."""
    kind: Kind
    stage: Stage | Callable[[], Stage]
    transactional: tuple[str, ...] = ()
    """The inputs whose writer commits in transactions: their records do not have every offset."""
    overflow: str = ""
    """The input, of a batch stage with quotas, in which tenants over theirs wait; "": nobody waits."""
    keys: Keys | None = None
    """The gate's keys, by which an operator's order about a parked partition is verified. None: none is obeyed."""
    states: str = PARTITION_STATES
    """The topic of parked partitions and of orders about them."""
    tuning: Tuning = field(default_factory=Tuning)

    def __post_init__(self) -> None:
        if not self.inputs:
            raise ConfigError(f"stage {self.name} has no input topic")
        if self.kind == "stateful" and len(self.inputs) != 1:
            raise ConfigError(f"stateful stage {self.name} must have exactly one input topic")
        if self.overflow and not (self.overflow in self.inputs and self.overflow in self.outputs):
            raise ConfigError(f"the overflow of stage {self.name} must be an input and an output")

    @property
    def changelog(self) -> str:
        """Name of the topic that a stateful stage's rows are restored from."""
        return f"{self.app_id}-{STATE_TABLE}-changelog"

    def make(self) -> Stage:
        """Return the stage object, making it if ``stage`` is a factory."""
        candidate = self.stage
        return candidate if hasattr(candidate, "process") else candidate()
