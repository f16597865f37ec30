"""What a recall takes of the entries that hold: the nearest, or the nearest of so many authors."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from memsluice.recall.reader import Selection, VerifiedEntry
from memsluice.recall.withheld import Withheld

Judged = Collection[tuple[str, VerifiedEntry | Withheld]]
"""What was found, by object id: the entry, or why it must not be shown."""


class Wanted(Protocol):
    """What is searched for, and when there is enough of it."""

    @property
    def size(self) -> int:
        """How many entries there are to be, more or less: how widely the first search looks."""

    def of(self, judged: Judged) -> Selection:
        """Return what of this is taken, better tiers first, and why each entry that does not hold is withheld."""

    def enough(self, selection: Selection) -> bool:
        """Say whether no further search can add to what was taken."""


@dataclass(frozen=True, slots=True)
class Nearest:
    """The ``size`` nearest entries. Nearness alone says which; authority then says in which order an agent reads them
    (seed 002, pattern 2)."""

    size: int

    def of(self, judged: Judged) -> Selection:
        """Return the nearest."""
        return _selection(nearest(judged)[: self.size], judged)

    def enough(self, selection: Selection) -> bool:
        """Say whether there are so many."""
        return len(selection.kept) == self.size


class Every:
    """All that holds."""

    size = 1

    def of(self, judged: Judged) -> Selection:
        """Return all of it."""
        return _selection(nearest(judged), judged)

    def enough(self, selection: Selection) -> bool:
        """Say no: there may be more."""
        return False


@dataclass(frozen=True, slots=True)
class NearestAuthors:
    """The ``each_max`` nearest entries of each of the ``authors`` nearest authors.

    Whoever writes much takes one author's place with it, and the search goes on past all the rest: nobody's flood
    leaves the others out, up to the bound of a search.
    """

    authors: int
    each_max: int = 1

    @property
    def size(self) -> int:
        """How many entries that are at most."""
        return self.authors * self.each_max

    def of(self, judged: Judged) -> Selection:
        """Return the nearest entries of the nearest authors."""
        strata = by_author(nearest(judged), self.each_max)[: self.authors]
        kept = sorted((entry for stratum in strata for entry in stratum), key=_distance)
        return _selection(kept, judged)

    def enough(self, selection: Selection) -> bool:
        """Say whether there are so many authors. What else they wrote lies further away than what was found."""
        return len({entry.admission.principal for entry in selection.kept}) == self.authors


def nearest(judged: Judged) -> list[VerifiedEntry]:
    """Return the entries that hold, nearest first."""
    return sorted((found for _id, found in judged if isinstance(found, VerifiedEntry)), key=_distance)


def by_author(entries: Iterable[VerifiedEntry], each_max: int) -> list[tuple[VerifiedEntry, ...]]:
    """Return what each principal wrote, the first ``each_max`` of it; authors in the order of their first entries."""
    found: dict[str, tuple[VerifiedEntry, ...]] = {}
    for entry in entries:
        before = found.get(entry.admission.principal, ())
        if len(before) < each_max:
            found[entry.admission.principal] = (*before, entry)
    return list(found.values())


def _distance(entry: VerifiedEntry) -> tuple[float, str]:
    return -entry.similarity, entry.admission.object_id


def _selection(kept: Sequence[VerifiedEntry], judged: Judged) -> Selection:
    ordered = sorted(kept, key=lambda entry: entry.admission.tier)  # stable: the nearest of a tier first
    return Selection(tuple(ordered), {one: why for one, why in judged if isinstance(why, Withheld)})
