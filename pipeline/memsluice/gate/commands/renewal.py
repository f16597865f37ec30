"""Renewal on review: a person looked at an entry, and it holds for its tier's whole time once more (seed 002)."""

from msgspec.structs import replace

from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Command
from memsluice.gate.checks import monitor
from memsluice.gate.commands import landed
from memsluice.gate.commands.ruling import At, Carried, Ruling, refused
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.rows import TenantRows


def decide(rows: TenantRows, command: Command, carried: Carried, policy: Policy, at: At) -> Ruling:
    """Renew an entry where it lies, or say why not. Its label stays; ``carried`` is its accepted record."""
    row = landed.find(rows, command)
    if isinstance(row, Finding):
        return refused(row)
    if row.expires_ms is None:
        return refused(Finding("renewal.lasts", Decision.REJECT))
    if row.revoked:
        return refused(Finding("renewal.revoked", Decision.REJECT, {"by": row.revoked}))
    entry = landed.current(rows, command, row, carried)
    if isinstance(entry, Finding):
        return refused(entry)
    fell = [] if row.taint else monitor.fallen(rows, row, entry.admission.parents)  # what is tainted is data anyway
    if fell:
        return refused(Finding("renewal.tainted", Decision.REJECT, {"causes": fell}))
    expires_ms = policy.expires_ms(row.tier, at.now_ms)
    if expires_ms is not None and expires_ms <= row.expires_ms:
        return refused(Finding("renewal.no_later", Decision.REJECT))
    assert row.zone is not None
    where = landed.destination(entry.admission, row.zone, entry.admission.visibility, expires_ms)
    becomes = replace(row, reviewed=command.id)
    return landed.move(rows, command, row, becomes, entry, where, at, "renewal.renewed")
