"""What a recall takes, read for instructions: all that is taken was read, and another takes a withheld one's place."""

from memsluice.recall.instructions.policy import READS_MAX, InstructionCheck
from memsluice.recall.reader import Selection, VerifiedEntry
from memsluice.recall.wanted import Judged, Wanted, nearest
from memsluice.recall.withheld import Withheld

AHEAD_MIN = 8
"""Entries that are read ahead, in doubling numbers, once one was withheld: a flood of orders ends in few rounds."""


class Checked:
    """One recall's :class:`~memsluice.recall.wanted.Wanted`. Only what it takes is read, and a few behind a withheld
    one: so a reading is counted where it kept something from being shown, and costs nothing elsewhere."""

    def __init__(self, wanted: Wanted, check: InstructionCheck, reads_max: int = READS_MAX) -> None:
        self._wanted = wanted
        self._check = check
        self._left = reads_max
        self._read: dict[str, VerifiedEntry | Withheld] = {}
        self._ahead = 0

    @property
    def size(self) -> int:
        """As many as are wanted."""
        return self._wanted.size

    def of(self, judged: Judged) -> Selection:
        """Return what is taken of this, all of it read."""
        while True:
            known = [(one, self._now(one, found)) for one, found in judged]
            selection = self._wanted.of(known)
            new = [entry for entry in selection.kept if entry.admission.object_id not in self._read]
            if not new:
                return selection
            chosen = {entry.admission.object_id for entry in new}
            behind = (entry for entry in nearest(known) if entry.admission.object_id not in self._read.keys() | chosen)
            self._take([*new, *(entry for entry, _ in zip(behind, range(self._ahead), strict=False))])

    def enough(self, selection: Selection) -> bool:
        """Say whether no further search can add to what was taken."""
        return self._wanted.enough(selection)

    def _now(self, object_id: str, found: VerifiedEntry | Withheld) -> VerifiedEntry | Withheld:
        return found if isinstance(found, Withheld) else self._read.get(object_id, found)

    def _take(self, entries: list[VerifiedEntry]) -> None:
        found, reads = self._check.of(entries, self._left)
        self._left -= reads
        self._read.update((entry.admission.object_id, one) for entry, one in zip(entries, found, strict=True))
        if any(isinstance(one, Withheld) for one in found):
            self._ahead = max(AHEAD_MIN, 2 * self._ahead)
