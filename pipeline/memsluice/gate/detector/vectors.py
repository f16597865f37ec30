"""An ordered, bounded set of unit vectors that is cheap to extend: older versions stay what they were.

Versions share one matrix. A version that appends writes behind everything that was ever written into it, and copies the
matrix only where another version got there first or it is full, so an event costs one row, not a thousand. A matrix has
room for as many again, within bounds: a worker knows hundreds of tenants, most of them small.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import DIMENSIONS, Vector

SLACK_MIN, SLACK_MAX = 32, 256
"""Free rows of a new matrix: as many as are taken, within these."""
DIGITS = 5
"""Cosines are rounded to this before anything is compared: the last bits depend on how many rows a product has."""
EXACT_MAX = 512
"""Up to so many vectors each is compared; of more, those that their first HEAD dimensions put first."""
HEAD = 96
FINALISTS_MIN, FINALISTS_OF = 128, 32
"""How many those are: at least so many, and one in so many of all."""
TIES = 8
"""So many more than asked for are rounded, since rounding can change who is nearest."""
ROUNDED = 1e-4
"""More than what products of 32 bits are rounded by."""


class _Buffer:
    def __init__(self, rows: int) -> None:
        self.matrix = np.zeros((rows, DIMENSIONS), np.float32)
        self.used = 0
        self._heads = np.zeros((0, HEAD), np.float32)
        self._tails = np.zeros(0, np.float32)
        self._headed = 0

    def heads(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Return the first HEAD dimensions of every row that was written, close together in memory, and the length of
        what is left of each.
        """
        if not len(self._heads):
            self._heads = np.zeros((len(self.matrix), HEAD), np.float32)
            self._tails = np.zeros(len(self.matrix), np.float32)
        if self._headed < self.used:
            fresh = slice(self._headed, self.used)
            self._heads[fresh] = self.matrix[fresh, :HEAD]
            self._tails[fresh] = np.linalg.norm(self.matrix[fresh, HEAD:], axis=1)
            self._headed = self.used
        return self._heads, self._tails


@dataclass(frozen=True, slots=True)
class Vectors:
    """``places``: the matrix rows of the vectors, oldest first, int64 of shape (n,). ``used``: how far it had got."""

    buffer: _Buffer
    places: NDArray[np.int64]
    used: int

    @staticmethod
    def empty() -> "Vectors":
        """Return none."""
        return Vectors(_Buffer(SLACK_MIN), np.zeros(0, np.int64), 0)

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, at: int) -> Vector:
        found: Vector = self.buffer.matrix[self.places[at]]
        return found

    def appended(self, vector: Vector) -> "Vectors":
        """Return these and one more, the youngest."""
        buffer, places, used = self.buffer, self.places, self.used
        if buffer.used != used or used == len(buffer.matrix):
            fresh = _Buffer(len(places) + min(max(len(places), SLACK_MIN), SLACK_MAX))
            fresh.matrix[: len(places)] = buffer.matrix[places]
            buffer, places, used = fresh, np.arange(len(places)), len(places)
        buffer.matrix[used] = vector
        buffer.used = used + 1
        return Vectors(buffer, np.concatenate((places, (used,))), used + 1)

    def without(self, at: int) -> "Vectors":
        """Return these without the one at a position."""
        return Vectors(self.buffer, np.concatenate((self.places[:at], self.places[at + 1 :])), self.used)

    def nearest(self, vector: Vector, count: int) -> list[tuple[int, float]]:
        """Return (position, cosine) of the ``count`` nearest, nearest first; of equally near ones the youngest first.

        Beyond EXACT_MAX a vector that is near only in its later dimensions can be missed: a bound on the work, not on
        what is kept.
        """
        matrix, at = self.buffer.matrix, np.arange(len(self.places))
        if len(at) > EXACT_MAX:
            heads = (self.buffer.heads()[0][: self.used] @ vector[:HEAD])[self.places]
            some = max(FINALISTS_MIN, len(at) // FINALISTS_OF)
            at = heads.argpartition(-some)[-some:]
            at.sort()
            found = matrix[self.places[at]] @ vector
        else:
            found = (matrix[: self.used] @ vector)[self.places]
        if len(found) > count + TIES:
            best = found.argpartition(-count - TIES)[-count - TIES :]
            found, at = found[best], at[best]
        exact = found.astype(np.float64).round(DIGITS)
        order = np.lexsort((-at, -exact))[:count]
        return list(zip(at[order].tolist(), exact[order].tolist(), strict=True))

    def twin(self, vector: Vector, least: float) -> int | None:
        """Return the position of the nearest one, of equally near ones the youngest; None where its cosine is < least.

        Exact: what two vectors have in common beyond their heads is no more than the product of the lengths of the
        rest, so few are compared in full. Up to EXACT_MAX all are: it is no dearer, and spares the copy of the heads.
        """
        if len(self.places) <= EXACT_MAX:
            return _youngest(self.cosines(vector), least)
        heads, tails = self.buffer.heads()
        rest = float(np.linalg.norm(vector[HEAD:]))
        most = heads[: self.used] @ vector[:HEAD] + tails[: self.used] * rest
        some = np.flatnonzero(most[self.places] >= least - ROUNDED)
        at = _youngest((self.buffer.matrix[self.places[some]] @ vector).astype(np.float64).round(DIGITS), least)
        return None if at is None else int(some[at])

    def ranked(self, vector: Vector) -> list[tuple[int, float]]:
        """Return (position, cosine) of every one, each compared in full, in the order of :meth:`nearest`."""
        exact = self.cosines(vector)
        order = np.lexsort((-np.arange(len(exact)), -exact))
        return list(zip(order.tolist(), exact[order].tolist(), strict=True))

    def cosines(self, vector: Vector) -> NDArray[np.float64]:
        """Return the cosine of each with ``vector``, shape (n,), rounded."""
        products: Any = (self.buffer.matrix[: self.used] @ vector)[self.places]
        found: NDArray[np.float64] = np.asarray(products, np.float64).round(DIGITS)
        return found


def _youngest(cosines: NDArray[np.float64], least: float) -> int | None:
    """Return where the greatest is, of equal ones the last; None where it is less than ``least``, or there is none."""
    if not len(cosines):
        return None
    at = len(cosines) - 1 - int(cosines[::-1].argmax())
    return at if cosines[at] >= least else None
