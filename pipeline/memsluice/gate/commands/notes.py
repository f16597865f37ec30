"""Notes: what reviewers tell each other about a held write, whom it is assigned to, and who works on it just now.

A note's text is in the audit alone; the row counts the notes, and has the assignment and the claim. A claim holds off
the decisions of others for a while (:func:`memsluice.gate.commands.review.claimed`), and nobody for good: they may set
it aside, in a command that says so. Notes decide nothing.
"""

from msgspec.structs import replace

from memsluice.envelope.seals import Identity
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Action, Command
from memsluice.gate.checks import rates
from memsluice.gate.commands import review
from memsluice.gate.commands.ruling import At, Ruling, recorded, refused
from memsluice.gate.state.kinds import REVIEW, DeskRow
from memsluice.gate.state.rows import TenantRows

ASSIGNEE_PARAMETER, NOBODY = "assignee", "-"
"""Parameter that names the reviewer whom the write is assigned to, by a name or a key id; ``-`` takes that back."""
CLAIM_PARAMETER = "claim_s"
"""Parameter with the seconds for which the signer claims the write; 0 gives it back."""
CLAIM_S_MAX = 8 * 3_600
NOTES_MAX = 100
"""Notes of one held write."""
NOTES_PER_DAY_MAX = 10_000
"""Notes of a tenant in 24 hours."""


def decide(rows: TenantRows, command: Command, by: Identity, at: At) -> Ruling:
    """Note what a reviewer says of a held, refused or rejected write, or say why not."""
    held = review.named(rows, command)
    if isinstance(held, Finding):
        return refused(held)
    row, desk = held.row, held.row.desk or DeskRow()
    if row.state == "released":
        return refused(Finding("notes.released", Decision.REJECT, {"by": row.by}))
    against = review.unbound(row, command) or _against(command, desk)
    if against is not None:
        return refused(against)
    after = replace(desk, notes=desk.notes + 1, assignee=_assignee(command, desk))
    claim_s = command.parameters.get(CLAIM_PARAMETER)
    if claim_s is not None:
        against = review.claimed(row, command, by, at.now_ms)
        if against is not None:
            return refused(against)
        until_ms = at.now_ms + int(claim_s) * 1_000 if int(claim_s) else 0
        after = replace(after, claimed_by=by.kid if until_ms else "", claim_until_ms=until_ms)
    limited = rates.check_command(rows, Action.NOTE, NOTES_PER_DAY_MAX, at.now_ms)
    if limited is not None:
        return refused(limited)
    rows.put(REVIEW, held.row_id, replace(row, desk=after))
    return recorded(Finding("notes.noted", Decision.ACCEPT, _told(command, after, at.now_ms)))


def _against(command: Command, desk: DeskRow) -> Finding | None:
    claim_s = command.parameters.get(CLAIM_PARAMETER)
    if claim_s is not None and not (claim_s.isascii() and claim_s.isdecimal() and int(claim_s) <= CLAIM_S_MAX):
        return Finding("commands.bad_parameter", Decision.REJECT, {"field": "parameters.claim_s"})
    if not command.reason and claim_s is None and ASSIGNEE_PARAMETER not in command.parameters:
        return Finding("notes.empty", Decision.REJECT)
    if desk.notes >= NOTES_MAX:
        return Finding("notes.full", Decision.REJECT, {"notes": desk.notes, "notes_max": NOTES_MAX})
    return None


def _assignee(command: Command, desk: DeskRow) -> str:
    named = command.parameters.get(ASSIGNEE_PARAMETER, desk.assignee)
    return "" if named == NOBODY else named


def _told(command: Command, desk: DeskRow, now_ms: int) -> dict[str, object]:
    """Return what was said, and how the write is assigned and claimed from then on, whoever did that."""
    claim = {"claimed_by": desk.claimed_by, "claim_until_ms": desk.claim_until_ms}
    stands = desk.claim_until_ms > now_ms
    return {"note": command.reason, "assignee": desk.assignee, **(claim if stands else {})}
