"""What of history is decided again, and where it is read."""

from collections.abc import Callable

from memsluice.clock import wall_ms
from memsluice.envelope.partition_orders import accepted_from_bytes
from memsluice.errors import InvalidArgument
from memsluice.events.partition import partition_of
from memsluice.gate.policy.model import PolicySet
from memsluice.operations.commands.desk import CommandDesk
from memsluice.operations.held.filters import moment_ms
from memsluice.operations.rescreen.evaluation import Evaluation
from memsluice.operations.rescreen.labels import labels
from memsluice.operations.rescreen.rerun import Log, Part, Rerun, Wanted
from memsluice.topics.names import PARTITION_STATES, PARTITIONS, SEALED


def wanted(tenant: str | None, since: str | None, until: str | None, max_events: int) -> Wanted:
    """Return what a command line asks for. Raises InvalidArgument."""
    since_ms, until_ms = (None if text is None else moment_ms(text, wall_ms()) for text in (since, until))
    if since_ms is not None and until_ms is not None and until_ms <= since_ms:
        raise InvalidArgument("--until is not later than --since, so nothing can match: swap or widen them")
    return Wanted(tenant, since_ms, until_ms, max_events)


def log_of(desk: CommandDesk) -> Log:
    """Return the sealed log and the audit at a desk, and what was acknowledged as lost of the intake."""
    told = desk.topic(PARTITION_STATES).read(0)
    accepted = (accepted_from_bytes(desk.keys, record.value, record.timestamp_ms) for record in told)
    losses = [(one.order.partition, one.order.missing) for one in accepted if one is not None and one.order.missing]
    return Log(desk.topic(SEALED), desk.audit, desk.keys.keyring(), PARTITIONS, losses)


def evaluated(
    desk: CommandDesk, candidate: PolicySet, want: Wanted, heard: Callable[[int], None] = lambda read: None
) -> tuple[Evaluation, list[Part], int]:
    """Decide history again under a candidate; return its scores of what reviewers decided, what was read, and how much.

    Raises BrokerUnavailable, StateError (the sealed log has a gap that nobody acknowledged).
    """
    log = log_of(desk)
    partitions = range(PARTITIONS) if want.tenant is None else [partition_of(want.tenant, PARTITIONS)]
    found = Evaluation(labels(log.audit, log.keyring, partitions, want.tenant))
    run, events = Rerun(log, candidate), 0
    for one in run.events(want, heard):
        found.take(one, candidate.of(one.now.tenant))
        events += 1
    return found, run.parts, events
