"""Parked partitions and acknowledged losses in words, for `partition status`, `doctor`, `top` and `trace`."""

from collections.abc import Iterable, Sequence

from memsluice.envelope.partition_orders import Accepted, PartitionState
from memsluice.events.partition import partition_of
from memsluice.recall.show import moment
from memsluice.topics.names import COMMANDS, EVENTS, PARTITIONS, SEALED

DECIDED_BY_WAY_OF = (EVENTS, COMMANDS, SEALED)
"""Topics whose lost records were never decided; what was lost of others has its verdict in the audit."""


def parked_places(parked: Iterable[PartitionState]) -> str:
    """Return which partitions of which stages are parked: "screen 3, land 1"."""
    return ", ".join(f"{state.stage} {state.partition}" for state in parked)


def acknowledged(loss: Accepted) -> str:
    """Return who took which records for lost, when and why."""
    order, missing = loss.order, loss.order.missing
    what = "" if missing is None else f"records {missing.first} to {missing.last} of {missing.topic}"
    why = f": {order.why}" if order.why else ""
    return (
        f"acknowledged as lost: {what}, partition {order.partition}, for {order.stage}, on {moment(loss.append_ms)} by "
        f"{loss.kid}{why}"
    )


def undecided(losses: Iterable[Accepted], tenant: str | None) -> Sequence[Accepted]:
    """Return the losses among which an event may be that was published and never decided: of this tenant, or of any."""
    return [
        loss
        for loss in losses
        if loss.order.missing is not None
        and loss.order.missing.topic in DECIDED_BY_WAY_OF
        and (tenant is None or partition_of(tenant, PARTITIONS) == loss.order.partition)
    ]
