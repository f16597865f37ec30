"""The command by which a reviewer dismisses a dead letter. Pure."""

from datetime import datetime

from memsluice.client import requests
from memsluice.errors import InvalidArgument
from memsluice.events.models import Action, Command
from memsluice.events.names import EVERYBODY
from memsluice.operations.commands.signing import COMMAND_VALID
from memsluice.operations.dead_letters.letters import DeadLetter


def dismissal(letter: DeadLetter, command_id: str, now: datetime, why: str) -> Command:
    """Return the command: addressed to all tenants, since a letter is no tenant's, and bound to the letter's bytes.

    Raises InvalidArgument without a reason, MalformedEvent or LimitExceeded for one that is no text or too long.
    """
    if not why.strip():
        raise InvalidArgument("--why: a dismissal needs a reason")
    return requests.command(
        command_id, now, EVERYBODY, Action.DISMISS, letter.letter_id, now + COMMAND_VALID,
        digest=letter.digest, reason=why,
    )  # fmt: skip
