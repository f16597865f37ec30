"""An ordered, bounded set of unit vectors that is cheap to extend: older versions stay what they were.

Versions share one matrix. A version that appends writes behind everything that was ever written into it, and copies the
matrix only where another version got there first or it is full, so an event costs one row, not a thousand. A matrix has
room for as many again, within bounds: a worker knows hundreds of tenants, most of them small.

Who is nearest is exact: of every vector an interval is computed that its cosine lies in, from a copy of eight bits a
component where there are many, and whoever's interval reaches far enough is compared in full, in 64 bits.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import DIMENSIONS, Vector
from memsluice.errors import StateError
from memsluice.gate.compiled import compiled

SLACK_MIN, SLACK_MAX = 32, 256
"""Free rows of a new matrix: as many as are taken, within these."""
STEPS = 1e5
"""Cosines are rounded to five digits before anything is compared: the last bits are those of one machine."""
WHOLE_MAX = 512
"""Up to so many vectors no copy of eight bits is kept: it takes a quarter of the room again, and saves little."""
CODES = 127
HEAD = 96
"""Components that tell whether one can be a twin: what two have in common beyond them is no more than their lengths."""
ROUNDED = 3e-5
"""More than a sum of 384 products of unit vectors, in 32 bits, can be off by (384 / 2 ** 24)."""
_LOWEST = np.int64(-(2**62))
Bounds = NDArray[np.float32]


@compiled("float32[:,::1](float32[:,::1], float32[::1], int64[::1])", reassociate=True)
def _bounds(matrix: Vector, vector: Vector, places: NDArray[np.int64]) -> Bounds:
    """Return the least and the greatest that each cosine can be, shape (n, 2), from the vectors as they are."""
    found = np.empty((len(places), 2), np.float32)
    for at in range(len(places)):
        row, total = matrix[places[at]], np.float32(0)
        for column in range(len(vector)):
            total += row[column] * vector[column]
        found[at, 0], found[at, 1] = total - ROUNDED, total + ROUNDED
    return found


@compiled("float32[:,::1](int8[:,::1], float32[:,::1], float32[::1], int64[::1], int64)", reassociate=True)
def _bounds_of_codes(
    codes: NDArray[np.int8], scales: NDArray[np.float32], vector: Vector, places: NDArray[np.int64], head: int
) -> Bounds:
    """Return the same, wider, from eight bits of the first ``head`` components, all or HEAD of them.

    What the bits leave out moves a cosine by no more than its length; what lies beyond the head by no more than the
    product of the lengths.
    """
    found, rest = np.empty((len(places), 2), np.float32), np.float32(0)
    for column in range(head, len(vector)):
        rest += vector[column] * vector[column]
    rest = np.float32(math.sqrt(rest))
    for at in range(len(places)):
        row, total = codes[places[at]], np.float32(0)
        for column in range(head):
            total += np.float32(row[column]) * vector[column]
        total *= scales[places[at], 0]
        off = scales[places[at], 1] + scales[places[at], 2] * rest + ROUNDED
        found[at, 0], found[at, 1] = total - off, total + off
    return found


@compiled("void(float32[:,::1], int8[:,::1], float32[:,::1])", reassociate=True)
def _encode(matrix: Vector, codes: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
    """Put eight bits of each component; and each row's step, the length of what the steps leave out, and of what lies
    beyond the head.
    """
    for at in range(len(matrix)):
        row, most, out, rest = matrix[at], 0.0, 0.0, 0.0
        for column in range(len(row)):
            most = max(most, abs(np.float64(row[column])))
        step = max(most / CODES, 1e-12)
        for column in range(len(row)):
            whole = np.rint(row[column] / step)
            codes[at, column] = np.int8(whole)
            out += (row[column] - whole * step) ** 2
            rest += row[column] ** 2 if column >= HEAD else 0.0
        scales[at, 0], scales[at, 1], scales[at, 2] = step, math.sqrt(out), math.sqrt(rest)


@compiled("int64(float32[::1], float32[::1])", reassociate=True)
def _steps(row: Vector, vector: Vector) -> int:
    """Return a cosine in whole steps of its last digit."""
    total = 0.0
    for column in range(len(vector)):
        total += np.float64(row[column]) * np.float64(vector[column])
    return int(np.rint(total * STEPS))


@compiled("void(int64[::1], int64, int64)")
def _sink(heap: NDArray[np.int64], size: int, key: int) -> None:
    """Put a key in the place of a heap's least one."""
    at, below = 0, 1
    while below < size:
        if below + 1 < size and heap[below + 1] < heap[below]:
            below += 1
        if heap[below] >= key:
            break
        heap[at] = heap[below]
        at, below = below, 2 * below + 1
    heap[at] = key


@compiled("Tuple((int64[::1], float64[::1]))(float32[:,::1], float32[::1], int64[::1], float32[:,::1], int64)")
def _nearest(
    matrix: Vector, vector: Vector, places: NDArray[np.int64], bounds: Bounds, count: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return positions and cosines of the ``count`` nearest, nearest first, of equally near ones the youngest first."""
    every = len(places)
    count = min(count, every)
    lows, keys = np.full(count, _LOWEST), np.full(count, _LOWEST)
    for at in range(every if count < every else 0):
        low = int(np.floor(bounds[at, 0] * STEPS))
        if low > lows[0]:
            _sink(lows, count, low)
    for at in range(every):
        if bounds[at, 1] * STEPS >= lows[0] - 1:  # rounding is half a step
            key = _steps(matrix[places[at]], vector) * every + at  # sorts by both
            if key > keys[0]:
                _sink(keys, count, key)
    positions, cosines = np.empty(count, np.int64), np.empty(count)
    for size in range(count, 0, -1):
        key = keys[0]
        positions[size - 1], cosines[size - 1] = key % every, (key // every) / STEPS
        _sink(keys, size - 1, keys[size - 1])
    return positions, cosines


@compiled("int64(float32[:,::1], float32[::1], int64[::1], float32[:,::1], int64)")
def _twin(matrix: Vector, vector: Vector, places: NDArray[np.int64], bounds: Bounds, least: int) -> int:
    """Return the position of the nearest one, of equally near ones the youngest; -1 where it has less than ``least``
    steps.
    """
    best = -1
    for at in range(len(places)):
        if bounds[at, 1] * STEPS >= least - 1:
            steps = _steps(matrix[places[at]], vector)
            if steps >= least:
                best, least = at, steps
    return best


@dataclass(frozen=True, slots=True)
class Nearest:
    """Positions and cosines, both shape (n,), nearest first."""

    positions: NDArray[np.int64]
    cosines: NDArray[np.float64]


class _Buffer:
    def __init__(self, rows: int) -> None:
        self.matrix = np.zeros((rows, DIMENSIONS), np.float32)
        self.used = 0
        self._codes = np.zeros((0, DIMENSIONS), np.int8)
        self._scales = np.zeros((0, 3), np.float32)
        self._coded = 0

    def codes(self) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Return what :func:`_encode` puts, of every row that was written."""
        if not len(self._codes):
            self._codes = np.zeros(self.matrix.shape, np.int8)
            self._scales = np.zeros((len(self.matrix), 3), np.float32)
        if self._coded < self.used:
            fresh = slice(self._coded, self.used)
            _encode(self.matrix[fresh], self._codes[fresh], self._scales[fresh])
            self._coded = self.used
        return self._codes, self._scales


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

    def appended(self, vector: Vector, *, drop: bool = False) -> "Vectors":
        """Return these and one more, the youngest; without the oldest where ``drop``."""
        buffer, places, used = self.buffer, self.places[drop:], self.used
        if buffer.used != used or used == len(buffer.matrix):
            fresh = _Buffer(len(places) + min(max(len(places), SLACK_MIN), SLACK_MAX))
            fresh.matrix[: len(places)] = buffer.matrix[places]
            buffer, places, used = fresh, np.arange(len(places)), len(places)
        buffer.matrix[used] = vector
        buffer.used = used + 1
        return Vectors(buffer, with_last(places, used), used + 1)

    def without(self, at: int) -> "Vectors":
        """Return these without the one at a position."""
        return Vectors(self.buffer, np.concatenate((self.places[:at], self.places[at + 1 :])), self.used)

    def among(self, positions: NDArray[np.int64]) -> "Vectors":
        """Return those at some positions, in order."""
        return Vectors(self.buffer, self.places[positions], self.used)

    def nearest(self, vector: Vector, count: int) -> Nearest:
        """Return the ``count`` nearest, nearest first; of equally near ones the youngest first.

        Raises StateError where the vector is none of DIMENSIONS.
        """
        if not len(self.places) or count < 1:
            return Nearest(self.places[:0], np.zeros(0))
        bounds = self._bounds(vector, DIMENSIONS)
        return Nearest(*_nearest(self.buffer.matrix, vector, self.places, bounds, count))

    def twin(self, vector: Vector, least: float) -> int | None:
        """Return the position of the nearest one, of equally near ones the youngest; None where its cosine is < least.

        ``least`` has no more digits than a cosine. Raises StateError where the vector is none of DIMENSIONS.
        """
        bounds = self._bounds(vector, HEAD)
        found = _twin(self.buffer.matrix, vector, self.places, bounds, round(least * STEPS))
        return None if found < 0 else found

    def _bounds(self, vector: Vector, head: int) -> Bounds:
        if vector.shape != (DIMENSIONS,):
            raise StateError(f"a vector has the shape {vector.shape}, ({DIMENSIONS},) expected")
        if len(self.places) <= WHOLE_MAX:
            return _bounds(self.buffer.matrix, vector, self.places)
        return _bounds_of_codes(*self.buffer.codes(), vector, self.places, head)


def with_last(some: NDArray[np.int64], last: int) -> NDArray[np.int64]:
    """Return numbers and one more behind them."""
    more = np.empty(len(some) + 1, np.int64)
    more[:-1], more[-1] = some, last
    return more
