"""Notes about one held write: a text, an assignment, a claim; and what the gate made of it. It decides nothing."""

import time
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

from memsluice.clock import Clock, wall_ms
from memsluice.errors import BrokerError, ProducerError
from memsluice.escaping import visible
from memsluice.events.models import Action
from memsluice.gate.commands.notes import ASSIGNEE_PARAMETER, CLAIM_PARAMETER
from memsluice.operations.commands.answers import Bookmark
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.held.commands import answers, decision
from memsluice.operations.held.desk import HeldDesk
from memsluice.operations.held.entries import HeldState
from memsluice.operations.review.decide import Came, DecisionResult, result_of
from memsluice.topics.names import PARTITIONS

CLAIM_S = 3_600
"""For how long (s) the desks claim a write by one key: an hour, in which somebody reads and asks."""
NOTED = frozenset({HeldState.PENDING, HeldState.REFUSED, HeldState.REJECTED})
"""States in which the gate takes notes about a write."""


def saying(assignee: str | None = None, claim_s: int | None = None) -> dict[str, str]:
    """Return the parameters of a note: whom the write is assigned to (``-`` for nobody), and for how long its signer
    claims it (seconds; 0 gives it back). None leaves it as it is."""
    told = {} if assignee is None else {ASSIGNEE_PARAMETER: assignee}
    return told if claim_s is None else {**told, CLAIM_PARAMETER: str(claim_s)}


def note(
    desk: HeldDesk,
    seen: HeldReview,
    text: str,
    said: Mapping[str, str],
    wait_s: float,
    *,
    despite_claim: bool = False,
    clock: Clock = wall_ms,
    new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> DecisionResult:
    """Sign and publish a note, and return what the gate made of it.

    Raises ConfigError where no credential signs for the tenant, BrokerUnavailable as long as nothing was published, and
    MalformedEvent or LimitExceeded for the text.
    """
    now = datetime.fromtimestamp(clock() / 1_000, UTC)
    command = decision(seen, Action.NOTE, new_id(), now, text, despite_claim=despite_claim, parameters=said)
    desk.signer(command.tenant)
    since = Bookmark.at(desk.audit, command.tenant, PARTITIONS)
    try:
        desk.publish([command])
        desk.settle()
        keyring = desk.keys.keyring()
        told = answers(desk.audit, keyring, [command], [since], wait_s, monotonic=monotonic, sleep=sleep)
    except (BrokerError, ProducerError) as error:
        lost = f"it may be noted yet: {visible(str(error))}"
        return DecisionResult(seen, Action.NOTE, command.id, Came.NO_ANSWER, lost)
    return result_of(seen, command, told.get(command.id))
