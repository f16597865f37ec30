"""Renewal on review: a person looked at an entry, and it holds for its tier's whole time once more (seed 002)."""

from msgspec.structs import replace

from memsluice.envelope.records import Accepted
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Command
from memsluice.gate.checks import monitor
from memsluice.gate.commands import landed
from memsluice.gate.commands.ruling import At, Carried, Ruling, refused
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.kinds import EntryRow
from memsluice.gate.state.rows import TenantRows


def decide(rows: TenantRows, command: Command, carried: Carried, policy: Policy, at: At) -> Ruling:
    """Renew an entry where it lies, or say why not. Its label stays; ``carried`` is its accepted record."""
    row = landed.find(rows, command)
    if isinstance(row, Finding):
        return refused(row)
    until_ms = policy.expires_ms(row.tier, at.now_ms)
    entry = fit(rows, command, row, carried, until_ms)
    if isinstance(entry, Finding):
        return refused(entry)
    becomes = replace(row, reviewed=command.id)
    return prolonged(rows, command, row, becomes, entry, until_ms, at, "renewal.renewed")


def fit(
    rows: TenantRows, about: landed.About, row: EntryRow, carried: Carried, until_ms: int | None
) -> Accepted | Finding:
    """Return the entry as it lies there, if it may hold until then (Unix ms, None: for ever), or why it may not."""
    if row.expires_ms is None:
        return Finding("renewal.lasts", Decision.REJECT)
    if row.revoked:
        return Finding("renewal.revoked", Decision.REJECT, {"by": row.revoked})
    entry = landed.current(rows, about, row, carried)
    if isinstance(entry, Finding):
        return entry
    fell = [] if row.taint else monitor.fallen(rows, row, entry.admission.parents)  # what is tainted is data anyway
    if fell:
        return Finding("renewal.tainted", Decision.REJECT, {"causes": fell})
    if until_ms is not None and until_ms <= row.expires_ms:
        return Finding("renewal.no_later", Decision.REJECT)
    return entry


def prolonged(
    rows: TenantRows, about: landed.About, row: EntryRow, becomes: EntryRow, entry: Accepted, until_ms: int | None,
    at: At, code: str,
) -> Ruling:  # fmt: skip
    """Let a fit entry hold until then, where it lies; its row ``becomes`` another. ``code`` is the finding's."""
    assert row.zone is not None
    where = landed.destination(entry.admission, row.zone, entry.admission.visibility, until_ms)
    return landed.move(rows, about, row, becomes, entry, where, at, code)
