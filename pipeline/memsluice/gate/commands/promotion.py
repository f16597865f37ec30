"""Promotion: an untainted entry is shared with everybody of its tenant (seed 001, Rules 6 and 7).

The entry moves: it is in one place at any time, so that whatever is ordered about it later (a revocation above all)
has one place to reach, and nobody loses sight of it, since everybody sees what is shared.
"""

from msgspec.structs import replace

from memsluice.envelope.seals import Identity
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Command, Visibility, Zone
from memsluice.gate.checks import monitor, placing, rates
from memsluice.gate.commands import landed
from memsluice.gate.commands.despite import DESPITE_PARAMETER
from memsluice.gate.commands.ruling import At, Carried, Ruling, refused
from memsluice.gate.commands.screening import bad_parameter, detected
from memsluice.gate.decision import TenantState
from memsluice.gate.policy.model import Policy
from memsluice.gate.policy.wording import Reach
from memsluice.gate.state.rows import TenantRows


def decide(
    rows: TenantRows, command: Command, authoriser: Identity, carried: Carried, policy: Policy, at: At,
    state: TenantState,
) -> Ruling:  # fmt: skip
    """Share an entry, or say why not. It keeps its tier and its expiry; ``carried`` is its accepted record.

    It is screened again, as what everybody is given: what that finds refuses it, unless the signer sets it aside.
    """
    if bad_parameter(command):
        return refused(Finding("commands.bad_parameter", Decision.REJECT, {"field": "parameters.despite"}))
    row = landed.find(rows, command)
    if isinstance(row, Finding):
        return refused(row)
    unfit = monitor.check_promotion(authoriser, taint=row.taint or row.zone is not Zone.GUIDANCE)
    if unfit is not None:
        return refused(unfit)
    entry = landed.current(rows, command, row, carried)
    if isinstance(entry, Finding):
        return refused(entry)
    unfit = monitor.check_ancestors(rows, row, entry.admission.parents)
    if unfit is not None:
        return refused(unfit)
    if entry.admission.visibility is Visibility.SHARED:
        return refused(Finding("promotion.shared_before", Decision.REJECT))
    where = landed.destination(entry.admission, Zone.GUIDANCE, Visibility.SHARED, row.expires_ms)
    against = (
        landed.immutable(rows, entry.admission, entry.admission.visibility, Visibility.SHARED)
        or placing.newer(rows, where, command.target, row.offset)
        or placing.better(rows, where, command.target, row.tier)
    )
    if against is not None:
        return refused(against)
    codes = detected(entry, row, policy, state, Reach.SHARED, row.tier)
    if codes and not command.parameters.get(DESPITE_PARAMETER):
        return refused(Finding("promotion.detected", Decision.REJECT, {"codes": codes}))
    limited = rates.check_command(rows, command.action, policy.commands.promotions_per_day, at.now_ms)
    if limited is not None:  # last, since it counts: what is refused takes none of the day's promotions
        return refused(limited)
    becomes = replace(row, promoted=command.id)
    ruling = landed.move(rows, command, row, becomes, entry, where, at, "promotion.promoted")
    overridden = Finding("promotion.overridden", Decision.ACCEPT, {"codes": codes})
    return replace(ruling, findings=(overridden, *ruling.findings)) if codes else ruling
