"""What a reviewer decides about a held write: release, or reject (DESIGN, section 3, "Commands").

A release overrides what detection, rates and content rules found, and nothing else: an entry that is tainted, or whose
sender or event id was in doubt, stays held. The state keeps a small row a held write, never its content: a release
carries the sealed write itself, and counts only if it is, by position and digests, the one that is held.
"""

from dataclasses import dataclass
from typing import Any

from memsluice.envelope.seals import Sealed
from memsluice.events.models import Action, Command, Tier, Write
from memsluice.gate import holding, monitor
from memsluice.gate.monitor import Label
from memsluice.gate.placing import NOWHERE, Place, keep_lineage, place
from memsluice.gate.policy import DAY_MS, Policy
from memsluice.gate.rows import SEPARATOR, TenantRows
from memsluice.gate.verdict import SEVERITY, Decision, Finding

KIND = "review"
OVERRIDDEN = frozenset({"instructions", "memsad", "rates"})
"""Modules of the gate whose findings a release sets aside. The monitor's are found anew; any other's hold."""
OFFSET_PARAMETER = "offset"
"""Parameter that tells two held writes of one event id apart: the intake offset of the later one."""


@dataclass(frozen=True, slots=True)
class Ruling:
    """What a command came to. ``entry`` is the released write, with the label and the place it landed with."""

    findings: tuple[Finding, ...]
    decision: Decision
    place: Place = NOWHERE
    entry: Sealed | None = None
    tau: Label | None = None


def refused(code: Finding) -> Ruling:
    """Return the ruling of a command that is not carried out."""
    return Ruling((code,), Decision.REJECT)


def _row_id(event_id: str, offset: int | None) -> str:
    return event_id if offset is None else SEPARATOR.join((event_id, str(offset)))


def hold(rows: TenantRows, sealed: Sealed, tau: Label, findings: list[Finding], policy: Policy, now_ms: int) -> None:
    """Keep that a write is held, until it is decided or older than the policy's ``age_days``: at most 4 KiB a row."""
    write = sealed.payload
    assert isinstance(write, Write)
    first = not any(finding.code == "duplicates.other_content" for finding in findings)
    row = {
        "topic": sealed.position.topic,
        "offset": sealed.position.offset,
        "digest": sealed.payload_digest,
        "content": sealed.content_digest,
        "vector": sealed.vector_digest,
        "principal": write.principal,
        "held_ms": now_ms,
        "tier": int(tau.tier),
        "taint": tau.taint,
        "causes": list(tau.causes),
        "codes": sorted({f.code for f in findings if f.decision is not Decision.ACCEPT}),
        "state": "held",
        "by": "",
        "x": now_ms + policy.quarantine.age_days * DAY_MS,
    }
    rows.put(KIND, _row_id(write.id, None if first else sealed.position.offset), row)


def decide(
    rows: TenantRows, command: Command, carried: Sealed | None, policy: Policy, now_ms: int, version: int
) -> Ruling:
    """Carry out a release or a rejection, or say why not. ``version`` is the command's sealed offset.

    ``carried`` is the sealed write that the command carries, None where it carries none that the gate had sealed.
    """
    offset = command.parameters.get(OFFSET_PARAMETER)
    if offset is not None and not (offset.isascii() and offset.isdecimal()):
        return refused(Finding("review.bad_parameter", Decision.REJECT, {"field": "parameters.offset"}))
    row_id = _row_id(command.target, None if offset is None else int(offset))
    row = rows.get(KIND, row_id)
    if row is None:
        return refused(Finding("review.unknown", Decision.REJECT))
    if row["state"] != "held":
        return refused(Finding("review.decided", Decision.REJECT, {"was": row["state"], "by": row["by"]}))
    if command.digest != row["content"]:
        return refused(Finding("review.other_digest", Decision.REJECT))
    if command.action is Action.REJECT:
        ruling = Ruling((Finding("review.rejected", Decision.ACCEPT, {"codes": row["codes"]}),), Decision.RECORD)
    else:
        ruling = _release(rows, row, command, carried, policy, now_ms, version)
    if ruling.decision is not Decision.REJECT:
        state = "rejected" if command.action is Action.REJECT else "released"
        rows.put(KIND, row_id, {**row, "state": state, "by": command.id})
        holding.give_back(rows, row["principal"], row["held_ms"], policy, now_ms)
    return ruling


def _release(
    rows: TenantRows, row: Any, command: Command, carried: Sealed | None, policy: Policy, now_ms: int, version: int
) -> Ruling:
    if row["taint"]:
        return refused(Finding("review.tainted", Decision.REJECT, {"causes": row["causes"]}))
    firm = [code for code in row["codes"] if code.split(".")[0] not in OVERRIDDEN | {"monitor"}]
    if firm:
        return refused(Finding("review.not_overridable", Decision.REJECT, {"codes": firm}))
    if not _is_the_held_one(row, command, carried):
        return refused(Finding("review.other_record", Decision.REJECT, {"carried": carried is not None}))
    assert carried is not None
    assert isinstance(carried.payload, Write)
    assert carried.identity is not None
    tau = Label(row["taint"], tuple(row["causes"]), Tier(row["tier"]))
    standing = monitor.check_write(rows, carried.payload, carried.identity, tau, policy)
    decision = max((f.decision for f in standing), key=SEVERITY.index, default=Decision.ACCEPT)
    if decision is Decision.REJECT:
        return Ruling(tuple(standing), Decision.REJECT)
    where = place(carried.payload, tau, decision, policy, now_ms)
    keep_lineage(rows, carried, tau, decision, where, version, where.expires_ms)
    overridden = [code for code in row["codes"] if code.split(".")[0] in OVERRIDDEN]
    released = Finding("review.released", Decision.ACCEPT, {"overridden": overridden})
    return Ruling((*standing, released), decision, where, carried, tau)


def _is_the_held_one(row: Any, command: Command, carried: Sealed | None) -> bool:
    """Whether the carried write is what was held: the same intake position, payload, content and vector."""
    if carried is None or not isinstance(carried.payload, Write) or carried.payload.id != command.target:
        return False
    place_of = (carried.position.topic, carried.position.offset)
    digests = (carried.payload_digest, carried.content_digest, carried.vector_digest)
    return place_of == (row["topic"], row["offset"]) and digests == (row["digest"], row["content"], row["vector"])
