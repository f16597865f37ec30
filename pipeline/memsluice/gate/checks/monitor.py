"""The reference monitor: Rules 1 to 9 of seed 001, Section 3.3, on writes and promotions.

Rule 1 (read) and 8 (propagation) are the session's low-watermark in :mod:`memsluice.gate.checks.sessions` plus the
declared parents here; Rule 9 (visibility) is the scope in an object's id and the store's query. Where this file says
``deps``, ``pi``, ``tau`` and ``iota`` it means the paper's symbols. Profile *strict* rejects what Rules 3 to 5 reject;
profile *tiered* contains it in the external zone, which no search for guidance touches.
"""

from collections import deque
from collections.abc import Sequence

from memsluice.envelope.seals import Identity
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.ids import scope_owner
from memsluice.events.models import Tier, Visibility, Write
from memsluice.gate.checks import sessions
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.kinds import ENTRY, PROTECTED, EntryRow, Labelled, SessionRow
from memsluice.gate.state.lineage import CAUSES_MAX, Label
from memsluice.gate.state.placement import protected_id
from memsluice.gate.state.rows import TenantRows

UNOPENED = "session:unopened"
ANCESTORS_MAX = 256
"""Ancestors that are asked: one row each. What descends from more than can be asked counts as tainted."""
TOO_MANY = "ancestors:too_many"


def label(
    rows: TenantRows, write: Write, identity: Identity, session: SessionRow, policy: Policy, sketch: str = ""
) -> Label:
    """Return tau(b) = max over all ancestors (Rule 8).

    What a person typed on a user channel has its declared parents as ancestors; what an agent wrote has besides
    everything its session recalled or observed, and an unopened session's past is unknown. An unknown parent, and one
    that is not landed, is tainted. Untrusted channels are no taint of their own: Rule 5 judges them. A policy may
    narrow what counts of the session; ``sketch`` has the write's words for one that compares them.
    """
    causes: list[str] = []
    worst = int(identity.tier)
    for parent in write.parents:
        found = of_parent(rows, parent)
        if found is not None:
            causes.append(found[0])
            worst = max(worst, found[1])
    if identity.channel == "agent":
        seen, worst_seen = sessions.watermark(rows, write.session, session, sketch, policy)
        causes += seen
        # a declared parent may be what the session saw, which a narrower scope leaves out
        worst = max(worst, worst_seen, *(sessions.saw(session, parent) for parent in write.parents))
        if not session.opened:
            causes.append(UNOPENED)
    if causes:
        worst = max(worst, Tier.EXTERNAL_TOOL)  # nothing tainted is better than what a tool said (seed 002, table)
    return Label(bool(causes), tuple(causes[:CAUSES_MAX]), Tier(worst))


def of_parent(rows: TenantRows, parent: str) -> tuple[str, int] | None:
    """Return why a declared parent taints whatever names it now, and its tier (0: unknown); None where it is clean."""
    entry = rows.get(ENTRY, parent)
    if entry is None:
        return f"unknown:{parent}", 0
    if not entry.landed:
        return f"not_landed:{parent}", entry.tier
    return (f"parent:{parent}", entry.tier) if entry.taint else None


def fallen(rows: TenantRows, row: Labelled, parents: Sequence[str]) -> list[str]:
    """Return why a write of these parents would be tainted now, at most CAUSES_MAX reasons; none: nothing fell.

    A label says what was known when it was given: this is Rule 8 asked anew, by whoever lets something in, shares it,
    brings it back or prolongs it. Farther up, an ancestor counts that is tainted or out of memory by now; one whose
    time was simply up does not, as it would not for a write. No ancestor is asked beyond a label that two reviewers
    lifted: where that content came from counts no more.

    ``row`` is the review row or the lineage row of the write: its ``offset`` in the intake (what has an ancestor's id
    and came later is another entry), and whether its label was ``lifted``.
    """
    if row.lifted:
        return []
    causes: list[str] = []
    asked = set(parents)
    waiting = deque((parent, row.offset, True) for parent in parents)
    while waiting:
        name, before, declared = waiting.popleft()
        known = rows.get(ENTRY, name)
        if known is None or known.offset >= before:
            causes += [f"unknown:{name}"] if declared else []
            continue
        found = of_parent(rows, name)
        if found is not None:
            causes.append(found[0])
        elif not known.lifted:
            above = [one for one in known.parents if one not in asked]
            if len(asked) + len(above) > ANCESTORS_MAX:
                return [TOO_MANY, *causes][:CAUSES_MAX]
            asked.update(above)
            waiting.extend((one, known.offset, False) for one in above)
    return causes[:CAUSES_MAX]


def effective_visibility(write: Write, tier: Tier) -> Visibility:
    """Return how widely a write may be seen: only an operator shares by writing, everybody else by promotion."""
    if write.visibility is Visibility.SHARED and tier is not Tier.OPERATOR:
        return Visibility.PRINCIPAL
    return write.visibility


def check_write(
    rows: TenantRows, write: Write, identity: Identity, tau: Label, policy: Policy, *, lifted: bool = False
) -> list[Finding]:
    """Return what Rules 2 to 5 say of a write; no finding that asks for more than ``accept`` is Rule 2 (accepted).

    ``lifted`` says that two reviewers declassified this very content: where it came from counts no more.
    """
    findings = []
    least = Decision.REJECT if policy.profile == "strict" else Decision.CONTAIN
    visibility = effective_visibility(write, tau.tier)
    owner = scope_owner(visibility, write.principal, write.session)
    immutable = check_key(rows, visibility, owner, write.namespace, write.key)
    if immutable is not None:
        findings.append(immutable)
    if tau.taint:  # exists b in deps: tau(b) = 1
        findings.append(Finding("monitor.rule_4_tainted", least, {"rule": 4, "causes": list(tau.causes)}))
    if not identity.tier.trusted and not lifted:  # pi = UNTRUSTED
        findings.append(Finding("monitor.rule_5_untrusted", least, {"rule": 5, "tier": int(identity.tier)}))
    if visibility is not write.visibility:
        findings.append(
            Finding("monitor.rule_9_narrowed", Decision.ACCEPT, {"rule": 9, "asked": write.visibility.value})
        )
    return findings


def check_key(rows: TenantRows, visibility: Visibility, owner: str, namespace: str, key: str | None) -> Finding | None:
    """Return a finding where Rule 3 refuses whatever would change this key: iota(k) = 1."""
    if key is None or rows.get(PROTECTED, protected_id(visibility, owner, namespace, key)) is None:
        return None
    return Finding("monitor.rule_3_immutable", Decision.REJECT, {"rule": 3})


def check_ancestors(rows: TenantRows, row: EntryRow, parents: Sequence[str]) -> Finding | None:
    """Return a finding where Rule 7 refuses to share an entry for what became of its ancestors."""
    fell = fallen(rows, row, parents)
    return Finding("monitor.rule_7_tainted", Decision.REJECT, {"rule": 7, "causes": fell}) if fell else None


def check_promotion(authoriser: Identity, *, taint: bool) -> Finding | None:
    """Return None where Rule 6 lets an entry into the shared namespace, a finding where Rule 7 refuses it."""
    if not authoriser.tier.trusted:
        return Finding("monitor.rule_7_untrusted_authoriser", Decision.REJECT, {"rule": 7})
    if taint:  # a promotion never clears taint; where the published code does, the paper's Rule 7 wins
        return Finding("monitor.rule_7_tainted", Decision.REJECT, {"rule": 7})
    return None
