"""A reviewer dismisses a dead letter: it is noted in the audit, and changes nothing else.

A dead letter belongs to no tenant, since nobody could be established as its sender: a command about one is addressed to
all tenants, which only a reviewer of all tenants may sign. No state is kept of dead letters, so the gate can't compare:
the command names the letter by where its input lies and is bound to its bytes by a digest; whoever reads the audit
counts it for that letter and those bytes alone.
"""

from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Command
from memsluice.events.names import EVERYBODY
from memsluice.gate.commands.ruling import Ruling, refused


def decide(command: Command) -> Ruling:
    """Note a dismissal, or say why not. A second one of the same letter is noted too: the first counts."""
    if command.tenant != EVERYBODY:
        return refused(Finding("dismissal.one_tenant", Decision.REJECT))
    if command.digest is None or not command.reason:
        missing = "digest" if command.digest is None else "reason"
        return refused(Finding("dismissal.incomplete", Decision.REJECT, {"field": missing}))
    return Ruling((Finding("dismissal.noted", Decision.ACCEPT, {"why": command.reason}),), Decision.RECORD)
