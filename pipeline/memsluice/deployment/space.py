"""How much room a disk has, and from when on that is too little. The one place where the thresholds stand.

Two measures, whichever is reached first: bytes, because what is being written needs some, and a share, because
Weaviate refuses every write on a disk that is used by 98 %, however large it is.
"""

import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

MIB, GIB = 1024**2, 1024**3
LOW_BYTES, LOW_SHARE = 5 * GIB, 0.05
"""Below either, an operator is warned: there are hours or days left."""
SCARCE_BYTES, SCARCE_SHARE = 2 * GIB, 0.03
"""Below either, it is a failure: at a share of 0.02 the vector store refuses writes."""
STOP_BYTES = 96 * MIB
"""Below it the local stack's broker is stopped in good order, rather than that a write fails in its middle."""
RESUME_BYTES = 192 * MIB
"""From then on, what was stopped, or ended, for want of room is started again."""


class RoomState(StrEnum):
    """How a disk is. ``low`` runs on and wants a look; ``scarce`` is about to refuse, or does already."""

    OK = "ok"
    LOW = "low"
    SCARCE = "scarce"


@dataclass(frozen=True, slots=True)
class Room:
    """What a disk has: ``free`` of ``total`` bytes that this user may still write, below ``path``."""

    path: Path
    free: int
    total: int

    @classmethod
    def of(cls, path: Path) -> "Room":
        """Return the room of the disk that a path lies on, or will lie on. Raises OSError."""
        there = next(place for place in (path, *path.parents) if place.exists())
        found = os.statvfs(there)
        return cls(path, found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)

    @property
    def share(self) -> float:
        """The free share, 0 to 1."""
        return self.free / self.total if self.total else 0.0

    @property
    def state(self) -> RoomState:
        """How it is, by the thresholds above."""
        if self.free < SCARCE_BYTES or self.share < SCARCE_SHARE:
            return RoomState.SCARCE
        if self.free < LOW_BYTES or self.share < LOW_SHARE:
            return RoomState.LOW
        return RoomState.OK

    @property
    def too_little(self) -> bool:
        """Whether the broker is to be stopped before a write of its own fails."""
        return self.free < STOP_BYTES

    @property
    def enough_again(self) -> bool:
        """Whether what stopped for want of room may be started."""
        return self.free >= RESUME_BYTES

    def __str__(self) -> str:
        return f"{self.free / MIB:,.0f} MiB free below {self.path} ({self.share:.0%} of the disk)"
