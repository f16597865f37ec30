"""The lineage row of an entry: what later writes and recalls go by, for as long as it lives."""

from msgspec import Struct

from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision
from memsluice.events.models import Tier, Write
from memsluice.gate.state.kinds import ENTRY, EntryRow, Labelled
from memsluice.gate.state.placement import Place, hold_object
from memsluice.gate.state.rows import TenantRows

CAUSES_MAX = 8
"""Causes of taint that a row names: the first ones. Beyond, the taint stays."""


class Label(Struct, frozen=True):
    """tau of a write, why, and its tier: the credential's, or that of the least trusted among what taints it."""

    taint: bool
    causes: tuple[str, ...]
    tier: Tier

    @staticmethod
    def of(row: Labelled) -> "Label":
        """Return the label that a row has."""
        return Label(row.taint, row.causes, row.tier)


def keep_lineage(
    rows: TenantRows,
    sealed: Sealed,
    tau: Label,
    decision: Decision,
    where: Place,
    version: int,
    expires_ms: int | None,
    lifted: str | None = None,
    reads: tuple[float, str] | None = None,
) -> None:
    """Put the row that tells later writes and recalls what an entry is: its tier, its taint, and whether it landed.

    ``lifted`` is the command by which two reviewers lifted its label before it landed, ``reads`` what its wording
    shows, and the models that say so; None: what an earlier row of it says.
    """
    assert isinstance(sealed.payload, Write)
    if reads is None and (before := rows.get(ENTRY, sealed.payload.id)) is not None and before.reads is not None:
        reads = before.reads, before.reader
    row = EntryRow(
        tier=tau.tier,
        taint=tau.taint or not tau.tier.trusted,
        landed=where.object_id is not None,
        decision=decision,
        object_id=where.object_id,
        zone=where.zone,
        version=version,
        topic=sealed.position.topic,
        offset=sealed.position.offset,
        digest=sealed.payload_digest,
        content=sealed.content_digest,
        keyed=sealed.payload.key is not None,
        causes=tau.causes,
        parents=sealed.payload.parents,
        lifted=lifted or "",
        reads=reads[0] if reads else None,
        reader=reads[1] if reads else "",
        expires_ms=expires_ms,
    )
    rows.put(ENTRY, sealed.payload.id, row)
    if sealed.payload.key is not None:
        hold_object(rows, where, sealed.payload.id, sealed.position.offset)
