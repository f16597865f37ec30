"""The commands that put a policy in force, or end a tenant's own. Pure but for reading the audit."""

from datetime import datetime, timedelta

from memsluice.client import requests
from memsluice.envelope.keys import Keyring
from memsluice.errors import NotFound, PolicyError
from memsluice.events.limits import POLICY_CHARS_MAX
from memsluice.events.models import Action, Command
from memsluice.events.names import EVERYBODY
from memsluice.gate.commands.activation import digest_of, text_of
from memsluice.gate.policy import model as policies
from memsluice.operations.commands.signing import COMMAND_VALID
from memsluice.operations.policies.history import in_force
from memsluice.readers.base import TopicReader
from memsluice.topics.names import PARTITIONS


def activation(
    file: str, tenant: str, command_id: str, now: datetime, why: str = "", valid: timedelta = COMMAND_VALID
) -> Command:
    """Return the command that puts a policy file's text in force. Raises PolicyError for what the gate would refuse."""
    chosen = policies.parse(file)
    if tenant != EVERYBODY and chosen.tenants:
        raise PolicyError("tenants: a tenant's own policy has no overrides")
    text = text_of({name: value for name, value in policies.document(file).items() if name != "tenants" or value})
    if len(text) > POLICY_CHARS_MAX:
        raise PolicyError(
            f"is {len(text)} characters as JSON, and at most {POLICY_CHARS_MAX} fit: leave out what is the default, or "
            "activate a tenant's own policy by --tenant"
        )
    return _command(command_id, now, tenant, chosen.of(tenant).name, digest_of(text), why, text, valid)


def ending(audit: TopicReader, keyring: Keyring, tenant: str, command_id: str, now: datetime, why: str = "") -> Command:
    """Return the command that ends a tenant's own policy. Raises ConfigError where the audit knows of none."""
    found = in_force(audit, keyring, tenant, PARTITIONS)
    if found is None or found.tenant == EVERYBODY or found.text is None:
        raise NotFound(f"tenant {tenant!r} has no policy of its own in force, so there is none to end")
    return _command(command_id, now, tenant, found.policies().default.name, digest_of(found.text), why, None)


def _command(
    command_id: str,
    now: datetime,
    tenant: str,
    name: str,
    digest: str,
    why: str,
    text: str | None,
    valid: timedelta = COMMAND_VALID,
) -> Command:
    return requests.command(
        command_id, now, tenant, Action.ACTIVATE, name, now + valid, digest=digest, reason=why, policy=text
    )
