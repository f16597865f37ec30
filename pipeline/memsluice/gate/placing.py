"""Where an entry lands, and the row that keeps its lineage for those that will name it as a parent."""

from dataclasses import dataclass

from memsluice.envelope.seals import Sealed
from memsluice.events.ids import object_id, scope_owner
from memsluice.events.models import Visibility, Write, Zone
from memsluice.gate import monitor, ttl
from memsluice.gate.duplicates import ENTRY
from memsluice.gate.policy import Policy
from memsluice.gate.rows import TenantRows
from memsluice.gate.verdict import Decision


@dataclass(frozen=True, slots=True)
class Place:
    """Where a write lands: nothing of it is set where it does not. ``expires_ms`` is Unix ms, None for ever."""

    object_id: str | None = None
    zone: Zone | None = None
    visibility: Visibility | None = None
    expires_ms: int | None = None


NOWHERE = Place()


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
    return Place(str(target), zone, visibility, ttl.expires_ms(tau.tier, policy, now_ms))


def keep_lineage(
    rows: TenantRows,
    sealed: Sealed,
    tau: monitor.Label,
    decision: Decision,
    where: Place,
    version: int,
    expires_ms: int | None,
) -> None:
    """Put the row that tells later writes and recalls what an entry is: its tier, its taint, and whether it landed."""
    assert sealed.payload is not None
    lineage = {
        "tier": int(tau.tier),
        "taint": tau.taint or not tau.tier.trusted,
        "landed": where.object_id is not None,
        "decision": decision.value,
        "object": where.object_id,
        "version": version,
        "topic": sealed.position.topic,
        "offset": sealed.position.offset,
        "digest": sealed.payload_digest,
        "causes": list(tau.causes),
        "x": expires_ms,
    }
    rows.put(ENTRY, sealed.payload.id, lineage)
