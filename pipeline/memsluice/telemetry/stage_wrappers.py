"""A stage with somebody watching: the stage itself knows nothing of spans and metrics."""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import time_ns
from typing import cast

from memsluice.envelope.partition_orders import Missing
from memsluice.events.records import Output, Record, Rows
from memsluice.stages.base import Acknowledges, BatchStage, Counts, Forgets, Owning, StatefulStage, Step, Sweeps, Waits
from memsluice.stages.overflow import Intake, Overflowing
from memsluice.stages.quota import Quota
from memsluice.telemetry import registry
from memsluice.telemetry.deferred import Later
from memsluice.telemetry.meters import Meters
from memsluice.telemetry.tracing import StageTracer


@dataclass(frozen=True, slots=True)
class Watch:
    """Who watches a stage: metrics always, spans where a backend is named."""

    stage: str
    meters: Meters
    tracer: StageTracer | None
    now_ns: Callable[[], int] = time_ns
    later: Later = field(default_factory=Later)

    def failed(self, records: Sequence[Record], error: BaseException, started_ns: int) -> None:
        """Tell of a call that raised."""
        self.meters.add(registry.FAILURES, self.stage)
        if self.tracer is not None:
            self.tracer.failed(records, error, started_ns, self.now_ns())

    def batch(self, records: Sequence[Record], results: Sequence[Sequence[Output]], started_ns: int) -> None:
        """Tell, later, of a batch that was processed until now."""
        self.later.put(partial(self._batch, records, results, started_ns, self.now_ns()), len(records))

    def record(self, record: Record, step: Step, started_ns: int) -> None:
        """Tell, later, of a record that was decided until now."""
        self.later.put(partial(self._record, record, step, started_ns, self.now_ns()))

    def _batch(
        self, records: Sequence[Record], results: Sequence[Sequence[Output]], started_ns: int, ended_ns: int
    ) -> None:
        self.meters.stage_call(self.stage, records, started_ns, ended_ns)
        self.meters.outputs(self.stage, results)
        if self.tracer is not None:
            self.tracer.batch(records, results, started_ns, ended_ns)

    def _record(self, record: Record, step: Step, started_ns: int, ended_ns: int) -> None:
        self.meters.stage_call(self.stage, (record,), started_ns, ended_ns)
        self.meters.verdict(self.stage, step.verdict)
        self.meters.lying.changed(record.partition, step.changes)
        if self.tracer is not None:
            self.tracer.record(record, step.verdict, started_ns, ended_ns)


class ObservedBatch:
    """A batch stage that is watched."""

    def __init__(self, stage: BatchStage, watch: Watch) -> None:
        self._stage = stage
        self._quotas = cast(Overflowing, stage)
        self._watch = watch
        if isinstance(stage, Counts):
            stage.tell(watch.meters.of_store)
        if isinstance(stage, Sweeps):
            watch.meters.unswept(stage.unswept_s)

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """As the stage does."""
        watch, started = self._watch, self._watch.now_ns()
        try:
            results = self._stage.process(batch)
        except Exception as error:
            watch.failed(batch, error, started)
            raise
        watch.batch(batch, results, started)
        return results

    def moved(self, record: Record, tenant: str, after: int | None) -> list[Output]:
        """As the stage does, where it has quotas: nobody asks it otherwise."""
        self._watch.meters.add(registry.OVERFLOW_MOVED)
        return self._quotas.moved(record, tenant, after)

    def quota(self, tenant: str) -> Quota | None:
        """As the stage does."""
        return self._quotas.quota(tenant)

    def is_counted(self, topic: str) -> bool:
        """As the stage does."""
        return self._quotas.is_counted(topic)

    def lane(self, record: Record) -> str | None:
        """As the stage does."""
        return self._quotas.lane(record)

    def may_wait(self, record: Record, tenant: str) -> bool:
        """As the stage does."""
        return self._quotas.may_wait(record, tenant)

    def came(self, record: Record) -> Intake:
        """As the stage does."""
        return self._quotas.came(record)

    def sender(self, outputs: list[Output]) -> str | None:
        """As the stage does."""
        return self._quotas.sender(outputs)

    def give_up(self) -> None:
        """As the stage does, where it waits for anything."""
        if isinstance(self._stage, Waits):
            self._stage.give_up()

    def refused_s(self) -> float:
        """As the stage says, where it waits for anything."""
        return self._stage.refused_s() if isinstance(self._stage, Waits) else 0.0

    def owns(self, partitions: Collection[int]) -> None:
        """As the stage does, where it asks for it."""
        if isinstance(self._stage, Owning):
            self._stage.owns(partitions)

    def forget(self, partition: int) -> None:
        """As the stage does, where it remembers anything."""
        if isinstance(self._stage, Forgets):
            self._stage.forget(partition)


class ObservedStateful:
    """A stateful stage that is watched."""

    def __init__(self, stage: StatefulStage, watch: Watch) -> None:
        self._stage = stage
        self._watch = watch

    def process(self, record: Record, rows: Rows) -> Step:
        """As the stage does."""
        watch, started = self._watch, self._watch.now_ns()
        try:
            step = self._stage.process(record, rows)
        except Exception as error:
            watch.failed((record,), error, started)
            raise
        lying = watch.meters.lying
        if not lying.knows(record.partition):  # now: the rows are those of this moment
            lying.see(record.partition, rows, step)
        watch.record(record, step, started)
        return step

    def acknowledge(self, partition: int, missing: Missing) -> None:
        """As the stage does, where it counts records of other topics."""
        if isinstance(self._stage, Acknowledges):
            self._stage.acknowledge(partition, missing)

    def forget(self, partition: int) -> None:
        """As the stage does."""
        self._stage.forget(partition)
        self._watch.later.do()  # what was decided before is not news of what is read next
        self._watch.meters.lying.forget(partition)
