"""A question as CrewAI hands it to a storage: as a vector, from which its text can be read again.

CrewAI asks a storage with an embedding and without the words. The gate asks with words, and embeds them itself. So the
embedder of a gated memory makes vectors that carry their text: nothing has to be remembered between the two calls,
which CrewAI makes in threads of its own, and two questions are never taken for each other.
"""

from collections.abc import Sequence
from hashlib import sha256

from memsluice.errors import InvalidArgument
from memsluice.events.limits import QUESTION_BYTES_MAX

SIGNS = 256
"""What a vector begins with: a sign for each bit of the text's digest. CrewAI drops from a batch whatever lies within a
cosine of 0.98: by these it drops what is there twice, and no other text."""
STEP = 2.0**-20
"""What stands for 1 in a byte of the text: exact as a float, and next to nothing in a cosine."""


def embedder(texts: Sequence[str]) -> list[list[float]]:
    """Return a vector for each text; give it to a ``crewai.Memory`` whose storage is a gated one.

    It carries the beginning of a text that is too long for a question.
    """
    return [_vector(text.encode("utf-8", "replace")) for text in texts]


def question_of(vector: Sequence[float]) -> str:
    """Return the text of a vector. Raises InvalidArgument for one that no :func:`embedder` made."""
    signs, text = vector[:SIGNS], [one / STEP for one in vector[SIGNS:]]
    if len(signs) < SIGNS or any(abs(one) != 1 for one in signs) or any(one not in _BYTES for one in text):
        raise InvalidArgument(
            "argument query_embedding is of another embedder: give this memory embedder=memsluice.adapters.crewai."
            "embedder, or have memsluice.adapters.crewai.attach do it; the gate embeds, and needs the question's text"
        )
    return bytes(map(int, text)).decode(errors="ignore")


_BYTES = frozenset(map(float, range(256)))


def _vector(text: bytes) -> list[float]:
    digest = int.from_bytes(sha256(text).digest(), "big")
    signs = [1.0 if digest >> at & 1 else -1.0 for at in range(SIGNS)]
    return signs + [one * STEP for one in text[:QUESTION_BYTES_MAX]]
