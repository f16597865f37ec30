"""Whether a tenant's writes carry questions as a habit: of the last screened ones, held ones too, more than so many do.

Held writes count, since nothing else of a tenant that turns to questions lands; but a burst of one account must not
switch the signal off for everybody. So it must be the habit of those whose writes land: the rule of
:mod:`memsluice.gate.detectors.rarity.principal_shares`, over what landed of those who wrote the questions.
"""

from collections import Counter

from msgspec import Struct

from memsluice.gate.detectors.rarity.principal_shares import Standing
from memsluice.gate.state.kinds import HabitRow

WRITES = 100


class Habit(Struct, frozen=True):
    """``flags``: ``1`` for each of the last WRITES screened writes that carried a question, ``0`` for the others.

    ``writers``: the principal's tag of each ``1``, in order; "" where a row of an older version kept none.
    """

    flags: str = ""
    writers: tuple[str, ...] = ()

    @staticmethod
    def loaded(row: HabitRow | None) -> "Habit":
        """Return the habit that a row holds; the empty one for None."""
        if row is None:
            return Habit()
        flags, writers = row.flags, row.writers
        return Habit(flags, ("",) * (flags.count("1") - len(writers)) + writers)

    def dumped(self) -> HabitRow:
        """Return the row."""
        return HabitRow(flags=self.flags, writers=self.writers)

    def screened(self, carries_question: bool, principal: str) -> "Habit":
        """Return the habit after one more write of a principal (its tag)."""
        flags = (self.flags + "01"[carries_question])[-WRITES:]
        writers = (*self.writers, principal) if carries_question else self.writers
        return Habit(flags, writers[len(writers) - flags.count("1") :])

    def beyond(self, share: float, standing: Standing) -> bool:
        """Whether more than a share carry a question, and do so without the writers that are one of many."""
        every, asking = len(self.flags), len(self.writers)
        if asking <= share * every:
            return False
        kept = standing.lasting(Counter(self.writers))
        return kept > share * (every - asking + kept)
