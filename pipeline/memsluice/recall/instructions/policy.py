"""What becomes of an entry that reads like an instruction: by how far its tier is trusted."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from memsluice.events.models import Tier
from memsluice.gate.policy.wording import WordingPolicy
from memsluice.recall.reader import VerifiedEntry
from memsluice.recall.withheld import Withheld

READS_MAX = 64
"""Contents that the encoder reads for one recall; any further one is judged by what needs no encoder, and so more
strictly. Whoever lands a thousand orders makes a recall dear by no more than this."""


@dataclass(frozen=True, slots=True)
class InstructionPolicy:
    """What is flagged and what is withheld.

    Up to the tier ``flagged_tier_max`` an entry is shown and flagged, beyond it withheld. More than
    ``patterns_tolerated_max`` of pattern 6's five patterns are withheld in any tier (seed 002: "the user's own content
    may legitimately include the terms"). What a person let in, despite its wording, is flagged for that in any tier.
    ``wording`` has the gate's budgets, by reach and tier; its ``action`` "report" flags and never withholds. What the
    external zone holds is handed on as data, so its wording is flagged unless ``withhold_data``: the gate, too, lets it
    land there. ``overrides``: an order to set aside what one was told counts as its wording does.
    """

    wording: WordingPolicy = field(default_factory=WordingPolicy)
    flagged_tier_max: Tier = Tier.USER_VERIFIED
    patterns_tolerated_max: int = 2
    withhold_data: bool = False
    overrides: bool = True


class InstructionCheck(Protocol):
    """What reads entries before they are shown. May be called from any thread."""

    def of(self, entries: Sequence[VerifiedEntry], reads_max: int) -> tuple[list[VerifiedEntry | Withheld], int]:
        """Return each entry, flagged if need be, or why it is withheld; and how many contents the encoder read.

        That is ``reads_max`` at most. Whatever it raises, nothing of the answer is shown.
        """
