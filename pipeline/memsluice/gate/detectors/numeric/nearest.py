"""Who of a thousand vectors is nearest, exactly: compiled.

Of every vector it is computed what its cosine can be at most, from a copy of eight bits a component where there are
many, and only who may come next by that is compared in full, in 64 bits.
"""

import math

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import Vector
from memsluice.gate.detectors.numeric.compiled import compiled
from memsluice.gate.detectors.numeric.versions import Places

STEPS = 1e5
"""Cosines are rounded to five digits before anything is compared: the last bits are those of one machine."""
CODES = 127
HEAD = 96
"""Components that tell whether one can be a twin: what two have in common beyond them is no more than their lengths."""
ROUNDED = 3e-5 / 384
"""More than each product of two unit vectors, in 32 bits, can put their sum off by (1 / 2 ** 24)."""
Bounds = NDArray[np.float32]
"""The greatest that each cosine can be, shape (n,)."""


@compiled("float32[::1](float32[:,::1], float32[::1], int64[::1])", reassociate=True)
def bounds(matrix: Vector, vector: Vector, places: Places) -> Bounds:
    """Return the bounds from the vectors as they are."""
    found, slack = np.empty(len(places), np.float32), np.float32(ROUNDED * len(vector))
    for at in range(len(places)):
        row, total = matrix[places[at]], np.float32(0)
        for column in range(len(vector)):
            total += row[column] * vector[column]
        found[at] = total + slack
    return found


@compiled("float32[::1](int8[:,::1], float32[:,::1], float32[::1], int64[::1], int64)", reassociate=True)
def bounds_of_codes(
    codes: NDArray[np.int8], scales: NDArray[np.float32], vector: Vector, places: Places, head: int
) -> Bounds:
    """Return the same, wider, from eight bits of the first ``head`` components, all or HEAD of them.

    What the bits leave out moves a cosine by no more than its length; what lies beyond the head by no more than the
    product of the lengths.
    """
    found, rest, slack = np.empty(len(places), np.float32), np.float32(0), np.float32(ROUNDED * len(vector))
    for column in range(head, len(vector)):
        rest += vector[column] * vector[column]
    rest = np.float32(math.sqrt(rest))
    for at in range(len(places)):
        row, total = codes[places[at]], np.float32(0)
        for column in range(head):
            total += np.float32(row[column]) * vector[column]
        total *= scales[places[at], 0]
        found[at] = total + scales[places[at], 1] + scales[places[at], 2] * rest + slack
    return found


@compiled("void(float32[:,::1], int8[:,::1], float32[:,::1])", reassociate=True)
def encode(matrix: Vector, codes: NDArray[np.int8], scales: NDArray[np.float32]) -> None:
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


@compiled("void(int64[::1], int64, int64, int64)")
def _sink(heap: NDArray[np.int64], at: int, size: int, key: int) -> None:
    """Put a key in a place of a heap whose greatest is first, where those below the place are in order."""
    below = 2 * at + 1
    while below < size:
        if below + 1 < size and heap[below + 1] > heap[below]:
            below += 1
        if heap[below] <= key:
            break
        heap[at] = heap[below]
        at, below = below, 2 * below + 1
    heap[at] = key


@compiled("int64[::1](float32[::1], boolean[::1])")
def heaped(bounds: Bounds, out: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Return a heap of all who are not ``out``; its keys sort by steps, then by position, and are odd for a bound."""
    every, size = len(bounds), 0
    heap = np.empty(every, np.int64)
    for at in range(every):
        if not out[at]:
            heap[size] = (int(np.ceil(bounds[at] * STEPS)) * every + at) * 2 + 1
            size += 1
    for at in range(size // 2 - 1, -1, -1):
        _sink(heap, at, size, heap[at])
    return heap[:size]


@compiled(
    "UniTuple(int64, 2)"
    "(float32[:,::1], float32[::1], int64[::1], int64[::1], int64[::1], int64, int64[::1], float64[::1], int64, int64,"
    " int64, int64)"
)
def taken(
    matrix: Vector,
    vector: Vector,
    places: Places,
    owners: NDArray[np.int64],
    heap: NDArray[np.int64],
    size: int,
    positions: NDArray[np.int64],
    cosines: NDArray[np.float64],
    found: int,
    count: int,
    each_max: int,
    all_max: int,
) -> tuple[int, int]:
    """Take from a heap who comes next, until ``count`` are found. Return the heap's size, and how many there are.

    ``positions`` and ``cosines`` are those of ``found`` so far, and are filled: nearest first, of equally near ones the
    youngest first. Of those with one owner, a code above 0, at most ``each_max`` are taken, of all such ``all_max``.
    """
    every = len(places)
    while size and found < count:
        key, at = heap[0], (heap[0] >> 1) % every
        full = False
        if owners[at]:
            of = owners[positions[:found]]
            full = (of > 0).sum() >= all_max or (of == owners[at]).sum() >= each_max
        if key & 1 and not full:
            _sink(heap, 0, size, (_steps(matrix[places[at]], vector) * every + at) * 2)
            continue
        size -= 1
        _sink(heap, 0, size, heap[size])
        if not full:
            positions[found], cosines[found] = at, (key >> 1) // every / STEPS
            found += 1
    return size, found


@compiled("int64(float32[:,::1], float32[::1], int64[::1], float32[::1], int64)")
def twin(matrix: Vector, vector: Vector, places: Places, bounds: Bounds, least: int) -> int:
    """Return the position of the nearest one, of equally near ones the youngest; -1 where it has less than ``least``
    steps.
    """
    best = -1
    for at in range(len(places)):
        if bounds[at] * STEPS >= least - 1:
            steps = _steps(matrix[places[at]], vector)
            if steps >= least:
                best, least = at, steps
    return best
