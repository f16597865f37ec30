"""Which policy is in force, and the command that changes it.

A policy is put in force by an ordered command like any other change of a decision: every worker takes it up at the same
event, a replay of the log decides each event under the policy of its time, and the audit has its text. Before the first
activation, and for a partition that has none, the workers' own file holds.
"""

from collections.abc import Callable
from functools import lru_cache
from hashlib import sha256
from typing import Any

from memsluice.envelope.codec import canonical
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.errors import PolicyError
from memsluice.events.models import Command
from memsluice.events.names import EVERYBODY
from memsluice.gate.commands.ruling import Ruling, refused
from memsluice.gate.policy.model import Policy, PolicySet, parse
from memsluice.gate.state.kinds import POLICY, PolicyRow
from memsluice.gate.state.rows import Getter, TenantRows

APPROVALS = 2
PROBLEM_CHARS_MAX = 300
POLICIES_KNOWN_MAX = 1_024


def text_of(document: dict[str, Any]) -> str:
    """Return the text of a policy file as a command carries it: canonical JSON of what the file says."""
    return canonical(document).decode()


def digest_of(text: str) -> str:
    """Return what the command is bound to: SHA-256 of the policy's text, 64 hex digits."""
    return sha256(text.encode()).hexdigest()


@lru_cache(POLICIES_KNOWN_MAX)
def _read(text: str) -> PolicySet:
    return parse(text)


def in_force(rows: Getter, tenant: str, fallback: Callable[[str], Policy]) -> Policy:
    """Return the tenant's policy: its own activated one, else that of everybody, else the worker's file."""
    for owner in (tenant, EVERYBODY):
        data = rows.get(POLICY.key(owner))
        if data is not None:
            return _read(POLICY.load(data).text).of(tenant)
    return fallback(tenant)


def decide(rows: TenantRows, sealed: Sealed, policy: Policy) -> Ruling:
    """Put a policy in force, or say why not: then the old one stays. ``policy`` is the one in force now.

    Without a policy, the command ends a tenant's own one, which it names by its digest.
    """
    command = sealed.payload
    assert isinstance(command, Command)
    if len(sealed.approvers) < APPROVALS:
        return _refused("approvals", {"needs": APPROVALS, "has": len(sealed.approvers)})
    if command.policy is None:
        return _ended(rows, command)
    if command.digest != digest_of(command.policy):
        return _refused("other_digest", {})
    try:
        chosen = _read(command.policy).of(command.tenant)
    except PolicyError as error:
        return _refused("invalid", {"problem": str(error)[:PROBLEM_CHARS_MAX]})
    if command.tenant != EVERYBODY and _read(command.policy).tenants:
        return _refused("invalid", {"problem": "tenants: a tenant's own policy has no overrides"})
    rows.put(POLICY, "", PolicyRow(text=command.policy, by=command.id))
    return _done("activated", {"policy": chosen.digest, "was": policy.digest, "text": command.policy})


def _ended(rows: TenantRows, command: Command) -> Ruling:
    row = rows.get(POLICY, "")
    if row is None or command.tenant == EVERYBODY:
        return _refused("nothing_to_end", {})
    if command.digest != digest_of(row.text):
        return _refused("other_digest", {})
    rows.delete(POLICY, "")
    return _done("ended", {"was": _read(row.text).default.digest})


def _refused(what: str, detail: dict[str, Any]) -> Ruling:
    return refused(Finding(f"activation.{what}", Decision.REJECT, detail))


def _done(what: str, detail: dict[str, Any]) -> Ruling:
    return Ruling((Finding(f"activation.{what}", Decision.ACCEPT, detail),), Decision.RECORD)
