"""Entries with vectors in immutable versions, and nearest-neighbour search."""

from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memsluice.envelope.codec import DIMENSIONS, Vector
from memsluice.errors import StateError
from memsluice.gate.detectors.numeric import nearest
from memsluice.gate.detectors.numeric.nearest import HEAD, STEPS, Bounds
from memsluice.gate.detectors.numeric.versions import Numbers, Places, Versions, room

WHOLE_MAX = 512
"""Up to so many vectors no copy of eight bits is kept: it takes a quarter of the room again, and saves little."""
Thing = TypeVar("Thing")
Flags = NDArray[np.bool_]


class _Things(Generic[Thing]):
    def __init__(self, things: list[Thing], vectors: Sequence[Vector] | Vector, dimensions: int) -> None:
        self.used = len(things)
        self.things = things
        self.matrix = np.zeros((room(self.used), dimensions), np.float32)
        if things:
            self.matrix[: self.used] = vectors
        self._codes = np.zeros((0, dimensions), np.int8)
        self._scales = np.zeros((0, 3), np.float32)
        self._coded = 0

    @property
    def size(self) -> int:
        return len(self.matrix)

    def put(self, row: tuple[Thing, Vector]) -> None:
        thing, self.matrix[self.used] = row
        self.things.append(thing)
        self.used += 1

    def copied(self, places: Places) -> "_Things[Thing]":
        other = _Things([self.things[place] for place in places.tolist()], self.matrix[places], self.matrix.shape[1])
        if len(self._codes) and other.used > WHOLE_MAX:  # they are what they were; to make all of them anew takes long
            codes, scales = self.codes()
            other._room_for_codes()
            other._codes[: other.used], other._scales[: other.used] = codes[places], scales[places]
            other._coded = other.used
        return other

    def codes(self) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
        """Return what :func:`.nearest.encode` puts, of every row that was written."""
        if not len(self._codes):
            self._room_for_codes()
        if self._coded < self.used:
            fresh = slice(self._coded, self.used)
            nearest.encode(self.matrix[fresh], self._codes[fresh], self._scales[fresh])
            self._coded = self.used
        return self._codes, self._scales

    def _room_for_codes(self) -> None:
        self._codes = np.zeros(self.matrix.shape, np.int8)
        self._scales = np.zeros((len(self.matrix), 3), np.float32)


class Kept(Versions[tuple[Thing, Vector]], frozen=True):
    """Things of one type, each with a unit vector."""

    buffer: _Things[Thing]

    @staticmethod
    def of(things: Sequence[Thing], vectors: Sequence[Vector], dimensions: int = DIMENSIONS) -> "Kept[Thing]":
        """Return some things, oldest first; every vector has so many ``dimensions``, those to come too."""
        return Kept(_Things(list(things), vectors, dimensions), np.arange(len(things)), len(things))

    def __getitem__(self, at: int) -> Thing:
        found: Thing = self.buffer.things[self.places[at]]
        return found

    def __iter__(self) -> Iterator[Thing]:
        return iter([self.buffer.things[place] for place in self.places.tolist()])

    def vector(self, at: int) -> Vector:
        """Return the vector of the thing at a position."""
        found: Vector = self.buffer.matrix[self.places[at]]
        return found

    def near(self, vector: Vector, owners: Places, out: Flags, limits: "Limits") -> "Search":
        """Return a search for the nearest who are not ``out``; ``owners`` and ``out`` have the shape (n,).

        Raises StateError where the vector has another length than the kept ones.
        """
        return Search(self, vector, self._bounds(vector, len(vector)), owners, out, limits)

    def twin(self, vector: Vector, least: float) -> int | None:
        """Return the position of the nearest one, of equally near ones the youngest; None where its cosine is < least.

        ``least`` has no more digits than a cosine. Raises StateError where the vector has another length than the kept
        ones.
        """
        bounds = self._bounds(vector, min(HEAD, len(vector)))
        found = nearest.twin(self.buffer.matrix, vector, self.places, bounds, round(least * STEPS))
        return None if found < 0 else found

    def _bounds(self, vector: Vector, head: int) -> Bounds:
        if vector.shape != self.buffer.matrix.shape[1:]:
            raise StateError(f"a vector has the shape {vector.shape}, {self.buffer.matrix.shape[1:]} expected")
        if len(self.places) <= WHOLE_MAX:
            return nearest.bounds(self.buffer.matrix, vector, self.places)
        return nearest.bounds_of_codes(*self.buffer.codes(), vector, self.places, head)


class Limits(Struct, frozen=True):
    """How many are searched for, how many of one owner, and how many of all owners with a code above 0."""

    count: int
    each_max: int
    all_max: int


class Search:
    """Who comes next to a vector, nearest first, of equally near ones the youngest first, as long as there are places.

    Whoever came last may be dropped again: then his place is free for the next.
    """

    def __init__(
        self, kept: Kept[Any], vector: Vector, bounds: Bounds, owners: Places, out: Flags, limits: Limits
    ) -> None:
        self._kept, self._vector, self._owners, self._limits = kept, vector, owners, limits
        self._bounds, self._out = bounds, out
        self._positions, self._cosines = np.empty(limits.count, np.int64), np.empty(limits.count)
        self.restart()

    def restart(self) -> None:
        """Begin again with nobody taken."""
        self._heap = nearest.heaped(self._bounds, self._out)
        self._size, self._found = len(self._heap), 0

    def take(self, count: int) -> int:
        """Take so many in all, if there are. Return how many there are."""
        kept, limits = self._kept, self._limits
        self._size, self._found = nearest.taken(
            kept.buffer.matrix,
            self._vector,
            kept.places,
            self._owners,
            self._heap,
            self._size,
            self._positions,
            self._cosines,
            self._found,
            min(count, limits.count),
            limits.each_max,
            limits.all_max,
        )
        return self._found

    def drop(self) -> None:
        """Drop whoever came last."""
        self._found -= 1

    @property
    def found(self) -> tuple[Places, Numbers]:
        """Positions and cosines of whom was taken, both shape (found,)."""
        return self._positions[: self._found], self._cosines[: self._found]
