"""Operators' commands, as the ordered stream meets them. What is not carried out is refused with a reason, audited."""

from memsluice.envelope.seals import Sealed
from memsluice.events.models import Action, Command, Visibility
from memsluice.gate import monitor
from memsluice.gate.rows import TenantRows
from memsluice.gate.verdict import Decision, Finding

ALL_TENANTS = "*"
"""The tenant of a command that is meant for every tenant."""
SCOPES = {scope.value: scope for scope in Visibility}


def decide(rows: TenantRows, sealed: Sealed, command: Command, now_ms: int) -> Finding | None:
    """Carry out a command on the rows, or return why not. Only ``protect`` is carried out so far."""
    if int(command.expires_at.timestamp() * 1000) <= now_ms:
        return Finding("commands.expired", Decision.REJECT, {"action": command.action.value})
    if command.action is not Action.PROTECT or sealed.tenant == ALL_TENANTS:  # it would protect nobody's key
        return Finding("commands.not_available", Decision.REJECT, {"action": command.action.value})
    return _protect(rows, command)


def _protect(rows: TenantRows, command: Command) -> Finding | None:
    """Set iota(k) = 1 for a key (seed 001, Rule 3). There is no command that unsets it."""
    scope = SCOPES.get(command.parameters.get("visibility", Visibility.PRINCIPAL.value))
    if scope is None:
        return Finding("commands.bad_parameter", Decision.REJECT, {"field": "parameters.visibility"})
    owner = command.parameters.get("owner", "")
    if (scope is Visibility.SHARED) == bool(owner):  # else it would protect what nobody can write
        return Finding("commands.bad_parameter", Decision.REJECT, {"field": "parameters.owner"})
    namespace = command.parameters.get("namespace", "default")
    row_id = monitor.protected_id(scope, owner, namespace, command.target)
    if rows.get(monitor.PROTECTED, row_id) is not None:
        return Finding("commands.already_protected", Decision.REJECT)
    rows.put(monitor.PROTECTED, row_id, {"by": command.id})
    return None
