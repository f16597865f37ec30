"""What is usual for a tenant must be usual without a quarter of its writes, whoever wrote them.

An attacker who may write can make anything usual by writing it often. So before a value counts as usual, the principals
that show it most are left out, up to QUARTER of the reference: the ranks are then those of a tenant in which nobody did
that, as long as the attackers among its writers have no larger share. The same holds against many small accounts. A
principal with a larger share of the reference is never left out, nor is what a reviewer let in.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

QUARTER = 0.25
VOUCHED = 0
"""Code of entries that are never left out: a reviewer's, an operator's, and those of whom the writer is unknown."""
Owners = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Standing:
    """``owners``: who wrote each entry, shape (n,), by the codes that ``codes`` gives to principals' tags."""

    owners: Owners
    codes: Mapping[str, int]

    @staticmethod
    def of(principals: list[str]) -> "Standing":
        """Return the standing of entries by their principals' tags, oldest first; "" for what is vouched for."""
        codes = {"": VOUCHED} | {tag: at for at, tag in enumerate(dict.fromkeys(filter(None, principals)), 1)}
        return Standing(np.array([codes[tag] for tag in principals], np.int64), codes)

    def landed(self, principal: str) -> "Standing":
        """Return this and one more entry, the youngest."""
        codes = self.codes if principal in self.codes else {**self.codes, principal: len(self.codes)}
        return Standing(np.concatenate((self.owners, (codes[principal],))), codes)

    def lasting(self, votes: Counter[str]) -> int:
        """Return how many of the votes, by principals' tags, are left without those who gave most for what landed of
        theirs, up to QUARTER of what landed. Who has nothing landed is left out, "" never is.
        """
        landed = np.bincount(self.owners, minlength=len(self.codes))
        of = {tag: int(landed[self.codes[tag]]) if tag in self.codes else 0 for tag in votes if tag}
        room, kept = QUARTER * len(self.owners), votes.total()
        some = [tag for tag in of if of[tag] <= room]
        for tag in sorted(some, key=lambda tag: (-votes[tag] / max(of[tag], 0.1), tag)):
            room -= of[tag]
            if room < 0:
                break
            kept -= votes[tag]
        return kept

    def gone(self, at: int) -> "Standing":
        """Return this without an entry."""
        return Standing(np.concatenate((self.owners[:at], self.owners[at + 1 :])), self.codes)


def left(hits: NDArray[np.bool_], owners: Owners) -> tuple[int, int]:
    """Return (hits, entries) that are left of a reference of shape (n,) without those who show the value most."""
    if not hits.any():
        return 0, len(hits)
    kept = stays(hits, owners)
    return int(np.count_nonzero(hits & kept)), int(np.count_nonzero(kept))


def stays(hits: NDArray[np.bool_], owners: Owners) -> NDArray[np.bool_]:
    """Return which entries of a reference stay, shape (n,), without those who show the value most."""
    entries = np.bincount(owners)
    of = np.bincount(owners[hits], minlength=len(entries))
    some = np.flatnonzero((of > 0) & (entries <= QUARTER * len(hits)))
    some = some[some != VOUCHED]
    order = some[np.lexsort((entries[some], -of[some] / entries[some]))]
    out = np.zeros(len(entries), bool)
    out[order[np.cumsum(entries[order]) <= QUARTER * len(hits)]] = True
    return np.asarray(~out[owners])
