"""Renewal on use: an entry that somebody else is given holds for its tier's time once more (seed 002).

A recall carries the record of one entry that it returned, as a command about a landed entry does, and it is read and
compared as a command's is. What the reader says of it counts for nothing. Who keeps an entry alive by asking must be
somebody else than its author, in a session that the platform opened and that saw nothing from outside: whoever wrote
something, or had an agent ask by what a page said, prolongs nothing. So only what was shared is ever renewed by use,
and nobody shares but reviewers and operators.
"""

from msgspec.structs import replace

from memsluice.envelope.records import Accepted
from memsluice.envelope.seals import Admission, Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Action, Recall, Zone
from memsluice.gate.checks import encoder, rates
from memsluice.gate.commands import landed, renewal
from memsluice.gate.commands.ruling import At, Carried, Ruling, refused
from memsluice.gate.policy.model import DAY_MS, Policy
from memsluice.gate.state.kinds import EncoderRow, EntryRow, SessionRow
from memsluice.gate.state.rows import TenantRows


def decide(
    rows: TenantRows, sealed: Sealed, session: SessionRow, carried: Carried, policy: Policy, at: At, known: EncoderRow
) -> Ruling | None:
    """Renew the entry that a recall carries, or say why not; None where it carries none. It refuses no recall.

    ``session`` is the asker's as it was before the recall, ``known`` the encoder of the tenant's memory.
    """
    recall = sealed.payload
    assert isinstance(recall, Recall)
    if recall.renews is None:
        return None
    if not policy.renew_on_use.enabled:
        return refused(Finding("renewing.off", Decision.ACCEPT))
    if not isinstance(carried, Accepted):
        return refused(Finding("renewing.unsealed", Decision.ACCEPT))
    about = landed.Named(carried.admission.event_id, carried.admission.content_digest)
    return _told(_ruled(rows, sealed, recall, session, carried, policy, at, known), about.target)


def _ruled(
    rows: TenantRows, sealed: Sealed, recall: Recall, session: SessionRow, carried: Accepted, policy: Policy, at: At,
    known: EncoderRow,
) -> Ruling:  # fmt: skip
    admission = carried.admission
    about = landed.Named(admission.event_id, admission.content_digest)
    row = landed.find(rows, about)
    if isinstance(row, Finding):
        return refused(row)
    unused = _unused(sealed, recall, session, admission) or _data(row) or encoder.against(known, Action.RENEW, carried)
    if unused is not None:
        return refused(unused)
    due = policy.renew_on_use.due(policy.ttl_seconds.of(row.tier), row.expires_ms, at.now_ms)
    if row.expires_ms is not None and not due:
        return refused(Finding("renewing.early", Decision.REJECT))
    until_ms = _until(policy, row, admission, at)
    entry = renewal.fit(rows, about, row, carried, until_ms)
    if isinstance(entry, Finding):
        return refused(entry)
    limited = rates.check_renewal(rows, about.target, policy.renew_on_use, at.now_ms)
    if limited is not None:  # last, since it counts
        return refused(limited)
    return renewal.prolonged(rows, about, row, row, entry, until_ms, at, "renewing.renewed")


def _unused(sealed: Sealed, recall: Recall, session: SessionRow, admission: Admission) -> Finding | None:
    """Return why this is no use of the entry by somebody else."""
    named = (admission.event_id, admission.object_id, admission.version)
    returned = any((one.event_id, one.object_id, one.version) == named for one in recall.returned)
    if not returned or recall.named or recall.zone is not Zone.GUIDANCE:
        return Finding("renewing.not_returned", Decision.REJECT)
    assert sealed.identity is not None
    own = {
        "principal": recall.principal == admission.principal,
        "session": recall.session == admission.session,
        "key": sealed.identity.kid == admission.kid,
    }
    if any(own.values()):
        return Finding("renewing.own", Decision.REJECT, {"by": [name for name, same in own.items() if same]})
    if session.taint or not session.opened:
        detail = {"opened": session.opened, "taint": session.taint}
        return Finding("renewing.session", Decision.REJECT, detail)
    return None


def _data(row: EntryRow) -> Finding | None:
    if row.zone is Zone.GUIDANCE and not row.taint:
        return None
    return Finding("renewing.tainted", Decision.REJECT, {"causes": list(row.causes)})


def _until(policy: Policy, row: EntryRow, admission: Admission, at: At) -> int:
    """Return until when the entry would hold (Unix ms)."""
    longest_ms = admission.written_ms + policy.renew_on_use.longest_days * DAY_MS
    own_ms = policy.expires_ms(row.tier, at.now_ms)
    return longest_ms if own_ms is None else min(own_ms, longest_ms)


def _told(ruling: Ruling, event_id: str) -> Ruling:
    """Return the ruling as a recall's verdict tells it: about which entry, and refusing nothing."""
    told = [Finding(one.code, Decision.ACCEPT, {**one.detail, "entry": event_id}) for one in ruling.findings]
    return replace(ruling, findings=tuple(told))
