"""Stateful stages: one record at a time, decided on the rows left by the one before.

The next record is decided while the changelog of the one before is under way (reads see the unconfirmed rows); its
outputs leave when its own changelog is confirmed.
"""

from typing import Any

from memsluice.errors import StateError
from memsluice.runtimes.kafka.faults import BEFORE_CHANGELOG
from memsluice.runtimes.kafka.runner import LOG, RecordResult, StageRunner, to_record
from memsluice.runtimes.kafka.tracked_table import TrackedTable


class StatefulRunner(StageRunner):
    """Runs a :class:`~memsluice.stages.base.StatefulStage` over a :class:`TrackedTable`."""

    table: TrackedTable

    async def _take(self, message: Any) -> None:
        generation = self.generation
        step = self.stage.process(to_record(message), self.table.rows(message.partition))
        await self.faults.reach(BEFORE_CHANGELOG)
        write = await self.table.write(message.partition, step.changes)
        await self._results.put(RecordResult(message, generation, tuple(step.outputs), write))

    def _drop_queued(self) -> None:
        """Do nothing: a record is in work from the moment it is accepted."""

    def _abandon(self) -> None:
        """End the worker: changes that may still reach the changelog must not meet those of the next owner."""
        LOG.error("state changes unconfirmed after the drain", stage=self.spec.name, records=self.held)
        error = StateError(f"{self.held} records with unconfirmed state changes when the partitions were given up")
        self.app.producer.poison(error)

    def _new_generation(self) -> None:
        super()._new_generation()
        self.table.discard()

    def _forget(self, partitions: set[int]) -> None:
        for partition in partitions:
            self.stage.forget(partition)
