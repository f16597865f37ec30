"""The plain script's encoder, for benchmarks that run ours beside it.

The plain script calls ``SentenceTransformer.encode(texts, batch_size=64)`` on 64 texts at a time, as they come, with
the same weights: what people write first.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder import Encoder
from memsluice.encoder.weights import find_weights
from memsluice.errors import ConfigError

PLAIN_BATCH = 64
OWN_BATCHES = (64, 256)
TEXTS_MAX = 100_000


@dataclass(frozen=True, slots=True)
class EncoderRatio:
    """Texts a second of the plain call and of our loop, medians over ``rounds``, on the same texts.

    ``own_per_s`` and ``ratio`` (own over plain) are by how many texts our loop was given at a time; ``cosine_min`` is
    the least cosine between the two vectors of a text.
    """

    texts: int
    rounds: int
    plain_per_s: float
    own_per_s: dict[int, float]
    ratio: dict[int, float]
    cosine_min: float


@cache
def plain_model() -> Any:
    """Return the SentenceTransformer of the packaged, digest-checked weights, loaded once; torch threads untouched."""
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(str(find_weights({})), device="cpu")


def plain_encode(texts: Sequence[str]) -> NDArray[np.float32]:
    """Return float32 (len(texts), 384), just as the plain script computes them: inner batches of 64, float32."""
    if not texts:
        return np.zeros((0, 384), dtype=np.float32)
    vectors = plain_model().encode(list(texts), batch_size=PLAIN_BATCH, show_progress_bar=False)
    return np.asarray(vectors, dtype=np.float32)


def encoder_ratio(
    texts: Sequence[str], own: Encoder, *, rounds: int = 3, clock: Callable[[], float] = time.perf_counter
) -> EncoderRatio:
    """Measure both encoders side by side: in every round all contenders encode all texts, one after the other.

    Taking turns lets a busy or throttled machine slow all alike; the ratio is the median of the rounds' ratios. Takes
    some ``rounds * len(texts) / 20`` seconds. Raises :class:`ConfigError` without texts, or beyond 100,000.
    """
    if not 0 < len(texts) <= TEXTS_MAX:
        raise ConfigError(f"the encoder benchmark takes 1 to {TEXTS_MAX} texts, not {len(texts)}")
    contenders: dict[int, tuple[Callable[[Sequence[str]], NDArray[np.float32]], int]] = {0: (plain_encode, PLAIN_BATCH)}
    contenders |= {size: (own.encode, size) for size in OWN_BATCHES}
    for encode, size in contenders.values():
        encode(texts[:size])  # the first call pays for loading and for kernels prepared on first use
    speeds: dict[int, list[float]] = {name: [] for name in contenders}
    vectors: dict[int, NDArray[np.float32]] = {}
    for _ in range(rounds):
        for name, (encode, size) in contenders.items():
            started = clock()
            vectors[name] = np.concatenate([encode(texts[at : at + size]) for at in range(0, len(texts), size)])
            speeds[name].append(len(texts) / (clock() - started))
    cosines = np.concatenate([(vectors[0] * vectors[size]).sum(axis=1) for size in OWN_BATCHES])
    return EncoderRatio(
        texts=len(texts),
        rounds=rounds,
        plain_per_s=median(speeds[0]),
        own_per_s={size: median(speeds[size]) for size in OWN_BATCHES},
        ratio={
            size: median(own / plain for own, plain in zip(speeds[size], speeds[0], strict=True))
            for size in OWN_BATCHES
        },
        cosine_min=float(cosines.min()),
    )
