"""What an encoder is: texts in, unit vectors out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, Protocol, runtime_checkable

from memsluice.envelope.space import DIMENSIONS_MAX, Space
from memsluice.errors import ConfigError

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
        letter; whatever else it raises, or a return of another kind, stops the stage, which tries again."""


@runtime_checkable
class WordingReader(Protocol):
    """An encoder that reads, besides, what its texts say to do."""

    def read(self, texts: Sequence[str]) -> "tuple[NDArray[np.float32], list[Wording | None]]":
        """Return what ``encode`` does, and what the wording of each text showed; None: nothing was read."""


def encode(encoder: Encoder, texts: Sequence[str]) -> "NDArray[np.float32]":
    """Return the vectors of some texts. Raises ConfigError where the encoder gives something else than it declares:
    that is no text's fault, so no text may become a dead letter for it."""
    return _checked(encoder, texts, encoder.encode(texts))


def read(encoder: Encoder, texts: Sequence[str]) -> "tuple[NDArray[np.float32], list[Wording | None]]":
    """Return what :func:`encode` does, and what the wording of each text showed; an encoder without a head shows
    nothing."""
    if not isinstance(encoder, WordingReader):
        return encode(encoder, texts), [None] * len(texts)
    found: object = encoder.read(texts)
    match found:
        case (vectors, list(shown)) if len(shown) == len(texts):
            return _checked(encoder, texts, vectors), shown
    raise ConfigError(
        f"the encoder {space_of_encoder(encoder).model} read {len(texts)} texts and returned no pair of vectors and a "
        "list of as many wordings"
    )


def space_of_encoder(encoder: Encoder) -> Space:
    """Return what an encoder's vectors may be compared in. Raises ConfigError for a name that nobody could read, and
    for vectors of a length that is not allowed."""
    name: object = encoder.model_id
    if not (isinstance(name, str) and name.strip() and f"{name}{encoder.revision}".isprintable()):
        raise ConfigError(
            f"the encoder has the model_id {name!r} and the revision {encoder.revision!r}; a name that can be printed "
            "is needed, and a revision that can be"
        )
    if not 2 <= encoder.dimensions <= DIMENSIONS_MAX or encoder.dimensions % 2:
        raise ConfigError(
            f"the encoder {name} gives vectors of {encoder.dimensions} dimensions; an even number of at most "
            f"{DIMENSIONS_MAX} is allowed"
        )
    return Space(f"{name}@{encoder.revision}", encoder.dimensions)


def _checked(encoder: Encoder, texts: Sequence[str], found: object) -> "NDArray[np.float32]":
    import numpy as np  # there by now: this module alone is cheap to import

    wanted = (len(texts), encoder.dimensions)
    if not isinstance(found, np.ndarray):
        said = type(found).__name__
    elif found.dtype != np.float32 or found.shape != wanted:
        said = f"{found.dtype} of shape {found.shape}"
    elif not np.isfinite(found).all():
        said = "a number that is not finite"
    else:
        return found
    raise ConfigError(
        f"the encoder {space_of_encoder(encoder).model} returned {said}; it declares finite float32 of shape {wanted}, "
        f"a row for each of {len(texts)} texts"
    )
