"""What a reviewer signs about a held write, and the gate's answer. Pure but for the waiting, whose clock is given."""

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256

from memsluice.client import requests
from memsluice.envelope.keys import Keyring
from memsluice.envelope.verdict import Verdict
from memsluice.errors import ConfigError
from memsluice.events.limits import HELD_CHARS_MAX
from memsluice.events.models import Action, Command
from memsluice.gate.commands.review import (
    DECIDED_ON_PARAMETER,
    DESPITE_CLAIM_PARAMETER,
    OFFSET_PARAMETER,
    SHOWN_PARAMETER,
    YES,
)
from memsluice.operations.commands.answers import Bookmark, heard
from memsluice.operations.commands.signing import COMMAND_VALID
from memsluice.operations.held.collect import HeldReview
from memsluice.operations.held.entries import HeldWrite, Ruled, ruling_of
from memsluice.operations.trace.verdicts import verified
from memsluice.readers.base import TopicReader

CARRYING = (Action.RELEASE, Action.REPLAY)


def decision(
    seen: HeldReview,
    action: Action,
    command_id: str,
    now: datetime,
    reason: str = "",
    *,
    despite_claim: bool = False,
    parameters: Mapping[str, str] | None = None,
) -> Command:
    """Return the command by which a person who was shown an entry whole decides about it, or notes something.

    It says what was shown and how the entry stood then, so that the gate refuses it where either is not so. A note says
    neither; nor does a rejection say what was shown of a write too large to be carried. Raises what :func:`order` does.
    """
    entry, told = seen.entry, dict(parameters or {})
    if action is not Action.NOTE:
        told[DECIDED_ON_PARAMETER] = seen.decided_on
        if action in CARRYING or (action is Action.REJECT and len(entry.sealed) <= HELD_CHARS_MAX):
            assert entry.write is not None
            told[SHOWN_PARAMETER] = shown(entry.write.content)
    if despite_claim:
        told[DESPITE_CLAIM_PARAMETER] = YES
    return order(entry, action, command_id, now, reason, parameters=told)


def shown(content: str) -> str:
    """Return what a command says of a content that its signer was shown: SHA-256 of its UTF-8, 64 hex digits."""
    return sha256(content.encode()).hexdigest()


def order(
    entry: HeldWrite,
    action: Action,
    command_id: str,
    now: datetime,
    reason: str = "",
    *,
    valid: timedelta = COMMAND_VALID,
    parameters: Mapping[str, str] | None = None,
) -> Command:
    """Return the command about an entry, which was read with its content: bound to its digest, void after ``valid``.

    Raises ConfigError for a write too large to be carried, MalformedEvent or LimitExceeded for the reason.
    """
    carries = action in CARRYING or SHOWN_PARAMETER in (parameters or {})
    if carries and len(entry.sealed) > HELD_CHARS_MAX:
        raise ConfigError(
            f"write too large for a {action.value}: the command carries it, {len(entry.sealed)} characters sealed, "
            f"and at most {HELD_CHARS_MAX} fit. It can only be rejected"
        )
    return requests.command(
        command_id,
        now,
        entry.tenant,
        action,
        entry.event_id,
        now + valid,
        digest=entry.digest,
        reason=reason,
        parameters={**(parameters or {}), **({OFFSET_PARAMETER: str(entry.offset)} if entry.repeated_id else {})},
        held=entry.sealed if carries else None,
    )


@dataclass(frozen=True, slots=True)
class Answer:
    """What the gate made of a command; ``ruled`` is None where the command's id was answered before: a repetition."""

    command: Command
    ruled: Ruled | None
    verdict: Verdict


def answers(
    audit: TopicReader,
    keyring: Keyring,
    commands: Sequence[Command],
    since: Iterable[Bookmark],
    wait_s: float,
    *,
    monotonic: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, Answer]:
    """Return the answers to commands by their ids: of all, or of those that the audit has within ``wait_s`` seconds.

    ``since`` are bookmarks of the commands' partitions. Raises BrokerUnavailable where the audit cannot be read,
    SealError where an answer does not verify.
    """
    told = heard(audit, commands, since, wait_s, monotonic=monotonic, sleep=sleep)
    by_id = {command.id: command for command in commands}
    verdicts = {found: verified(keyring, record) for found, record in told.items()}
    return {found: Answer(by_id[found], ruling_of(verdict), verdict) for found, verdict in verdicts.items()}
