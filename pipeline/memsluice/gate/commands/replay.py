"""Replay: a held or refused write is decided again, under the policy and the calibration in force now.

Only the check of its event id is left out, since it is the same event. Taint never falls: what tainted it when it was
held still does, and what taints its ancestors or its session now does too. A doubt about its sender or id stays. A
write counts against its rate once: here only where it was held for the rate, or refused before it was counted.

What a detector held, or a rule on contents, is not let in because that learned more, or the tenant's state is another:
while the rule's own part of the policy is as it was, or stricter, nobody decided that such writes land. It stays held
(``replay.recalibrated``), and lands only by a replay that names a run which showed its content: a command is bound to
one write and its digest, and the row has the runs that showed it.

A replay closes nothing: a held write that would be rejected now stays held, with the new reasons, until a person
rejects it. A refused one is held, if that is what is decided now; it stays refused where it is rejected once more.
"""

from msgspec.structs import replace

from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding, rule_of
from memsluice.events.models import Command, Tier, Write
from memsluice.gate.checks import holding, limits, monitor, rates, related, sensitive, sessions
from memsluice.gate.checks.placing import gives_way, place
from memsluice.gate.commands import review
from memsluice.gate.commands.review import Held
from memsluice.gate.commands.ruling import At, Carried, Ruling, refused
from memsluice.gate.decision import Draft, Screened, TenantState
from memsluice.gate.policy import parts
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.kinds import REVIEW, ReviewRow, SessionRow, Weighed
from memsluice.gate.state.lineage import CAUSES_MAX, Label, keep_lineage
from memsluice.gate.state.placement import NOWHERE
from memsluice.gate.state.rows import TenantRows

DRY_PARAMETER = "dry"
"""Parameter of a replay that only says what it would decide."""
RUN_PARAMETER = "run"
"""Parameter that names the run of replays that a command belongs to."""
ACCEPT_PARAMETER = "accept"
"""Parameter that names the run which showed the write to its signer, who accepts that only the calibration changed."""
SHOWN_MAX = 4
"""Runs that a row names which showed the write: the last ones."""
POLICIES_MAX = 8
"""Policies besides the last one by which a rule held a write, that its row names: the first ones."""


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
    unread = _unread(held.row, command, again)
    if unread is not None and unread.decision is Decision.REJECT:
        return refused(unread)
    again.add(unread)
    _take_a_place(view, held.row, again, at)
    decision = _decision(held.row, again)
    later = _overtaken(view, held, carried, policy, at, again)
    if later is not None:
        return refused(later)
    detail = {"was": held.row.codes, "would" if dry else "now": decision.value, **review.came_from(held.row)}
    code = Finding("replay.dry_run", Decision.ACCEPT, detail) if dry else _told(held.row, again, detail)
    findings = (*again.findings, code)
    if unread is not None and unread.decision is Decision.QUARANTINE:
        held = replace(held, row=_shown(held.row, command))
        if dry:
            rows.put(REVIEW, held.row_id, held.row)  # which run showed it, and nothing else
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


def _told(row: ReviewRow, again: Draft, detail: dict[str, object]) -> Finding:
    stands = {} if again.lands() else {"stands": _stands(row, again)}
    return Finding("replay.decided", Decision.ACCEPT, {**detail, **stands})


def _decision(row: ReviewRow, again: Draft) -> Decision:
    """Return what a replay decides: what was held and would be rejected stays held; the next policy may differ."""
    decision = again.decision()
    rejects = decision is Decision.REJECT and row.state == "held" and not again.lands()
    return Decision.QUARANTINE if rejects else decision


def _stands(row: ReviewRow, again: Draft) -> tuple[str, ...]:
    """Return the codes for which it stays held or refused: of those that the row keeps, not what asks for less."""
    decision = again.decision()
    less = {f.code for f in again.findings} - {f.code for f in again.findings if f.decision is decision}
    return tuple(code for code in _codes(row, again) if code not in less)


def _codes(row: ReviewRow, again: Draft) -> tuple[str, ...]:
    """Return the codes that a row keeps after a replay: those found now, those of a rule that forgot, and doubts."""
    learned = _unchanged(row, again)
    gone = {code for code in row.codes if rule_of(code) in learned}
    return tuple(sorted({*_asked(again), *gone, *review.standing(row)}))


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
    draft.add(*limits.check(write, policy), sensitive.check(carried, policy))
    if draft.decision() is not Decision.REJECT:
        draft.screen(write, Screened.of(carried))
        draft.add(*related.look(rows, write, policy))
        if not _counted(row):
            draft.add(rates.check(rows, write.principal, identity, policy, at.now_ms))
    return draft


def _take_a_place(rows: TenantRows, row: ReviewRow, again: Draft, at: At) -> None:
    """Take a place in its principal's share for what was refused and is held now, or find that there is none."""
    if row.state == "refused" and again.decision() is Decision.QUARANTINE:
        again.add(holding.check(rows, row.principal, again.policy, at.now_ms))


def _unread(row: ReviewRow, command: Command, again: Draft) -> Finding | None:
    """Return that it would land though nobody changed the rules on contents that held it; None where that is not so.

    Shadow mode lands whatever they find. Named in the command, a run that showed it makes it no more than a note.
    """
    rules = _unchanged(row, again) if again.policy.mode == "enforce" and again.lands() else {}
    if not rules:
        return None
    run = command.parameters.get(ACCEPT_PARAMETER)
    if run is not None:
        shown = run in row.shown
        code, asks = ("accepted", Decision.ACCEPT) if shown else ("not_shown", Decision.REJECT)
        return Finding(f"replay.{code}", asks, {"run": run})
    changes = [{"rule": one, "was": _numbers(was), "now": _numbers(again.weighing(one))} for one, was in rules.items()]
    return Finding("replay.recalibrated", Decision.QUARANTINE, {"changes": changes})


def _unchanged(row: ReviewRow, again: Draft) -> dict[str, Weighed | None]:
    """Return the rules on contents that held a write, find nothing now, and are as strict as they were, or stricter.

    A row of before says no part: it counts as unchanged. So does every rule where something else rejects the write, for
    then none of them looked at it.
    """
    asked, held = _asked(again), {rule_of(code) for code in row.codes}
    gone = [one for one in parts.CONTENT if one in held and not any(rule_of(code) == one for code in asked)]
    was = {one: row.weighed.get(one) for one in gone}
    if again.default.tier is None:
        return was
    return {one: old for one, old in was.items() if old is None or _as_strict(again, one, old)}


def _as_strict(again: Draft, module: str, held: Weighed) -> bool:
    """Whether a rule is as strict as by one of the policies that it held a write by, or stricter."""
    policy, tier, reach = again.policy, again.default.tier, again.default.reach
    every = ((held.part, held.strict), *held.also)
    return not all(parts.loosened(policy, module, tier, reach, digest, strict) for digest, strict in every)


def _again(now: Weighed, before: Weighed | None) -> Weighed:
    """Return what a rule goes by that holds a write once more, with the policies by which it did before."""
    if before is None:
        return now
    every = dict.fromkeys((*before.also, (before.part, before.strict)))  # the first stay
    every.pop((now.part, now.strict), None)
    return replace(now, also=tuple(every)[:POLICIES_MAX])


def _asked(again: Draft) -> set[str]:
    """Return the codes that asked for something, of the write itself."""
    own = {"replay.standing", "replay.recalibrated"}
    return {f.code for f in again.findings if f.decision is not Decision.ACCEPT} - own


def _numbers(weighed: Weighed | None) -> dict[str, float]:
    if weighed is None:
        return {}
    told = {"score": weighed.score, "threshold": weighed.threshold, "p": weighed.p}
    return {name: value for name, value in told.items() if value is not None}


def _shown(row: ReviewRow, command: Command) -> ReviewRow:
    """Note the run that shows the write to a person."""
    run = command.parameters.get(RUN_PARAMETER, "")
    return replace(row, shown=(*(one for one in row.shown if one != run), run)[-SHOWN_MAX:]) if run else row


def _counted(row: ReviewRow) -> bool:
    """Whether a write was counted against its rate: what the rules or limits refused was not."""
    screened = row.state == "held" or "holding.full" in row.codes
    return screened and "rates.exceeded" not in row.codes


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
    decision, tau, where = _decision(held.row, again), again.tau, NOWHERE
    assert tau is not None
    assert isinstance(carried.payload, Write)
    if again.lands():
        where = place(carried.payload, tau, again.landing(), policy, at.now_ms)
        keep_lineage(
            rows, carried, tau, decision, where, at.version, where.expires_ms, held.row.lifted, again.default.read
        )
        review.close(rows, held, "released", command, policy, at.now_ms)
    else:
        _kept(rows, held, command, again, at, policy)
    return Ruling(findings, decision, where, carried, tau, again.published.score, seen=again.default.seen)


def _kept(rows: TenantRows, held: Held, command: Command, again: Draft, at: At, policy: Policy) -> None:
    """Keep it in its place, with its new reasons and label; what was refused and is held now takes a held one's."""
    before, tau = held.row, again.tau
    assert tau is not None
    learned = _unchanged(before, again)
    asking = {one: _again(now, before.weighed.get(one)) for one, now in again.weighed().items()}
    weighed = {one: old for one, old in learned.items() if old is not None} | asking
    row = replace(
        before,
        taint=tau.taint,
        causes=tau.causes,
        tier=tau.tier,
        codes=_codes(before, again),
        weighed=weighed,
        last=command.id,
    )
    if before.state == "refused" and again.decision() is Decision.QUARANTINE:
        holding.give_back(rows, before.principal, before.state, before.held_ms, policy, at.now_ms)
        row = replace(row, state="held", held_ms=at.now_ms)
    rows.put(REVIEW, held.row_id, row)
