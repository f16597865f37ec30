"""Revocation: what landed is contained or removed, what is held is labelled, and a session is distrusted from now on.

The lineage row stays behind, tainted or not landed, so whatever names the entry as a parent later is tainted. A removal
carries nothing and finds its object by the row alone: it works when the content is nowhere else any more. What lies in
guidance under a protected key, an operator alone takes out, and that ends the protection (:mod:`.protection`).
"""

from msgspec.structs import replace

from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Identity
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Action, Command, Tier, Zone
from memsluice.gate.checks import placing, sessions
from memsluice.gate.commands import landed, restoring, review
from memsluice.gate.commands.review import Held
from memsluice.gate.commands.ruling import At, Carried, Ruling, recorded, refused
from memsluice.gate.policy.model import Policy
from memsluice.gate.state import placement
from memsluice.gate.state.kinds import ENTRY, HOLDER, REVIEW, EntryRow, Gone, Labelled
from memsluice.gate.state.lineage import CAUSES_MAX, Label
from memsluice.gate.state.rows import TenantRows

OF_PARAMETER = "of"
SESSION = "session"
"""``parameters.of`` says that a revocation's target is a session, not an entry."""


def decide(rows: TenantRows, command: Command, by: Identity, carried: Carried, policy: Policy, at: At) -> Ruling:
    """Contain (revoke) or remove (withdraw) an entry, or taint a held one or a session, or say why not."""
    kind = command.parameters.get(OF_PARAMETER)
    if kind is not None:
        if kind != SESSION or command.action is not Action.REVOKE:
            return refused(Finding("commands.bad_parameter", Decision.REJECT, {"field": "parameters.of"}))
        return _session(rows, command, policy, at)
    if restoring.is_taken_back(rows, command):
        return _out_already(rows, command)
    if command.action is Action.REVOKE and review.is_held(rows, command):
        held = review.find(rows, command)
        return refused(held) if isinstance(held, Finding) else _held(rows, held, command)
    row = landed.find(rows, command)
    if isinstance(row, Finding):
        return refused(row)
    guarded = placement.guards(rows, row.object_id) and not placement.overtaken(rows, command.target, row)
    if guarded and by.role is not Role.OPERATOR:
        return refused(Finding("revocation.protected", Decision.REJECT, {"rule": 3}))
    out = command.action is Action.WITHDRAW
    ruling = _removed(rows, command, row) if out else _contained(rows, command, row, carried, policy, at)
    if row.object_id is None or not guarded or ruling.decision is Decision.REJECT:
        return ruling
    placement.unprotect(rows, row.object_id)
    freed = Finding("revocation.unprotected", Decision.ACCEPT)
    return replace(ruling, findings=(freed, *ruling.findings))


def _session(rows: TenantRows, command: Command, policy: Policy, at: At) -> Ruling:
    if sessions.load(rows, command.target) is None:
        return refused(Finding("revocation.unknown_session", Decision.REJECT))
    if not sessions.revoked(rows, command.target, _cause(command), policy, at.now_ms):
        return refused(Finding("revocation.nothing_to_do", Decision.REJECT))
    return recorded(Finding("revocation.session", Decision.ACCEPT, {"after": {"taint": True}}))


def _held(rows: TenantRows, held: Held, command: Command) -> Ruling:
    """Taint what waits for review: no release lets it in any more."""
    row = held.row
    if row.revoked:
        return refused(Finding("revocation.nothing_to_do", Decision.REJECT))
    rows.put(REVIEW, held.row_id, replace(_tainted(row, command), last=command.id))
    entry = rows.get(ENTRY, command.target)
    if entry is not None and not entry.landed:
        rows.put(ENTRY, command.target, _tainted(entry, command))
    detail = {"before": {"taint": row.taint}, "after": {"taint": True}}
    return recorded(Finding("revocation.held", Decision.ACCEPT, detail), Label.of(_tainted(row, command)))


def _out_already(rows: TenantRows, command: Command) -> Ruling:
    """Taint what look back took out: no release lets it in any more."""
    row = rows.get(ENTRY, command.target)
    assert row is not None
    unbound = landed.unbound(command, row)
    if unbound is not None:
        return refused(unbound)
    if row.revoked:
        return refused(Finding("revocation.nothing_to_do", Decision.REJECT))
    return _labelled(rows, command, row, _tainted(row, command))


def _contained(rows: TenantRows, command: Command, row: EntryRow, carried: Carried, policy: Policy, at: At) -> Ruling:
    after = _tainted(row, command)
    if landed.replaced(rows, command, row) is not None:  # its content is gone; what names it is tainted from now on
        return _labelled(rows, command, row, after)
    if row.zone is Zone.EXTERNAL:
        if row.taint:
            return refused(Finding("revocation.nothing_to_do", Decision.REJECT))
        return _labelled(rows, command, row, after)
    entry = landed.current(rows, command, row, carried)
    if isinstance(entry, Finding):
        return refused(entry)
    short = policy.expires_ms(after.tier, at.now_ms)
    ends = [moment for moment in (row.expires_ms, short) if moment is not None]
    where = landed.destination(entry.admission, Zone.EXTERNAL, entry.admission.visibility, min(ends, default=None))
    if placing.newer(rows, where, command.target, row.offset) is not None:  # no room there, and it must not stay here
        return _removed(rows, command, row)
    # Unlike where the label alone changes, the row keeps that it was once lifted: rows have always been written so.
    becomes = replace(after, decision=Decision.CONTAIN, lifted=row.lifted)
    return landed.move(rows, command, row, becomes, entry, where, at, "revocation.contained", taint=after.taint)


def _removed(rows: TenantRows, command: Command, row: EntryRow) -> Ruling:
    gone = landed.replaced(rows, command, row) is not None
    taken = Gone((row.object_id, row.version), rows.now_ms)  # recalls of it are on their way
    after = replace(_tainted(row, command), landed=False, decision=Decision.REJECT, object_id=None, gone=taken)
    rows.put(ENTRY, command.target, after)
    if not gone and row.object_id is not None:
        rows.delete(HOLDER, row.object_id)
    finding = landed.told("revocation.removed", row, after, {"object": row.object_id, "zone": row.zone})
    gives_up = () if gone else (landed.withdrawal(command, row),)
    return Ruling((finding,), Decision.RECORD, tau=Label.of(after), withdraws=gives_up)


def _labelled(rows: TenantRows, command: Command, row: EntryRow, after: EntryRow) -> Ruling:
    rows.put(ENTRY, command.target, after)
    return recorded(landed.told("revocation.labelled", row, after), Label.of(after))


def _tainted(row: Labelled, command: Command) -> Labelled:
    causes = (_cause(command), *row.causes)[:CAUSES_MAX]
    tier = max(row.tier, Tier.EXTERNAL_TOOL)
    return replace(row, taint=True, tier=tier, causes=causes, revoked=command.id, lifted=None)


def _cause(command: Command) -> str:
    return f"revoked:{command.id}"
