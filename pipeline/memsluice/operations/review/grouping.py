"""Which group a held write belongs to: writes of one rule, one writer and one tenant whose contents lie near. Pure.

A write joins the group of its key that was joined last, of those whose exemplar (the first member) lies near enough,
else it begins one. Its id is a hash of what the first member is called, so that the same records in the same order
give the same groups, whoever reads them, and however often.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import NamedTuple

from memsluice.envelope.codec import Vector
from memsluice.operations.held.entries import DAY_MS, HeldWrite

NEAR = 0.85
"""Cosine to the exemplar from which on two contents are near. docs/operate.md says what it was measured on."""
LIVE_MAX = 64
"""Groups of one key that a write may still join; the one that was joined least lately is closed first."""
IDLE_MS_MAX = 30 * DAY_MS
"""A group that nothing joined for so long, by the times at which its members were held, is joined no more."""
ID_DIGITS = 16


class GroupKey(NamedTuple):
    """What the members of a group share. ``reason`` is the first one that it was held for, ``model`` its encoder."""

    tenant: str
    reason: str
    kid: str
    model: str

    @classmethod
    def of(cls, entry: HeldWrite) -> "GroupKey":
        """Return the key of a held write that was read with its content."""
        assert entry.verdict is not None
        reason = entry.reasons[0] if entry.reasons else ""
        return cls(entry.tenant, reason, entry.held.kid, entry.verdict.model)


@dataclass(frozen=True, slots=True)
class Exemplar:
    """The first member of a group that may still be joined: the group's id, the member's unit vector of shape (d,), and
    when a member was last held (Unix ms)."""

    group: str
    vector: Vector
    joined_ms: int


@dataclass(slots=True)
class LiveGroups:
    """The groups of one key that may still be joined, the one that was joined last at the end."""

    exemplars: list[Exemplar] = field(default_factory=list)

    def place(self, entry: HeldWrite, vector: Vector | None) -> str:
        """Return the id of the group that a write belongs to, which it begins where none is near.

        A write without a vector is near to nothing: it is alone in its group.
        """
        if vector is None:
            return group_id(entry)
        self.exemplars = [one for one in self.exemplars if entry.held_ms - one.joined_ms < IDLE_MS_MAX]
        at = nearest(self.exemplars, vector)
        if at is None:
            joined = Exemplar(group_id(entry), vector, entry.held_ms)
        else:
            joined = replace(self.exemplars.pop(at), joined_ms=entry.held_ms)
        self.exemplars.append(joined)
        del self.exemplars[:-LIVE_MAX]
        return joined.group


def nearest(exemplars: Iterable[Exemplar], vector: Vector) -> int | None:
    """Return the place of the last exemplar with a cosine of at least NEAR to a unit vector; None for none.

    Vectors of other lengths are near to nothing.
    """
    import numpy as np

    rows = [one.vector if one.vector.shape == vector.shape else np.zeros_like(vector) for one in exemplars]
    if not rows:
        return None
    (near,) = np.nonzero(np.stack(rows) @ vector >= NEAR)
    return int(near[-1]) if len(near) else None


def group_id(entry: HeldWrite) -> str:
    """Return the id of the group that a write begins: 16 hex digits of what the write is called."""
    name = "\0".join((entry.tenant, entry.event_id, str(entry.offset)))
    return sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:ID_DIGITS]
