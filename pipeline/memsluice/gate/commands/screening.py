"""A landed entry is screened again where a command would let it reach farther than it did."""

from memsluice.envelope.records import Accepted
from memsluice.envelope.verdict import Decision
from memsluice.events.models import Command, Tier, Write
from memsluice.gate.commands.despite import DESPITE_PARAMETER, DETECTION
from memsluice.gate.decision import Draft, Screened, TenantState
from memsluice.gate.policy.model import Policy
from memsluice.gate.policy.wording import Reach
from memsluice.gate.state.kinds import EntryRow


def bad_parameter(command: Command) -> bool:
    """Whether ``parameters.despite`` is something else than DETECTION."""
    return command.parameters.get(DESPITE_PARAMETER) not in (None, DETECTION)


def detected(
    entry: Accepted, row: EntryRow, policy: Policy, state: TenantState, how_far: Reach, tier: Tier
) -> list[str]:
    """Return why detection would hold the content in guidance if it reached so far, with that tier.

    What both wording models read when it landed is in its row; where others are in force by now, these n-grams are
    asked as well, and what is worse counts. An entry without is judged by the n-grams alone.
    """
    admission = entry.admission
    write = Write.model_construct(content=entry.content, key=admission.key, session=admission.session)
    draft = Draft.begun(state, policy, entry.vector())
    if row.reads is not None:
        draft.default.read_before(entry.content, row.reads, row.reader)
    draft.screen(write, Screened(how_far, tier))
    return sorted(found.code for found in draft.findings if found.decision is not Decision.ACCEPT)
