"""Who wrote what landed, and who asked what is remembered: what is usual must be usual without a quarter of it
(:mod:`memsluice.gate.detectors.rarity.evidence`).
"""

from collections import Counter
from collections.abc import Mapping
from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memsluice.gate.detectors.numeric.compiled import compiled
from memsluice.gate.detectors.numeric.versions import with_last
from memsluice.gate.detectors.rarity.evidence import QUARTER, VOUCHED, Owners

CODES_SPARE = 256
"""Codes of principals of whom nothing is left that are kept until all are given anew."""


class Standing(Struct, frozen=True, dict=True):
    """``owners``: whose each thing is, shape (n,), by the codes that ``codes`` gives to principals' tags."""

    owners: Owners
    codes: Mapping[str, int]

    @staticmethod
    def of(principals: list[str]) -> "Standing":
        """Return the standing of things by their principals' tags, oldest first; "" for what is vouched for."""
        codes = {"": VOUCHED} | {tag: at for at, tag in enumerate(dict.fromkeys(filter(None, principals)), 1)}
        return Standing(np.array([codes[tag] for tag in principals], np.int64), codes)

    def landed(self, principal: str, *, drop: bool = False) -> "Standing":
        """Return this and one more, the youngest; without the oldest where ``drop``."""
        owners, codes = self.owners[drop:], self.codes
        if principal not in codes:
            if len(codes) > len(owners) + CODES_SPARE:
                owners, codes = self._anew(owners)
            codes = {**codes, principal: len(codes)}
        return Standing(with_last(owners, codes[principal]), codes)

    def _anew(self, owners: Owners) -> tuple[Owners, dict[str, int]]:
        tags = {code: tag for tag, code in self.codes.items()}
        anew = Standing.of([tags[code] for code in owners.tolist()])
        return anew.owners, dict(anew.codes)

    def lasting(self, votes: Counter[str]) -> int:
        """Return how many of the votes, by principals' tags, are left without those who gave most for what landed of
        theirs, up to QUARTER of what landed. Who has nothing landed is left out, "" never is.
        """
        landed = self.counts()
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
        """Return this without one."""
        return Standing(np.concatenate((self.owners[:at], self.owners[at + 1 :])), self.codes)

    def counts(self) -> NDArray[np.int64]:
        """Return how many each code has."""
        return _counted(self.owners, len(self.codes))

    def much(self, principal: str) -> bool:
        """Whether a principal (its tag) has more than a quarter."""
        code = self.codes.get(principal, -1)
        return bool(np.count_nonzero(self.owners == code) > QUARTER * len(self.owners))

    @cached_property
    def small(self) -> Owners:
        """Whose each thing is, VOUCHED in place of principals that have more than a quarter."""
        return _small(self.owners, len(self.codes), QUARTER * len(self.owners), VOUCHED)

    def others(self, principal: str) -> Owners:
        """Return whose each thing is, VOUCHED in place of a principal (its tag)."""
        return _without(self.owners, self.codes.get(principal, VOUCHED), VOUCHED)

    def oldest_of_most(self) -> int:
        """Return where the oldest thing of the principal that has most is; of equal ones, of who has the oldest."""
        return _oldest_of_most(self.owners, len(self.codes))


@compiled("int64[::1](int64[::1], int64, int64)")
def _without(owners: Owners, code: int, instead: int) -> Owners:
    found = owners.copy()
    for at in range(len(found)):
        if found[at] == code:
            found[at] = instead
    return found


@compiled("int64[::1](int64[::1], int64)")
def _counted(owners: Owners, codes: int) -> NDArray[np.int64]:
    counts = np.zeros(codes, np.int64)
    for owner in owners:
        counts[owner] += 1
    return counts


@compiled("int64(int64[::1], int64)")
def _oldest_of_most(owners: Owners, codes: int) -> int:
    counts, oldest = _counted(owners, codes), 0
    for at in range(len(owners)):
        if counts[owners[at]] > counts[owners[oldest]]:
            oldest = at
    return oldest


@compiled("int64[::1](int64[::1], int64, float64, int64)")
def _small(owners: Owners, codes: int, most: float, instead: int) -> Owners:
    counts, found = _counted(owners, codes), owners.copy()
    for at in range(len(found)):
        if counts[owners[at]] > most:
            found[at] = instead
    return found
