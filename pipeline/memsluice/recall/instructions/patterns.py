"""The published patterns alone: what an agent's own process can check without the gate's models."""

from collections.abc import Sequence
from dataclasses import replace

from memsluice.events.models import Tier
from memsluice.gate.checks import instructions
from memsluice.gate.checks.spelled import spelled
from memsluice.recall.instructions.policy import InstructionPolicy
from memsluice.recall.reader import VerifiedEntry
from memsluice.recall.withheld import Flag, Withheld


class PatternCheck:
    """Flags or withholds by pattern 6's patterns; see :class:`.policy.InstructionCheck`. No encoder reads anything."""

    def __init__(self, policy: InstructionPolicy | None = None) -> None:
        self._policy = policy or InstructionPolicy()

    def of(self, entries: Sequence[VerifiedEntry], reads_max: int) -> tuple[list[VerifiedEntry | Withheld], int]:
        """Return what becomes of each entry."""
        return [self._of(entry) for entry in entries], 0

    def _of(self, entry: VerifiedEntry) -> VerifiedEntry | Withheld:
        risk = instructions.risk(instructions.find(spelled(entry.content)))
        found = by_patterns(risk, entry.admission.tier, self._policy)
        return found if isinstance(found, Withheld) else replace(entry, flags=found)


def by_patterns(risk: int, tier: Tier, policy: InstructionPolicy) -> Withheld | tuple[Flag, ...]:
    """Return what becomes of a content in which ``risk`` of pattern 6's five patterns occur.

    Seed 002 has them withheld at retrieval whoever let them in.
    """
    if risk > (policy.patterns_tolerated_max if tier <= policy.flagged_tier_max else 0):
        return Withheld.INSTRUCTION
    return (Flag.PATTERN,) if risk else ()
