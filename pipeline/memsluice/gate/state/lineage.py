"""The lineage row of an entry: what later writes and recalls go by, for as long as it lives."""

from dataclasses import dataclass

from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision
from memsluice.events.models import Tier, Write
from memsluice.gate.state.placement import Place, hold_object
from memsluice.gate.state.rows import TenantRows

ENTRY = "entry"
"""Kind of the rows that keep the lineage of what was written."""
CAUSES_MAX = 8
"""Causes of taint that a row names: the first ones. Beyond, the taint stays."""


@dataclass(frozen=True, slots=True)
class Label:
    """tau of a write, why, and its tier: the credential's, or that of the least trusted among what taints it."""

    taint: bool
    causes: tuple[str, ...]
    tier: Tier


def keep_lineage(
    rows: TenantRows,
    sealed: Sealed,
    tau: Label,
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
