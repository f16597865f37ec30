"""Protection: an operator sets iota(k) = 1, and nothing changes what agents follow under that key (seed 001, Rule 3).

No write, no promotion, no release, no recall's look back, and no reviewer changes it or takes it out (Theorem 1,
Part I). What an operator set, an operator ends, by taking the entry out: a revocation or withdrawal of the entry that
lies there ends the protection with it, and the key is free. What is kept outside, as data, under a protected key, is
followed by nobody, and a reviewer may remove it.
"""

from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.ids import object_id
from memsluice.events.models import Command, Visibility, Zone
from memsluice.gate.commands.ruling import Ruling, refused
from memsluice.gate.state.kinds import ENTRY, PROTECTED, HolderRow, ProtectedRow
from memsluice.gate.state.placement import holder, protected_id
from memsluice.gate.state.rows import TenantRows

SCOPES = {scope.value: scope for scope in Visibility}


def decide(rows: TenantRows, command: Command) -> Ruling:
    """Protect a key, or say why not. With a digest: only while what lies there has that content.

    A second row goes by the id of the key's guidance object: whatever is about an entry knows that alone.
    """
    scope = SCOPES.get(command.parameters.get("visibility", Visibility.PRINCIPAL.value))
    if scope is None:
        return refused(Finding("commands.bad_parameter", Decision.REJECT, {"field": "parameters.visibility"}))
    owner = command.parameters.get("owner", "")
    if (scope is Visibility.SHARED) == bool(owner):  # else it would protect what nobody can write
        return refused(Finding("commands.bad_parameter", Decision.REJECT, {"field": "parameters.owner"}))
    namespace = command.parameters.get("namespace", "default")
    row_id = protected_id(scope, owner, namespace, command.target)
    name = object_id(
        tenant=rows.tenant, zone=Zone.GUIDANCE, visibility=scope, owner=owner, namespace=namespace, key=command.target,
        event_id="",
    )  # fmt: skip
    if rows.get(PROTECTED, name) is not None:
        return refused(Finding("commands.already_protected", Decision.REJECT))
    there = holder(rows, name)
    if command.digest is not None and command.digest != _content(rows, there):
        return refused(Finding("protection.other_content", Decision.REJECT))
    rows.put(PROTECTED, row_id, ProtectedRow(by=command.id))
    rows.put(PROTECTED, name, ProtectedRow(by=command.id, key=row_id))
    told = {
        "visibility": scope.value, "owner": owner, "namespace": namespace, "object": name,
        "entry": None if there is None else there.event,
    }  # fmt: skip
    return Ruling((Finding("protection.protected", Decision.ACCEPT, told),), Decision.RECORD)


def _content(rows: TenantRows, there: HolderRow | None) -> str | None:
    """Return the digest of what lies in a keyed object now, by its holder's row."""
    entry = None if there is None else rows.get(ENTRY, there.event)
    return None if entry is None else entry.content
