"""Restoring: a reviewer lets in again what a recall's look back took out. It overrides what a release does.

Look back is detection: it says nothing about where an entry came from. So what may release a held write may restore an
entry, and what a release never overrides (taint, a protected key, a later write in its place) stops this too. The state
keeps no content: the command carries the entry's record of memory.accepted.v1. Restored, it counts as reviewed, and no
recall looks back on it again. What was made from it meanwhile keeps its label.
"""

from msgspec.structs import replace

from memsluice.envelope.verdict import Finding
from memsluice.events.models import Command
from memsluice.gate.checks import monitor, placing
from memsluice.gate.commands import landed
from memsluice.gate.commands.review import OFFSET_PARAMETER, tainted
from memsluice.gate.commands.ruling import At, Carried, Ruling, refused
from memsluice.gate.state.kinds import ENTRY, Gone, Looked
from memsluice.gate.state.placement import Place
from memsluice.gate.state.rows import TenantRows


def is_taken_back(rows: TenantRows, command: Command) -> bool:
    """Whether a command is about an entry that look back took out, and not about a held write of that id."""
    row = rows.get(ENTRY, command.target)
    return row is not None and isinstance(row.looked, Looked) and OFFSET_PARAMETER not in command.parameters


def decide(rows: TenantRows, command: Command, carried: Carried, at: At) -> Ruling:
    """Put the entry back where it lay, with its label and its end as they were, or say why not."""
    row = rows.get(ENTRY, command.target)
    assert row is not None
    assert isinstance(row.gone, Gone)
    assert isinstance(row.looked, Looked)
    unbound = landed.unbound(command, row)
    if unbound is not None:
        return refused(unbound)
    name, version = row.gone.was
    was = replace(row, object_id=name, version=version)
    entry = landed.same(command, was, carried)
    if isinstance(entry, Finding):
        return refused(entry)
    causes = row.causes if row.revoked else monitor.fallen(rows, row, entry.admission.parents)
    if causes:
        return refused(tainted(causes))
    where = Place(name, row.zone, entry.admission.visibility, row.expires_ms)
    fixed = landed.immutable(rows, entry.admission, entry.admission.visibility)
    against = fixed or placing.newer(rows, where, command.target, row.offset)
    if against is not None:
        return refused(against)
    before = row.looked
    becomes = replace(was, taint=before.taint, decision=before.decision, landed=True, looked=None, gone=None)
    return landed.move(rows, command, was, becomes, entry, where, at, "restoring.restored", taint=before.taint)
