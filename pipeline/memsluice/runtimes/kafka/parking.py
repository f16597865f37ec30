"""Parking: what is wrong with one partition stops that partition, with a reason, and no other.

A partition is parked for an error that is known to be its own: a record that was not delivered, a record that does not
fit the rows, rows that can not be restored. What was taken of it is dropped and never acknowledged, its open
transaction is ended, nothing of it is fetched. It goes on by an operator's order (:mod:`.board`), or tries anew after
a restart or a rebalance.
"""

import os
from typing import Final

from memsluice.envelope.partition_orders import REASON_CHARS_MAX, Missing, PartitionState, failure_id
from memsluice.errors import GapError, SealError, StateError
from memsluice.log import get_logger

LOG = get_logger(__name__)
SALT_BYTES: Final = 8


def parks(error: BaseException) -> bool:
    """Tell whether an error is its partition's own; others are the whole stage's, or may be anybody's."""
    return isinstance(error, StateError | SealError)


def parked(
    stage: str, partition: int, topic: str, offset: int | None, error: BaseException, since_ms: int, replica: str
) -> PartitionState:
    """Return the state of a partition that is parked now, for an error at a record (None: at no record)."""
    reason = (str(error) or type(error).__name__)[:REASON_CHARS_MAX]
    missing = None
    if isinstance(error, GapError) and error.topic:
        missing = Missing(error.topic, error.first, error.last)
    failure = failure_id(stage, partition, topic, offset, reason, since_ms, os.urandom(SALT_BYTES).hex())
    return PartitionState(
        stage, partition, True, failure, type(error).__name__, reason, topic, offset, missing, since_ms, replica
    )


def way_on(state: PartitionState) -> str:
    """Return the commands that let a parked partition go on."""
    where = f"{state.stage} {state.partition}"
    resume = f"memsluice partition resume {where}"
    if state.missing is None:
        return resume
    accept = f"memsluice partition acknowledge-gap {where} --from {state.missing.first} --to {state.missing.last}"
    return f"{resume} once the records are back; {accept} where they are lost for good"


def tell(state: PartitionState) -> None:
    """Say it, once, in the log."""
    LOG.critical(
        "partition parked until an operator resumes it, or a restart or a rebalance tries it anew; all others run on",
        stage=state.stage,
        partition=state.partition,
        topic=state.topic,
        offset=state.offset,
        error=state.error,
        why=state.reason,
        goes_on_with=way_on(state),
    )
