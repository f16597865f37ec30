"""Where an entry lands, and the rows that outlast that: its lineage, for those that will name it as a parent, and,
for a keyed entry, who holds the object of its key."""

from typing import Any

from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.ids import object_id, scope_owner
from memsluice.events.models import Visibility, Write, Zone
from memsluice.gate.checks import monitor
from memsluice.gate.checks.duplicates import ENTRY
from memsluice.gate.policy.model import Policy
from memsluice.gate.records import dataclass
from memsluice.gate.state import ttl
from memsluice.gate.state.rows import TenantRows


@dataclass(frozen=True, slots=True)
class Place:
    """Where a write lands: nothing of it is set where it does not. ``expires_ms`` is Unix ms, None for ever."""

    object_id: str | None = None
    zone: Zone | None = None
    visibility: Visibility | None = None
    expires_ms: int | None = None


NOWHERE = Place()
HOLDER = "holder"
"""Kind of the row of a keyed object: the event that lies there now, and where its write stood in the log."""


def place(write: Write, tau: monitor.Label, decision: Decision, policy: Policy, now_ms: int) -> Place:
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
    return Place(target, zone, visibility, ttl.expires_ms(tau.tier, policy, now_ms))


def keep_lineage(
    rows: TenantRows,
    sealed: Sealed,
    tau: monitor.Label,
    decision: Decision,
    where: Place,
    version: int,
    expires_ms: int | None,
    lifted: str | None = None,
) -> None:
    """Put the row that tells later writes and recalls what an entry is: its tier, its taint, and whether it landed.

    ``lifted`` is the command by which two reviewers lifted its label before it landed.
    """
    assert isinstance(sealed.payload, Write)
    lineage = {
        "tier": int(tau.tier),
        "taint": tau.taint or not tau.tier.trusted,
        "landed": where.object_id is not None,
        "decision": decision.value,
        "object": where.object_id,
        "zone": where.zone,
        "version": version,
        "topic": sealed.position.topic,
        "offset": sealed.position.offset,
        "digest": sealed.payload_digest,
        "content": sealed.content_digest,
        "keyed": sealed.payload.key is not None,
        "causes": list(tau.causes),
        "x": expires_ms,
    }
    if sealed.payload.parents:
        lineage["parents"] = list(sealed.payload.parents)
    if lifted:
        lineage["lifted"] = lifted
    rows.put(ENTRY, sealed.payload.id, lineage)
    if sealed.payload.key is not None:
        hold_object(rows, where, sealed.payload.id, sealed.position.offset)


def hold_object(rows: TenantRows, where: Place, event_id: str, offset: int) -> None:
    """Note that a keyed object is this event's now; ``offset`` is the intake offset of its write."""
    if where.object_id is not None:
        rows.put(HOLDER, where.object_id, {"event": event_id, "offset": offset, "x": where.expires_ms})


def holder(rows: TenantRows, object_id: str) -> Any:
    """Return the row of a keyed object that is still there; None where it is free, or the object has no key."""
    return rows.get(HOLDER, object_id)


def newer(rows: TenantRows, where: Place, event_id: str, offset: int) -> Finding | None:
    """Return a finding where a later write's content lies where this one would go.

    ``offset`` is the intake offset of its write. A key says what was written last: what waited for a reviewer, or is
    moved by one, never takes the place of what was written after it.
    """
    held = None if where.object_id is None else holder(rows, where.object_id)
    if held is None or held["event"] == event_id or held["offset"] < offset:
        return None
    return Finding("placing.newer", Decision.REJECT, {"by": held["event"]})


def better(rows: TenantRows, where: Place, event_id: str, tier: int) -> Finding | None:
    """Return a finding where what lies there comes from a better tier than what would go there.

    A write replaces what its own writer may write. Who shares an entry or lifts its label is about that content, and is
    no word on the other one: an operator's does not give way to it.
    """
    held = None if where.object_id is None else holder(rows, where.object_id)
    if held is None or held["event"] == event_id:
        return None
    there = rows.get(ENTRY, held["event"])
    if there is not None and there["tier"] >= tier:
        return None
    return Finding("placing.better", Decision.REJECT, {"by": held["event"]})


def gives_way(rows: TenantRows, where: Place, event_id: str, row: Any, tier: int) -> Finding | None:
    """Return a finding where a held write, let in, would take the place of what stays; ``row`` is its review row.

    Where its label was lifted (``lifted``), that is a word on this content alone, as with :func:`better`.
    """
    later = newer(rows, where, event_id, row["offset"])
    return later or (better(rows, where, event_id, tier) if row.get("lifted") else None)
