"""Commands about landed entries, as they are signed: bound to the content, carrying it where it lands anew. Pure."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import orjson

from memsluice.client import requests
from memsluice.errors import ConfigError
from memsluice.escaping import visible
from memsluice.events.ids import scope_owner
from memsluice.events.limits import HELD_CHARS_MAX
from memsluice.events.models import Action, Command, Zone
from memsluice.gate.commands.revocation import OF_PARAMETER, SESSION
from memsluice.operations.commands.signing import COMMAND_VALID
from memsluice.operations.provenance.case import Case

PROPOSED_VALID = timedelta(days=3)
"""A command that waits for another person's signature holds longer; event ids are remembered for seven days."""


def order(
    tenant: str,
    action: Action,
    target: str,
    digest: str,
    command_id: str,
    now: datetime,
    *,
    reason: str = "",
    carried: str | None = None,
    valid: timedelta = COMMAND_VALID,
    parameters: Mapping[str, str] | None = None,
) -> Command:
    """Return the command. Raises ConfigError for an entry too large to be carried, MalformedEvent, LimitExceeded."""
    written = 0 if carried is None else len(orjson.dumps(carried))  # with its quotes escaped, as the command has it
    if written > HELD_CHARS_MAX:
        raise ConfigError(
            f"this entry is too large: a {action.value} carries the entry, {written} characters, and at most "
            f"{HELD_CHARS_MAX} fit. It can only be removed"
        )
    return requests.command(
        command_id, now, tenant, action, target, now + valid, digest=digest, reason=reason, held=carried,
        parameters=parameters,
    )  # fmt: skip


def protection(case: Case, command_id: str, now: datetime, reason: str = "") -> Command:
    """Return the command that protects the key of what agents follow. Raises ConfigError: why there is none."""
    entry = case.admission
    if entry is None or entry.zone is not Zone.GUIDANCE:
        raise ConfigError(f"entry {visible(case.life.event_id)} is not guidance, and only guidance can be protected")
    if entry.key is None:
        raise ConfigError(
            f"entry {visible(case.life.event_id)} has no key, so nothing can replace it and it needs no protection"
        )
    owner = scope_owner(entry.visibility, entry.principal, entry.session)
    where = {"visibility": entry.visibility.value, "namespace": entry.namespace} | ({"owner": owner} if owner else {})
    return requests.command(
        command_id, now, entry.tenant, Action.PROTECT, entry.key, now + COMMAND_VALID, digest=entry.content_digest,
        reason=reason, parameters=where,
    )  # fmt: skip


def distrust(tenant: str, session: str, command_id: str, now: datetime, reason: str = "") -> Command:
    """Return the command that taints a session from now on."""
    return requests.command(
        command_id,
        now,
        tenant,
        Action.REVOKE,
        session,
        now + COMMAND_VALID,
        reason=reason,
        parameters={OF_PARAMETER: SESSION},
    )
