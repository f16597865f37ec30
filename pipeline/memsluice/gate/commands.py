"""Commands, as the ordered stream meets them. What is not carried out is refused with a reason, audited."""

from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Sealed
from memsluice.events.models import Action, Command, Visibility
from memsluice.events.names import EVERYBODY
from memsluice.gate import activation, monitor, replay, review
from memsluice.gate.detector.memory import Memory
from memsluice.gate.memsad_state import MemsadState
from memsluice.gate.policy import Policy
from memsluice.gate.review import At, Ruling, refused
from memsluice.gate.rows import TenantRows
from memsluice.gate.verdict import Decision, Finding

SCOPES = {scope.value: scope for scope in Visibility}
WHO = {
    Action.PROTECT: (Role.OPERATOR,),
    Action.ACTIVATE: (Role.OPERATOR,),
    Action.RELEASE: (Role.REVIEWER,),
    Action.REJECT: (Role.REVIEWER,),
    Action.REPLAY: (Role.REVIEWER,),
    Action.APPEAL: (Role.PRODUCER, Role.USER_CHANNEL),
}
"""The commands that are carried out so far, and the roles of those who may give each."""
REVIEWS = (Action.RELEASE, Action.REJECT, Action.REPLAY, Action.APPEAL)
"""Commands about one held write."""


def decide(
    rows: TenantRows,
    sealed: Sealed,
    carried: Sealed | None,
    policy: Policy,
    at: At,
    memsad: MemsadState | None,
    memory: Memory | None = None,
) -> Ruling:
    """Carry out a command on the rows, or say why not; see :func:`memsluice.gate.review.decide` for the arguments."""
    command = sealed.payload
    assert isinstance(command, Command)
    assert sealed.identity is not None
    detail = {"action": command.action.value}
    if int(command.expires_at.timestamp() * 1000) <= at.now_ms:
        return refused(Finding("commands.expired", Decision.REJECT, detail))
    if command.action not in WHO:
        return refused(Finding("commands.not_available", Decision.REJECT, detail))
    if sealed.identity.role not in WHO[command.action]:
        needs = [role.value for role in WHO[command.action]]
        return refused(Finding("commands.not_permitted", Decision.REJECT, {**detail, "needs": needs}))
    if command.action is Action.ACTIVATE:
        return activation.decide(rows, sealed, policy)
    if command.tenant == EVERYBODY:  # it would be about nobody's entry, and protect nobody's key
        return refused(Finding("commands.one_tenant", Decision.REJECT, detail))
    if command.action is Action.REPLAY:
        return replay.decide(rows, command, carried, policy, at, memsad, memory)
    if command.action is Action.APPEAL:
        return review.appeal(rows, command, sealed.identity)
    if command.action in REVIEWS:
        return review.decide(rows, command, carried, policy, at)
    return _protect(rows, command)


def _protect(rows: TenantRows, command: Command) -> Ruling:
    """Set iota(k) = 1 for a key (seed 001, Rule 3). There is no command that unsets it."""
    scope = SCOPES.get(command.parameters.get("visibility", Visibility.PRINCIPAL.value))
    if scope is None:
        return refused(Finding("commands.bad_parameter", Decision.REJECT, {"field": "parameters.visibility"}))
    owner = command.parameters.get("owner", "")
    if (scope is Visibility.SHARED) == bool(owner):  # else it would protect what nobody can write
        return refused(Finding("commands.bad_parameter", Decision.REJECT, {"field": "parameters.owner"}))
    namespace = command.parameters.get("namespace", "default")
    row_id = monitor.protected_id(scope, owner, namespace, command.target)
    if rows.get(monitor.PROTECTED, row_id) is not None:
        return refused(Finding("commands.already_protected", Decision.REJECT))
    rows.put(monitor.PROTECTED, row_id, {"by": command.id})
    return Ruling((), Decision.RECORD)
