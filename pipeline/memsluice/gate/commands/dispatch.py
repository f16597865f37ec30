"""Commands, as the ordered stream meets them. What is not carried out is refused with a reason, audited."""

from msgspec import Struct

from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Action, Command
from memsluice.events.names import EVERYBODY
from memsluice.gate.checks import encoder
from memsluice.gate.commands import (
    activation,
    declassification,
    dismissal,
    notes,
    promotion,
    protection,
    renewal,
    reopening,
    replay,
    restoring,
    review,
    revocation,
)
from memsluice.gate.commands.ruling import At, Carried, Ruling, refused
from memsluice.gate.decision import TenantState
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.rows import TenantRows


class May(Struct, frozen=True):
    """Who may give a command, and how many of them have to sign it."""

    roles: tuple[Role, ...]
    approvals: int = 1


COMMANDS = {
    Action.PROTECT: May((Role.OPERATOR,)),
    Action.ACTIVATE: May((Role.OPERATOR,), activation.APPROVALS),
    Action.RELEASE: May((Role.REVIEWER,)),
    Action.REJECT: May((Role.REVIEWER,)),
    Action.REPLAY: May((Role.REVIEWER,)),
    Action.APPEAL: May((Role.PRODUCER, Role.USER_CHANNEL), 0),  # on the events topic, where nobody co-signs
    Action.PROMOTE: May((Role.OPERATOR, Role.REVIEWER)),
    Action.DECLASSIFY: May((Role.REVIEWER,), 2),
    Action.REVOKE: May((Role.REVIEWER, Role.OPERATOR)),  # what is protected, an operator alone: revocation.py
    Action.WITHDRAW: May((Role.REVIEWER, Role.OPERATOR)),
    Action.RENEW: May((Role.REVIEWER,)),
    Action.DISMISS: May((Role.REVIEWER,)),
    Action.REOPEN: May((Role.REVIEWER,)),
    Action.NOTE: May((Role.REVIEWER,)),
}
"""The commands that are carried out so far. Signers of one command have one role (:mod:`.authenticity`)."""
FOR_EVERYBODY = (Action.ACTIVATE, Action.DISMISS)
"""Commands that may be addressed to all tenants."""


def decide(
    rows: TenantRows,
    sealed: Sealed,
    carried: Carried,
    policy: Policy,
    at: At,
    state: TenantState,
) -> Ruling:
    """Carry out a command on the rows, or say why not. ``carried`` is what it brings along (:mod:`.ruling`)."""
    command = sealed.payload
    assert isinstance(command, Command)
    assert sealed.identity is not None
    against = (
        _permitted(sealed, command, at)
        or review.not_shown(command, carried)
        or encoder.against(state.memsad.encoder, command.action, carried)
    )
    if against is not None:
        return refused(against)
    match command.action:
        case Action.ACTIVATE:
            return activation.decide(rows, sealed, policy)
        case Action.DISMISS:
            return dismissal.decide(command)
        case Action.REPLAY:
            return replay.decide(rows, command, carried, policy, at, state)
        case Action.APPEAL:
            return review.appeal(rows, command, sealed.identity)
        case Action.RELEASE if restoring.is_taken_back(rows, command):
            return restoring.decide(rows, command, carried, at)
        case Action.RELEASE | Action.REJECT:
            return review.decide(rows, command, sealed.identity, carried, policy, at)
        case Action.REOPEN:
            return reopening.decide(rows, command, policy, at)
        case Action.NOTE:
            return notes.decide(rows, command, sealed.identity, at)
        case Action.PROMOTE:
            return promotion.decide(rows, command, sealed.identity, carried, policy, at, state)
        case Action.DECLASSIFY:
            return declassification.decide(rows, command, carried, policy, at, state)
        case Action.REVOKE | Action.WITHDRAW:
            return revocation.decide(rows, command, sealed.identity, carried, policy, at)
        case Action.RENEW:
            return renewal.decide(rows, command, carried, policy, at)
    return protection.decide(rows, command)


def _permitted(sealed: Sealed, command: Command, at: At) -> Finding | None:
    """Return why this command may not be given by these signers, now, for this tenant."""
    assert sealed.identity is not None
    detail = {"action": command.action.value}
    if int(command.expires_at.timestamp() * 1000) <= at.now_ms:
        return Finding("commands.expired", Decision.REJECT, detail)
    may = COMMANDS.get(command.action)
    if may is None:
        return Finding("commands.not_available", Decision.REJECT, detail)
    if sealed.identity.role not in may.roles:
        needs = [role.value for role in may.roles]
        return Finding("commands.not_permitted", Decision.REJECT, {**detail, "needs": needs})
    if command.action not in FOR_EVERYBODY and command.tenant == EVERYBODY:
        return Finding("commands.one_tenant", Decision.REJECT, detail)  # about nobody's entry, nobody's key
    if may.approvals > 1 and command.action is not Action.ACTIVATE and len(sealed.approvers) < may.approvals:
        return Finding("commands.approvals", Decision.REJECT, {"needs": may.approvals, "has": len(sealed.approvers)})
    return None
