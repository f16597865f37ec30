"""An ordered, bounded set of rows that is cheap to change: older versions stay as they were.

Versions share one buffer. A version that adds a row writes behind everything that was ever written there, and copies
the buffer only where another version got there first or it is full; so a change costs a number a row, not all rows. A
buffer has room for half as many again, within bounds: a worker knows hundreds of tenants, most of them small.
"""

from typing import Any, Generic, Protocol, Self, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

ROOM_MIN, SLACK_MAX = 32, 256
"""Rows of the smallest buffer; free rows of the largest one."""
Numbers = NDArray[np.float64]
Places = NDArray[np.int64]
"""Where rows lie in a buffer, oldest first, shape (n,)."""
Row = TypeVar("Row")
Put = TypeVar("Put", contravariant=True)


class Buffer(Protocol[Put]):
    """What versions share. ``used``: how many rows were written, of ``size``."""

    used: int

    @property
    def size(self) -> int:
        """How many rows there is room for."""

    def put(self, row: Put) -> None:
        """Write one more row."""

    def copied(self, places: Places) -> Self:
        """Return another buffer that begins with the rows at some places, and has room behind them."""


class Versions(Struct, Generic[Row], frozen=True):
    """One version: its rows' ``places``, and how many were ``used`` when it was made."""

    buffer: Buffer[Row]
    places: Places
    used: int

    def __len__(self) -> int:
        return len(self.places)

    def appended(self, row: Row, *, drop: bool = False) -> Self:
        """Return these and one more, the youngest; without the oldest where ``drop``."""
        buffer, places = self._with_room(self.places[drop:])
        buffer.put(row)
        return type(self)(buffer, with_last(places, buffer.used - 1), buffer.used)

    def changed(self, at: int, row: Row) -> Self:
        """Return these with another row at a position."""
        buffer, places = self._with_room(self.places.copy())
        buffer.put(row)
        places[at] = buffer.used - 1
        return type(self)(buffer, places, buffer.used)

    def without(self, at: int) -> Self:
        """Return these without the one at a position."""
        return type(self)(self.buffer, np.concatenate((self.places[:at], self.places[at + 1 :])), self.used)

    def _with_room(self, places: Places) -> tuple[Buffer[Row], Places]:
        if self.buffer.used == self.used < self.buffer.size:
            return self.buffer, places
        return self.buffer.copied(places), np.arange(len(places))


class _Rows:
    def __init__(self, rows: NDArray[Any]) -> None:
        self.used = len(rows)
        self.matrix = np.concatenate((rows, np.zeros((room(self.used) - self.used, rows.shape[1]), rows.dtype)))

    @property
    def size(self) -> int:
        return len(self.matrix)

    def put(self, row: NDArray[Any]) -> None:
        self.matrix[self.used] = row
        self.used += 1

    def copied(self, places: Places) -> "_Rows":
        return _Rows(self.matrix[places])


class Table(Versions[NDArray[Any]], frozen=True):
    """Rows of numbers of one type."""

    buffer: _Rows

    @staticmethod
    def of(rows: NDArray[Any]) -> "Table":
        """Return a table of some rows, shape (n, columns)."""
        return Table(_Rows(rows), np.arange(len(rows)), len(rows))

    @property
    def matrix(self) -> NDArray[Any]:
        """What the rows lie in."""
        return self.buffer.matrix

    @property
    def window(self) -> NDArray[Any]:
        """The rows of a table that is only ever appended to: they lie behind one another. Nobody writes there."""
        first = int(self.places[0]) if len(self.places) else 0
        return self.buffer.matrix[first : first + len(self.places)]

    def __getitem__(self, at: int) -> NDArray[Any]:
        """Return the caller's own copy of a row: the row itself is every version's."""
        found: NDArray[Any] = self.matrix[self.places[at]].copy()
        return found

    def among(self, positions: Places | slice) -> NDArray[Any]:
        """Return the rows at some positions, shape (positions, columns)."""
        found: NDArray[Any] = self.matrix[self.places[positions]]
        return found

    def column(self, at: int, places: Places | None = None) -> NDArray[Any]:
        """Return a column, shape (n,), or what of it lies in some of the places."""
        found: NDArray[Any] = self.matrix[:, at][self.places if places is None else places]
        return found


def room(rows: int) -> int:
    """Return how many rows a new buffer has that begins with so many; one is free at least."""
    return ROOM_MIN if rows < ROOM_MIN else rows + min(max(rows // 2, ROOM_MIN), SLACK_MAX)


def with_last(some: NDArray[np.int64], last: int) -> NDArray[np.int64]:
    """Return numbers and one more behind them."""
    more = np.empty(len(some) + 1, np.int64)
    more[:-1], more[-1] = some, last
    return more
