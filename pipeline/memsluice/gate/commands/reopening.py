"""Reopening: a reviewer takes a rejection back, while the write is kept. It waits again, as it did before.

It takes its place in its principal's share once more, and lapses when it would have. What a policy had rejected
(``refused``) is no more than that again: a reopening is no way around the policy to a release.
"""

from msgspec.structs import replace

from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Command
from memsluice.gate.checks import holding
from memsluice.gate.commands import review
from memsluice.gate.commands.ruling import At, Ruling, recorded, refused
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.kinds import ENTRY, REVIEW, ReviewRow
from memsluice.gate.state.rows import TenantRows


def decide(rows: TenantRows, command: Command, policy: Policy, at: At) -> Ruling:
    """Let a rejected write wait again, or say why not."""
    held = review.named(rows, command)
    if isinstance(held, Finding):
        return refused(held)
    row = held.row
    if row.state != "rejected":
        return refused(Finding("reopening.not_rejected", Decision.REJECT, {"was": row.state, "by": row.by or row.last}))
    against = review.unbound(row, command)
    if against is not None:
        return refused(against)
    becomes = replace(row, state=_before(rows, command, row), by="", held_ms=at.now_ms, last=command.id)
    full = holding.check_again(rows, row.principal, becomes.state, policy, at.now_ms)
    if full is not None:
        return refused(full)
    rows.put(REVIEW, held.row_id, becomes)
    detail = {"codes": row.codes, "was": row.by, "until_ms": row.expires_ms, **review.came_from(becomes)}
    return recorded(Finding("reopening.reopened", Decision.ACCEPT, detail))


def _before(rows: TenantRows, command: Command, row: ReviewRow) -> str:
    """Return whether it was ``held`` or ``refused``: as *screen* decided it, since the row does not say.

    One that a replay had held after all is refused once more: fail closed, the next replay holds it again.
    """
    entry = rows.get(ENTRY, command.target)
    rejected = entry is not None and entry.offset == row.offset and entry.decision is Decision.REJECT
    return "refused" if rejected else "held"
