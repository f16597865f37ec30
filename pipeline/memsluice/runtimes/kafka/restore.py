"""Restoring a partition's rows: what the changelog has committed beyond the local store, read to the log's end.

Called once the partition is fenced, so that the end stands still: nobody else can add to it. Only committed records
are read, so what a former owner sent and never committed is in no store. (Faust's own recovery can do neither: it
waits for the record before the end, which is a commit marker that no reader is given.)
"""

from collections.abc import Callable
from threading import Event
from typing import Final

from memsluice.deployment.connection import Connection
from memsluice.errors import StateError
from memsluice.events.records import RowChange
from memsluice.log import get_logger
from memsluice.readers.kafka import KafkaTopic
from memsluice.runtimes.kafka.spec import StageSpec
from memsluice.runtimes.kafka.state import StateRows

LOG = get_logger(__name__)
BATCH_ROWS: Final = 2_000
LOCAL_MS_MAX: Final = 12 * 3_600_000
"""Local rows that were not at the changelog's end for longer are not built upon. The log forgets a day after it that a
row was deleted (``delete.retention.ms``): a worker that was away for longer would have that row for good."""
SKEW_MS_MAX: Final = 300_000
"""Rows from further in the future than this were written under another clock: nobody knows how old they are."""
OpenLog = Callable[[Event], KafkaTopic]
"""Opens a log for a thread that nobody waits for once the event is set."""


def changelog_reader(connection: Connection, spec: StageSpec) -> OpenLog:
    """Return what opens a reader of a stage's changelog; each restoring thread opens its own."""
    return lambda given_up: KafkaTopic.of(connection, spec.user, spec.changelog, spec.app_id, given_up.is_set)


def restore(state: StateRows, partition: int, open_log: OpenLog, given_up: Event) -> int:
    """Bring a partition's local store to the changelog's end and return how many rows were read.

    Blocks; for a thread. Ends early once ``given_up`` is set, with less or an error. Raises BrokerUnavailable, and
    StateError where the store is ahead of the log: the log was cut, and what it lost cannot be told.
    """
    log = open_log(given_up)
    try:
        stands = state.stands(partition)
        end = log.end(partition)
        if stands is not None and stands >= end:
            raise StateError(
                f"the local rows of partition {partition} stand at record {stands} of the changelog, which ends at "
                f"{end}: the log was cut or made anew. Restore the topic; or stop the worker, remove its local rows, "
                "and start it again"
            )
        age_ms = state.age_ms(partition)
        if stands is not None and (age_ms is None or not -SKEW_MS_MAX <= age_ms <= LOCAL_MS_MAX):
            LOG.warning("local rows are too old to build upon: all are restored anew", partition=partition)
            state.empty(partition)
            stands = None
        changes: list[RowChange] = []
        offset, rows = -1, 0
        for record in log.read(partition, 0 if stands is None else stands + 1):
            if given_up.is_set():
                break
            changes.append(RowChange(record.key or b"", record.value))
            offset, rows = record.offset, rows + 1
            if len(changes) >= BATCH_ROWS:
                state.restore(partition, changes, offset)
                changes = []
        state.restore(partition, changes, offset, at_end=not given_up.is_set())
        return rows
    finally:
        log.close()
