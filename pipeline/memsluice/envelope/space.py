"""What vectors may be compared in: the model that made them, and their length.

Two models of one length give numbers that can be compared and a cosine that means nothing, so that the length alone
tells nothing. Sealed events, admissions and verdicts name their model; what names none is older than the choice of a
model, and of the default one.
"""

from collections.abc import Sized
from dataclasses import dataclass

from memsluice.errors import MalformedEvent

DIMENSIONS_MAX = 3_072
"""Longest vector: 6 KiB as float16. Lengths are even, since two coarse components share three bytes."""
DEFAULT_MODEL = "sentence-transformers/all-MiniLM-L6-v2@1110a243fdf4706b3f48f1d95db1a4f5529b4d41"
"""Name and revision of the default encoder's model, of which is also whatever names none."""
DEFAULT_DIMENSIONS = 384


@dataclass(frozen=True, slots=True)
class Space:
    """``model`` is a model's name and revision, ``name@revision``; ``dimensions`` the length of its vectors."""

    model: str = DEFAULT_MODEL
    dimensions: int = DEFAULT_DIMENSIONS

    def __str__(self) -> str:
        return f"{self.model} ({self.dimensions} dimensions)"


DEFAULT = Space()


def space_of(model: str, vector: Sized) -> Space:
    """Return the space of a vector, shape (d,), whose event or admission names ``model`` ("": it names none)."""
    return Space(model or DEFAULT_MODEL, len(vector))


def check_dimensions(dimensions: int) -> None:
    """Raise MalformedEvent unless a vector may have so many components: an even number of 2 to DIMENSIONS_MAX."""
    if not 2 <= dimensions <= DIMENSIONS_MAX or dimensions % 2:
        raise MalformedEvent(
            f"has {dimensions} components; an even number of 2 to {DIMENSIONS_MAX} is allowed", field="vector"
        )
