"""What a reviewer decides about a held write: release, or reject.

A release overrides what detection, rates and content rules found, and nothing else: an entry that is tainted, or whose
sender or event id was in doubt, stays held; so does one whose key was written anew since. The state keeps a small row a
held write, never its content: a release carries the sealed write itself, and counts only if it is, by position and
digests, the one that is held.

A command may say what its signer went by: the content that the screen showed (``shown``), and the event by which the
write stood (``decided_on``). Where that is not what the gate has, it is refused, and nothing is decided.
"""

from collections.abc import Sequence
from hashlib import sha256

from msgspec import Struct
from msgspec.structs import replace

from memsluice.envelope.seals import Identity, Sealed
from memsluice.envelope.verdict import SEVERITY, Decision, Finding, rule_of
from memsluice.events.models import Action, Command, Write
from memsluice.gate.checks import holding, monitor
from memsluice.gate.checks.placing import gives_way, place
from memsluice.gate.commands.ruling import At, Carried, Ruling, refused
from memsluice.gate.policy.model import DAY_MS, Policy
from memsluice.gate.state.kinds import ENTRY, REVIEW, ReviewRow, Weighed
from memsluice.gate.state.lineage import Label, keep_lineage
from memsluice.gate.state.rows import SEPARATOR, TenantRows

OVERRIDDEN = frozenset({
    "detect", "drift", "facts", "instructions", "memsad", "overrides", "rates", "screening", "sensitive", "wording",
})  # fmt: skip
"""Modules of the gate whose findings a release sets aside. The monitor's are found anew; any other's hold."""
OFFSET_PARAMETER = "offset"
"""Parameter that tells two held writes of one event id apart: the intake offset of the later one."""
SHOWN_PARAMETER = "shown"
"""Parameter with the SHA-256 of the content that the signer's screen showed, as UTF-8, in 64 lower-case hex digits."""
DECIDED_ON_PARAMETER = "decided_on"
"""Parameter with the id of the event by which the write stood when its signer decided: the write's own, or the id of
the last command that decided it anew."""
DESPITE_CLAIM_PARAMETER, YES = "despite_claim", "yes"
"""Parameter by which its signer sets another reviewer's claim aside."""
ABOUT_HELD = frozenset({
    Action.RELEASE, Action.REJECT, Action.REPLAY, Action.APPEAL, Action.DECLASSIFY, Action.REVOKE, Action.REOPEN,
    Action.NOTE,
})  # fmt: skip
"""Commands that may be about a held write."""
ABOUT_REFUSED = frozenset({Action.REJECT, Action.REPLAY, Action.REVOKE})
"""Those of them that may be about one that was rejected: a policy refused it, and a policy alone lets it in."""
WAITING = ("held", "refused")
"""States of what is not decided for good."""
ANEW = frozenset({"holding", "limits", "monitor"})
"""Modules whose findings a replay finds anew, or does not."""


class Held(Struct, frozen=True):
    """The row of a held write, and its id."""

    row_id: str
    row: ReviewRow


def _row_id(event_id: str, offset: int | None) -> str:
    return event_id if offset is None else SEPARATOR.join((event_id, str(offset)))


def hold(
    rows: TenantRows,
    sealed: Sealed,
    tau: Label,
    findings: list[Finding],
    weighed: dict[str, Weighed],
    policy: Policy,
    now_ms: int,
    *,
    state: str = "held",
) -> int:
    """Keep that a write is held, until it is decided or older than the policy's ``age_days``: at most 4 KiB a row.

    ``state`` is ``refused`` of what is rejected and kept. Returns when it lapses (Unix ms): a later policy changes
    nothing about that.
    """
    write = sealed.payload
    assert isinstance(write, Write)
    first = not any(finding.code == "duplicates.other_content" for finding in findings)
    until_ms = now_ms + policy.quarantine.age_days * DAY_MS
    row = ReviewRow(
        topic=sealed.position.topic,
        offset=sealed.position.offset,
        digest=sealed.payload_digest,
        content=sealed.content_digest,
        vector=sealed.vector_digest,
        principal=write.principal,
        kid=sealed.identity.kid if sealed.identity is not None else "",
        held_ms=now_ms,
        tier=tau.tier,
        taint=tau.taint,
        causes=tau.causes,
        codes=tuple(sorted({f.code for f in findings if f.decision is not Decision.ACCEPT})),
        state=state,
        by="",
        weighed=weighed,
        expires_ms=until_ms,
    )
    rows.put(REVIEW, _row_id(write.id, None if first else sealed.position.offset), row)
    return until_ms


def offset_of(rows: TenantRows, command: Command) -> int | None:
    """Return the intake offset of the held or decided write that a command names; None where it names none.

    It names the first of an event id, or by ``parameters.offset`` a later one. Where an entry of that id lies in memory
    it is that one: its id may have been free again since a write of that name was held.
    """
    if command.action not in ABOUT_HELD:
        return None
    later = command.parameters.get(OFFSET_PARAMETER)
    row = rows.get(REVIEW, command.target if later is None else SEPARATOR.join((command.target, later)))
    entry = rows.get(ENTRY, command.target) if row is not None and later is None else None
    if entry is not None and entry.landed:
        return entry.offset
    return None if row is None else row.offset


def is_held(rows: TenantRows, command: Command) -> bool:
    """Whether a command that may be about either is about a held write, and not about a landed entry."""
    entry = rows.get(ENTRY, command.target)
    landed = entry is not None and entry.landed
    return OFFSET_PARAMETER in command.parameters or (not landed and rows.get(REVIEW, command.target) is not None)


def not_shown(command: Command, carried: Carried) -> Finding | None:
    """Return a finding where a command says what its signer was shown, and is about another content.

    It then has to carry that content, whatever it does: the one that its digest names, and that was shown.
    """
    shown = command.parameters.get(SHOWN_PARAMETER)
    if shown is None:
        return None
    if isinstance(carried, Sealed):
        content, digest = getattr(carried.payload, "content", None), carried.content_digest
    elif carried is not None:
        content, digest = carried.content, carried.admission.content_digest
    else:
        return Finding("review.not_shown", Decision.REJECT, {"carried": False})
    if content is None or digest != command.digest or sha256(content.encode()).hexdigest() != shown:
        return Finding("review.not_shown", Decision.REJECT, {"carried": True})
    return None


def named(rows: TenantRows, command: Command) -> Held | Finding:
    """Return the write that a command names, whatever became of it, or why there is none."""
    offset = command.parameters.get(OFFSET_PARAMETER)
    if offset is not None and not (offset.isascii() and offset.isdecimal()):
        return Finding("review.bad_parameter", Decision.REJECT, {"field": "parameters.offset"})
    row_id = _row_id(command.target, None if offset is None else int(offset))
    row = rows.get(REVIEW, row_id)
    if row is None:
        return Finding("review.unknown", Decision.REJECT)
    return Held(row_id, row)


def find(rows: TenantRows, command: Command, *, bound: bool = True) -> Held | Finding:
    """Return the held write that a command is about, or why there is none that it may decide.

    ``bound`` asks for its content's digest, which only those who decide can know. A refused write is found by those
    commands alone that let nothing in by themselves (ABOUT_REFUSED).
    """
    held = named(rows, command)
    if isinstance(held, Finding):
        return held
    row = held.row
    if row.state == "refused" and command.action not in ABOUT_REFUSED:
        return Finding("review.refused", Decision.REJECT, {"codes": row.codes})
    if row.state not in WAITING:
        return Finding("review.decided", Decision.REJECT, {"was": row.state, "by": row.by})
    return (unbound(row, command) if bound else None) or held


def unbound(row: ReviewRow, command: Command) -> Finding | None:
    """Return a finding where a command is bound to another content, or to how a write stood before.

    Of a row that names no such command, nothing is known that came between.
    """
    if command.digest != row.content:
        return Finding("review.other_digest", Decision.REJECT)
    decided_on, last = command.parameters.get(DECIDED_ON_PARAMETER), row.last if row.state in WAITING else row.by
    if decided_on is not None and last and decided_on != last:
        return Finding("review.stale", Decision.REJECT, {"by": last})
    return None


def claimed(row: ReviewRow, command: Command, by: Identity, now_ms: int) -> Finding | None:
    """Return a finding where another reviewer's claim stands, which the command does not set aside."""
    desk = row.desk
    if desk is None or desk.claim_until_ms <= now_ms or desk.claimed_by == by.kid:
        return None
    if command.parameters.get(DESPITE_CLAIM_PARAMETER) == YES:
        return None
    return Finding("review.claimed", Decision.REJECT, {"by": desk.claimed_by, "until_ms": desk.claim_until_ms})


def close(rows: TenantRows, held: Held, state: str, command: Command, policy: Policy, now_ms: int) -> None:
    """Keep that a held write is decided, and free its place in its principal's share. No claim outlasts that."""
    desk = None if held.row.desk is None else replace(held.row.desk, claimed_by="", claim_until_ms=0)
    rows.put(REVIEW, held.row_id, replace(held.row, state=state, by=command.id, desk=desk))
    holding.give_back(rows, held.row.principal, held.row.state, held.row.held_ms, policy, now_ms)


def decide(rows: TenantRows, command: Command, by: Identity, carried: Carried, policy: Policy, at: At) -> Ruling:
    """Carry out a release or a rejection, or say why not; ``by`` is who signed it.

    ``carried`` is the sealed write that the command carries, None where it carries none that the gate had sealed.
    """
    held = find(rows, command)
    if isinstance(held, Finding):
        return refused(held)
    theirs = claimed(held.row, command, by, at.now_ms)
    if theirs is not None:
        return refused(theirs)
    if command.action is Action.REJECT:
        close(rows, held, "rejected", command, policy, at.now_ms)
        detail = {"codes": held.row.codes, **came_from(held.row)}
        return Ruling((Finding("review.rejected", Decision.ACCEPT, detail),), Decision.RECORD)
    ruling = _release(rows, held.row, command, carried, policy, at)
    if ruling.entry is not None:
        close(rows, held, "released", command, policy, at.now_ms)
    return ruling


def _release(rows: TenantRows, row: ReviewRow, command: Command, carried: Carried, policy: Policy, at: At) -> Ruling:
    if row.taint:
        return refused(tainted(row.causes))
    firm = standing(row)
    if firm:
        return refused(Finding("review.not_overridable", Decision.REJECT, {"codes": firm}))
    if not is_the_held_one(row, command, carried):
        return refused(other_record(carried))
    assert isinstance(carried, Sealed)
    assert isinstance(carried.payload, Write)
    assert carried.identity is not None
    fell = monitor.fallen(rows, row, carried.payload.parents)  # since it was held: its label does not know of that
    if fell:
        return refused(tainted(fell))
    tau = Label.of(row)
    lifted = bool(row.lifted)
    found = monitor.check_write(rows, carried.payload, carried.identity, tau, policy, lifted=lifted)
    decision = max((f.decision for f in found), key=SEVERITY.index, default=Decision.ACCEPT)
    if decision is Decision.REJECT:
        return Ruling(tuple(found), Decision.REJECT)
    where = place(carried.payload, tau, decision, policy, at.now_ms)
    stays = gives_way(rows, where, command.target, row, tau.tier)
    if stays is not None:  # it stays held: its key may be free again some day
        return refused(stays)
    keep_lineage(rows, carried, tau, decision, where, at.version, where.expires_ms, row.lifted)
    overridden = [code for code in row.codes if rule_of(code) in OVERRIDDEN]
    released = Finding("review.released", Decision.ACCEPT, {"overridden": overridden})
    return Ruling((*found, released), decision, where, carried, tau)


def appeal(rows: TenantRows, command: Command, identity: Identity) -> Ruling:
    """Note once that whoever wrote a held write asks for a review. It decides nothing and frees no place."""
    held = find(rows, command, bound=False)
    if isinstance(held, Finding):
        return refused(held)
    if held.row.kid != identity.kid:
        return refused(Finding("review.not_the_writer", Decision.REJECT))
    if held.row.appeal:
        return refused(Finding("review.appealed_before", Decision.REJECT, {"by": held.row.appeal}))
    rows.put(REVIEW, held.row_id, replace(held.row, appeal=command.id))
    return Ruling((Finding("review.appealed", Decision.ACCEPT, {"codes": held.row.codes}),), Decision.RECORD)


def tainted(causes: Sequence[str]) -> Finding:
    """Return the finding on what nobody lets in: it is tainted, for these causes."""
    return Finding("review.tainted", Decision.REJECT, {"causes": list(causes)})


def other_record(carried: Carried) -> Finding:
    """Return the finding on a command that does not carry the write that is held."""
    return Finding("review.other_record", Decision.REJECT, {"carried": carried is not None})


def standing(row: ReviewRow) -> list[str]:
    """Return the codes for which a write is held that nobody overrides: doubts about its sender or its id."""
    return [code for code in row.codes if rule_of(code) not in OVERRIDDEN | ANEW]


def came_from(row: ReviewRow) -> dict[str, object]:
    """Return what a finding says of a write that was not held but refused; nothing of one that was held."""
    return {"from": "refused"} if row.state == "refused" else {}


def is_the_held_one(row: ReviewRow, command: Command, carried: Carried) -> bool:
    """Whether the carried write is what was held: the same intake position, payload, content and vector."""
    if (
        not isinstance(carried, Sealed)
        or not isinstance(carried.payload, Write)
        or carried.payload.id != command.target
    ):
        return False
    place_of = (carried.position.topic, carried.position.offset)
    digests = (carried.payload_digest, carried.content_digest, carried.vector_digest)
    return place_of == (row.topic, row.offset) and digests == (row.digest, row.content, row.vector)
