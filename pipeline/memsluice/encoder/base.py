"""What an encoder is: texts in, unit vectors out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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
        """Return float32 of shape (len(texts), d): row i is the L2-normalised vector of ``texts[i]``."""
