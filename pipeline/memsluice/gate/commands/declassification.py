"""Declassification: two reviewers lift the label of one content, and of nothing that was made from it.

What was contained moves to guidance, as a person's observed word at best (tier 3), if nothing but its label kept it
out: it is screened again, and what that finds refuses it, unless both sign that they set it aside (a reviewer may
override detection, as in a release). What is held stays held, without its label; a release decides.
Descendants that were labelled before stay so, and so does every session that saw it.
"""

from msgspec.structs import replace

from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Command, Tier, Zone
from memsluice.gate.checks import placing, rates
from memsluice.gate.commands import landed, review
from memsluice.gate.commands.despite import DESPITE_PARAMETER
from memsluice.gate.commands.review import Held
from memsluice.gate.commands.ruling import At, Carried, Ruling, refused
from memsluice.gate.commands.screening import bad_parameter, detected
from memsluice.gate.decision import TenantState
from memsluice.gate.policy.model import Policy
from memsluice.gate.policy.wording import Reach
from memsluice.gate.state.kinds import ENTRY, REVIEW, Labelled
from memsluice.gate.state.lineage import Label
from memsluice.gate.state.rows import TenantRows

TIER = Tier.USER_OBSERVED
"""The best that reviewed outside content becomes: no reviewer makes it an operator's or a verified person's word."""


def decide(
    rows: TenantRows,
    command: Command,
    carried: Carried,
    policy: Policy,
    at: At,
    state: TenantState,
) -> Ruling:
    """Lift a label, or say why not. ``carried`` is a contained entry's accepted record; a held one needs none."""
    despite = command.parameters.get(DESPITE_PARAMETER)
    if bad_parameter(command):
        return refused(Finding("commands.bad_parameter", Decision.REJECT, {"field": "parameters.despite"}))
    if review.is_held(rows, command):
        held = review.find(rows, command)
        return refused(held) if isinstance(held, Finding) else _held(rows, held, command, policy, at)
    row = landed.find(rows, command)
    if isinstance(row, Finding):
        return refused(row)
    if not row.taint:
        return refused(Finding("declassification.not_tainted", Decision.REJECT))
    entry = landed.current(rows, command, row, carried)
    if isinstance(entry, Finding):
        return refused(entry)
    where = landed.destination(
        entry.admission, Zone.GUIDANCE, entry.admission.visibility, policy.expires_ms(TIER, at.now_ms)
    )
    codes = detected(entry, row, policy, state, Reach.RELIED, TIER)
    against = (
        landed.immutable(rows, entry.admission, entry.admission.visibility)
        or placing.newer(rows, where, command.target, row.offset)
        or placing.better(rows, where, command.target, TIER)
        or (None if despite else _refusal(codes))
        or _limited(rows, command, policy, at)
    )
    if against is not None:
        return refused(against)
    becomes = replace(_lifted(row, command), decision=Decision.ACCEPT)
    code = "declassification.declassified"
    ruling = landed.move(rows, command, row, becomes, entry, where, at, code, taint=False)
    overridden = Finding("declassification.overridden", Decision.ACCEPT, {"codes": codes})
    return replace(ruling, findings=(overridden, *ruling.findings)) if codes else ruling


def _lifted(row: Labelled, command: Command) -> Labelled:
    """Return a row with its label lifted: an earlier revocation counts no more, and a later one counts again."""
    return replace(row, tier=TIER, taint=False, causes=(), lifted=command.id, revoked=None)


def _limited(rows: TenantRows, command: Command, policy: Policy, at: At) -> Finding | None:
    return rates.check_command(rows, command.action, policy.commands.declassifications_per_day, at.now_ms)


def _held(rows: TenantRows, held: Held, command: Command, policy: Policy, at: At) -> Ruling:
    row = held.row
    lineage = rows.get(ENTRY, command.target)
    if not row.taint and row.tier.trusted:
        return refused(Finding("declassification.not_tainted", Decision.REJECT))
    limited = _limited(rows, command, policy, at)
    if limited is not None:
        return refused(limited)
    after = _lifted(row, command)
    rows.put(REVIEW, held.row_id, replace(after, last=command.id))
    before, now = ({"tier": one.tier, "taint": one.taint, "causes": one.causes} for one in (row, after))
    detail = {"before": before, "after": now, "known": lineage is not None}
    return Ruling(
        (Finding("declassification.lifted", Decision.ACCEPT, detail),), Decision.RECORD, tau=Label(False, (), TIER)
    )


def _refusal(codes: list[str]) -> Finding | None:
    return Finding("declassification.detected", Decision.REJECT, {"codes": codes}) if codes else None
