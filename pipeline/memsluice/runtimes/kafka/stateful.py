"""Stateful stages: one record at a time, decided on the rows left by the one before.

The next record is decided while the transaction of the one before is under way: reads see the rows that are not
committed yet.
"""

from pathlib import Path
from typing import Any

from memsluice.deployment.connection import Connection
from memsluice.envelope.partition_orders import Missing
from memsluice.runtimes.kafka.delivery import RecordResult
from memsluice.runtimes.kafka.faults import BEFORE_CHANGELOG, Faults
from memsluice.runtimes.kafka.lanes import LaneRows
from memsluice.runtimes.kafka.parking import parks
from memsluice.runtimes.kafka.records import to_record
from memsluice.runtimes.kafka.restore import changelog_reader
from memsluice.runtimes.kafka.runner import StageRunner
from memsluice.runtimes.kafka.spec import Stage, StageSpec
from memsluice.runtimes.kafka.state import StateRows
from memsluice.stages.base import Acknowledges


class StatefulRunner(StageRunner):
    """Runs a :class:`~memsluice.stages.base.StatefulStage` over :class:`~memsluice.runtimes.kafka.state.StateRows`."""

    def __init__(
        self, spec: StageSpec, stage: Stage, faults: Faults, app: Any, connection: Connection, folder: Path
    ) -> None:
        super().__init__(spec, stage, faults, app, connection)
        self.state = StateRows(folder)
        self._open_log = changelog_reader(connection, spec)

    def _lane_rows(self, partition: int) -> LaneRows:
        return LaneRows(self.state, partition, self.spec.changelog, self._open_log)

    async def stop(self) -> None:
        """Cancel the tasks and close the local rows."""
        await super().stop()
        self.state.close()

    async def begin(self, partitions: set[int]) -> None:
        """Start a generation; rows of partitions that are another's now are closed."""
        await super().begin(partitions)
        self.state.close(keep=frozenset(partitions))

    async def _take(self, message: Any) -> None:
        generation = self.generation
        try:
            step = self.stage.process(to_record(message), self.state.rows(message.partition))
        except Exception as error:
            if not parks(error):
                raise
            self.park(message.partition, error, message.topic, message.offset)
            return
        await self.faults.reach(BEFORE_CHANGELOG)
        if generation == self.generation and not self.dropped(message):
            rows = self.state.put(message.partition, step.changes)
            outputs = tuple(step.outputs)  # a marker has none
            await self._results.put(RecordResult(message, generation, outputs, rows, urgent=bool(outputs)))

    def _drop_queued(self) -> None:
        """Do nothing: a record is in work from the moment it is accepted."""

    def _drop_parked(self, partition: int) -> None:
        self.state.discard(partition)
        self.stage.forget(partition)

    def _acknowledge(self, partition: int, missing: Missing) -> None:
        if isinstance(self.stage, Acknowledges):
            self.stage.acknowledge(partition, missing)

    def _new_generation(self) -> None:
        super()._new_generation()
        self.state.discard()

    def _forget(self, partitions: set[int]) -> None:
        for partition in partitions:
            self.stage.forget(partition)
