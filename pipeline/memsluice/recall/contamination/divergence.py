"""The score of seed 004: how far the next-token distributions with and without the recalled context lie apart, in nats.

``rag`` is with, ``para`` without it; both are taken along the same answer. A small divergence says that the context did
not move the answer: the model knew it before, or nothing in the context bears on it.
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from memsluice.errors import InvalidArgument

LogProbabilities = NDArray[np.float64]
"""Natural logarithms of probabilities, shape (T, V): a row a position of the answer, -inf for what cannot come."""
TopLogProbabilities = Sequence[Mapping[str, float]]
"""What an API tells of each position: the logarithms of its likeliest tokens' probabilities."""
SUM_TOLERANCE = 1e-3
REST_MIN = 1e-6
"""What all other tokens have together at least: what an API rounds must not make a rest that is there impossible."""


def per_position(rag: LogProbabilities, para: LogProbabilities) -> NDArray[np.float64]:
    """Return KL(P_rag || P_para) of each position, shape (T,), 0 to infinity.

    Infinite where a token can come with the context that cannot without. Raises InvalidArgument for other shapes, and
    for rows that are no distributions.
    """
    if rag.ndim != 2 or rag.shape != para.shape:
        raise InvalidArgument(f"arguments rag and para must have one shape (T, V); they have {rag.shape}, {para.shape}")
    for name, some in (("rag", rag), ("para", para)):
        if len(some) and not np.allclose(np.exp(some).sum(axis=1), 1, atol=SUM_TOLERANCE):
            raise InvalidArgument(f"argument {name} must hold logarithms of distributions: a row does not add up to 1")
    with np.errstate(invalid="ignore"):
        terms = np.where(np.isneginf(rag), 0.0, np.exp(rag) * (rag - para))
    found: NDArray[np.float64] = np.maximum(terms.sum(axis=1), 0.0)  # rounding alone goes below
    return found


def score(rag: LogProbabilities, para: LogProbabilities) -> float:
    """Return Z, the sum over the positions (equation 2)."""
    return float(per_position(rag, para).sum())


def lower_bound(rag: TopLogProbabilities, para: TopLogProbabilities) -> float:
    """Return what Z is at least, from the likeliest tokens of each position alone.

    What either side does not name is lumped together, on both sides alike; by the data processing inequality that makes
    no divergence larger. Raises InvalidArgument for unequal lengths, for what adds up to more than 1, and for what is
    no number.
    """
    if len(rag) != len(para):
        raise InvalidArgument(f"arguments rag and para must have as many positions; they have {len(rag)}, {len(para)}")
    return sum((_lumped(some, other) for some, other in zip(rag, para, strict=True)), start=0.0)


def _lumped(rag: Mapping[str, float], para: Mapping[str, float]) -> float:
    both = sorted(rag.keys() & para.keys())
    known = [np.exp([some[token] for token in both]) for some in (rag, para)]
    if not all(some.sum() <= 1 + SUM_TOLERANCE for some in known):
        raise InvalidArgument("the probabilities of a position add up to more than 1, or are no numbers")
    p, q = (np.append(some, max(1 - some.sum(), REST_MIN)) for some in known)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * np.log(p / q), 0.0)
    return max(float(terms.sum()), 0.0)
