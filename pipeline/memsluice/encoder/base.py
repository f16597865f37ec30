"""What an encoder is: texts in, unit vectors out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from memsluice.envelope.space import Space

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from memsluice.envelope.seals import Wording

Precision = Literal["auto", "bf16", "fp32"]


class Encoder(Protocol):
    """What turns texts into vectors. Implementations may be called from any thread."""

    @property
    def model_id(self) -> str:
        """The model's name, as it is written into every verdict."""

    @property
    def revision(self) -> str:
        """The model's revision: vectors of different revisions are never compared."""

    @property
    def dimensions(self) -> int:
        """Length d of a vector."""

    def encode(self, texts: Sequence[str]) -> "NDArray[np.float32]":
        """Return float32 of shape (len(texts), d): row i is the L2-normalised vector of ``texts[i]``, zeros
        where the model finds nothing in it. ValueError says that a text cannot be encoded: that write is a dead
        letter; whatever else it raises stops the stage, which tries again."""


@runtime_checkable
class WordingReader(Protocol):
    """An encoder that reads, besides, what its texts say to do."""

    def read(self, texts: Sequence[str]) -> "tuple[NDArray[np.float32], list[Wording | None]]":
        """Return what ``encode`` does, and what the wording of each text showed; None: nothing was read."""


def read(encoder: Encoder, texts: Sequence[str]) -> "tuple[NDArray[np.float32], list[Wording | None]]":
    """Return the vectors of some texts and what their wording showed; an encoder without a head shows nothing."""
    if isinstance(encoder, WordingReader):
        return encoder.read(texts)
    return encoder.encode(texts), [None] * len(texts)


def space_of_encoder(encoder: Encoder) -> Space:
    """Return what an encoder's vectors may be compared in."""
    return Space(f"{encoder.model_id}@{encoder.revision}", encoder.dimensions)
