"""Replay: a held write is decided again, under the policy and the calibration in force now.

Only the check of its event id is left out, since it is the same event. Taint never falls: what tainted it when it was
held still does, and what taints its ancestors or its session now does too. A doubt about its sender or id stays. A
write counts against its rate once: here only where it was held for the rate.
"""

from msgspec.structs import replace

from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Command, Tier, Write
from memsluice.gate.checks import limits, monitor, rates, sessions
from memsluice.gate.checks.placing import gives_way, place
from memsluice.gate.commands import review
from memsluice.gate.commands.review import Held
from memsluice.gate.commands.ruling import At, Carried, Ruling, refused
from memsluice.gate.decision import Draft, TenantState
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.kinds import REVIEW, ReviewRow, SessionRow
from memsluice.gate.state.lineage import CAUSES_MAX, Label, keep_lineage
from memsluice.gate.state.placement import NOWHERE
from memsluice.gate.state.rows import TenantRows

DRY_PARAMETER = "dry"
"""Parameter of a replay that only says what it would decide."""


def decide(
    rows: TenantRows,
    command: Command,
    carried: Carried,
    policy: Policy,
    at: At,
    state: TenantState,
) -> Ruling:
    """Decide a held write again, or say why not; see :func:`memsluice.gate.commands.review.decide` for the arguments.

    What is held again stays in its place, with its new reasons; nothing is counted twice.
    """
    held = review.find(rows, command)
    if isinstance(held, Finding):
        return refused(held)
    if not review.is_the_held_one(held.row, command, carried):
        return refused(review.other_record(carried))
    assert isinstance(carried, Sealed)
    dry = DRY_PARAMETER in command.parameters
    view = rows.fork()
    again = _judged(view, held, carried, at, Draft.begun(state, policy, carried.vector(), carried))
    decision = again.decision()
    later = _overtaken(view, held, carried, policy, at, again)
    if later is not None:
        return refused(later)
    detail: dict[str, object] = {"was": held.row.codes, "would" if dry else "now": decision.value}
    code = Finding("replay.dry_run", Decision.ACCEPT, detail) if dry else _told(detail)
    findings = (*again.findings, code)
    if dry:
        return Ruling(findings, Decision.RECORD, NOWHERE, carried, again.tau, again.published.score)
    rows.adopt(view)
    return _carried_out(rows, held, command, carried, policy, at, again, findings)


def _overtaken(rows: TenantRows, held: Held, carried: Sealed, policy: Policy, at: At, again: Draft) -> Finding | None:
    """Return a finding where it would land in the place of what does not give way: then it stays held as it is."""
    assert isinstance(carried.payload, Write)
    assert again.tau is not None
    if not again.lands():
        return None
    where = place(carried.payload, again.tau, again.landing(), policy, at.now_ms)
    return gives_way(rows, where, carried.payload.id, held.row, again.tau.tier)


def _told(detail: dict[str, object]) -> Finding:
    return Finding("replay.decided", Decision.ACCEPT, detail)


def _judged(rows: TenantRows, held: Held, carried: Sealed, at: At, draft: Draft) -> Draft:
    """Return the findings of every check that still applies."""
    write, identity, row, policy = carried.payload, carried.identity, held.row, draft.policy
    assert isinstance(write, Write)
    assert identity is not None
    for code in review.standing(row):
        draft.add(Finding("replay.standing", Decision.QUARANTINE, {"code": code}))
    session = sessions.load(rows, write.session) or SessionRow(agent=write.agent, principal=write.principal)
    lifted = bool(row.lifted)  # by two reviewers, of this very content: that outlasts a replay
    now = monitor.label(rows, write, identity, session, policy, carried.sketch)
    draft.tau = Label.of(row) if lifted else _never_less(row, now, monitor.fallen(rows, row, write.parents))
    draft.add(*monitor.check_write(rows, write, identity, draft.tau, policy, lifted=lifted))
    draft.add(*limits.check(write, policy))
    if draft.decision() is not Decision.REJECT:
        draft.screen(write)
        if "rates.exceeded" in row.codes:
            draft.add(rates.check(rows, write.principal, identity, policy, at.now_ms))
    return draft


def _never_less(row: ReviewRow, now: Label, fell: list[str]) -> Label:
    """Return a label that is as tainted as the one the write was held with, as the one it would get now, and as what
    fell among its ancestors since."""
    causes = dict.fromkeys((*row.causes, *now.causes, *fell))
    tier = Tier(max(row.tier, now.tier, Tier.EXTERNAL_TOOL if fell else Tier.OPERATOR))
    return Label(row.taint or now.taint or bool(fell), tuple(causes)[:CAUSES_MAX], tier)


def _carried_out(
    rows: TenantRows,
    held: Held,
    command: Command,
    carried: Sealed,
    policy: Policy,
    at: At,
    again: Draft,
    findings: tuple[Finding, ...],
) -> Ruling:
    decision, tau, where = again.decision(), again.tau, NOWHERE
    assert tau is not None
    assert isinstance(carried.payload, Write)
    if again.lands():
        where = place(carried.payload, tau, again.landing(), policy, at.now_ms)
        keep_lineage(rows, carried, tau, decision, where, at.version, where.expires_ms, held.row.lifted)
        review.close(rows, held, "released", command, policy, at.now_ms)
    elif decision is Decision.REJECT:
        review.close(rows, held, "rejected", command, policy, at.now_ms)
    else:
        codes = {f.code for f in again.findings if f.decision is not Decision.ACCEPT} - {"replay.standing"}
        kept = tuple(sorted({*codes, *review.standing(held.row)}))
        row = replace(held.row, taint=tau.taint, causes=tau.causes, tier=tau.tier, codes=kept)
        rows.put(REVIEW, held.row_id, row)
    return Ruling(findings, decision, where, carried, tau, again.published.score, seen=again.default.seen)
