"""What a revocation has to do about a blast radius: one command an entry, and one a session that may still write. Pure.

Every step follows from where an entry is now. So a run that was stopped is gone on with by giving the same order again:
what is done already asks for nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from memsluice.events.models import Action
from memsluice.operations.provenance.spread import Reached, Spread, Touched
from memsluice.operations.trace.life import EntryStanding

CONTAIN, REMOVE = "contain", "remove"
GIVEN = ("source", "recalled")
"""Why a session is in a spread that need not have been tainted by it, whatever the policy."""


@dataclass(frozen=True, slots=True)
class PlannedCommand:
    """One command: what it is about, what for, and in words what is there now and what will be.

    ``reached`` is None for a session. ``carries`` says that the command carries the entry's content.
    """

    tenant: str
    action: Action
    target: str
    now: str
    then: str
    reached: Reached | None = None
    carries: bool = False


def steps(spread: Spread, mode: str, now_ms: int) -> Iterator[PlannedCommand]:
    """Yield what is to be done, sessions first: what they would still write is stopped before what they wrote moves.

    Of entries the nearest to the source come first.

    Last come sessions that saw something from outside. By default that tainted them then; under a narrower scope it
    did not, or not for long, and a policy may change: what is revoked taints in every scope.
    """
    open_ones = [(name, one) for name, one in spread.sessions.items() if not (one.revoked or one.forgotten)]
    if spread.source.kind == "session" and spread.source.name not in spread.sessions:
        open_ones.append((spread.source.name, Touched("source", 0, 0)))
    saw = {name for name, one in open_ones if one.why.partition(":")[0] not in GIVEN}
    yield from (_session(spread, name) for name, _ in open_ones if name not in saw)
    for reached in sorted(spread.reached.values(), key=lambda one: one.depth):
        step = _entry(spread.tenant, reached, mode, now_ms)
        if step is not None:
            yield step
    yield from (_session(spread, name) for name, _ in open_ones if name in saw)


def _session(spread: Spread, session: str) -> PlannedCommand:
    return PlannedCommand(spread.tenant, Action.REVOKE, session, "a session as before", "tainted from now on")


def _entry(tenant: str, reached: Reached, mode: str, now_ms: int) -> PlannedCommand | None:
    entry = reached.entry
    match entry.standing(now_ms):
        case EntryStanding.GUIDANCE if mode == CONTAIN:
            return PlannedCommand(
                tenant, Action.REVOKE, entry.event_id, "guidance", "external, tainted", reached, carries=True
            )
        case (EntryStanding.GUIDANCE | EntryStanding.EXTERNAL) as where if mode == REMOVE:
            return PlannedCommand(tenant, Action.WITHDRAW, entry.event_id, where.value, "removed", reached)
        case EntryStanding.HELD if mode == REMOVE:
            return PlannedCommand(tenant, Action.REJECT, entry.event_id, "held", "refused for good", reached)
        case EntryStanding.REFUSED if mode == REMOVE and entry.placed.replayable(now_ms):
            return PlannedCommand(tenant, Action.REJECT, entry.event_id, "refused", "refused for good", reached)
        case EntryStanding.HELD if not entry.revoked:
            return PlannedCommand(tenant, Action.REVOKE, entry.event_id, "held", "held, tainted", reached)
        case EntryStanding.WITHDRAWN if entry.looked_back and not entry.revoked:
            return PlannedCommand(tenant, Action.REVOKE, entry.event_id, "withdrawn", "never let in again", reached)
        case EntryStanding.REPLACED if not entry.tainted:
            return PlannedCommand(tenant, Action.REVOKE, entry.event_id, "replaced", "replaced, tainted", reached)
    return None
