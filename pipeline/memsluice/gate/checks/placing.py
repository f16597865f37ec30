"""Where a write would land, and what lies there already that does not give way to it."""

from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.ids import object_id, scope_owner
from memsluice.events.models import Write, Zone
from memsluice.gate.checks import monitor
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.kinds import ENTRY, ReviewRow
from memsluice.gate.state.lineage import Label
from memsluice.gate.state.placement import Place, holder
from memsluice.gate.state.rows import TenantRows


def place(write: Write, tau: Label, decision: Decision, policy: Policy, now_ms: int) -> Place:
    """Return where a write of this label lands: the external zone where it is contained, else guidance."""
    zone = Zone.EXTERNAL if decision is Decision.CONTAIN else Zone.GUIDANCE
    visibility = monitor.effective_visibility(write, tau.tier)
    target = object_id(
        tenant=write.tenant,
        zone=zone,
        visibility=visibility,
        owner=scope_owner(visibility, write.principal, write.session),
        namespace=write.namespace,
        key=write.key,
        event_id=write.id,
    )
    return Place(target, zone, visibility, policy.expires_ms(tau.tier, now_ms))


def newer(rows: TenantRows, where: Place, event_id: str, offset: int) -> Finding | None:
    """Return a finding where a later write's content lies where this one would go.

    ``offset`` is the intake offset of its write. A key says what was written last: what waited for a reviewer, or is
    moved by one, never takes the place of what was written after it.
    """
    held = holder(rows, where.object_id)
    if held is None or held.event == event_id or held.offset < offset:
        return None
    return Finding("placing.newer", Decision.REJECT, {"by": held.event})


def better(rows: TenantRows, where: Place, event_id: str, tier: int) -> Finding | None:
    """Return a finding where what lies there comes from a better tier than what would go there.

    A write replaces what its own writer may write. Who shares an entry or lifts its label is about that content, and is
    no word on the other one: an operator's does not give way to it.
    """
    held = holder(rows, where.object_id)
    if held is None or held.event == event_id:
        return None
    there = rows.get(ENTRY, held.event)
    if there is not None and there.tier >= tier:
        return None
    return Finding("placing.better", Decision.REJECT, {"by": held.event})


def gives_way(rows: TenantRows, where: Place, event_id: str, row: ReviewRow, tier: int) -> Finding | None:
    """Return a finding where a held write, let in, would take the place of what stays; ``row`` is its review row.

    Where its label was lifted (``lifted``), that is a word on this content alone, as with :func:`better`.
    """
    later = newer(rows, where, event_id, row.offset)
    return later or (better(rows, where, event_id, tier) if row.lifted else None)
