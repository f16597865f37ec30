"""Fits the n-grams' weights: logistic regression, multiple-instance.

A hostile text is hostile somewhere, not in every unit: after each of the first rounds only the two most hostile units
of a hostile text stay hostile examples. scikit-learn is needed here (a development dependency), never to decide.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsluice.errors import ConfigError
from memsluice.events.codes import opened
from memsluice.gate.detectors.wording.classifier import grams
from memsluice.gate.detectors.wording.text import units
from memsluice.gate.detectors.wording.tokens import BITS

ROUNDS, KEPT_UNITS = 3, 2
INVERSE_REGULARISATION = 4.0
LEVELS = 127
AT_ONCE = 4_096


@dataclass(frozen=True, slots=True)
class Table:
    """The units of all texts: a sparse matrix (u, 2 ** BITS) and the text of each, (u,)."""

    features: Any
    owners: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Linear:
    """Weights of the buckets, as their file has them: eight-bit levels times ``scale``; and a bias."""

    levels: NDArray[np.int8]
    scale: float
    bias: float

    def logits(self, some: Table, texts: int) -> NDArray[np.float64]:
        """Return each text's highest log-odds over its units."""
        said = some.features @ (self.levels * self.scale) + self.bias
        found = np.full(texts, -20.0)
        np.maximum.at(found, some.owners, said)
        return found


def table(texts: Sequence[str]) -> Table:
    """Return the training table. Raises ConfigError where scikit-learn's SciPy is not installed."""
    try:
        from scipy import sparse
    except ImportError:
        raise ConfigError("training needs scikit-learn: install the development dependencies") from None
    matrices, owners = [], list[int]()
    for first in range(0, len(texts), AT_ONCE):
        parts = list[str]()
        for number, text in enumerate(texts[first : first + AT_ONCE], first):
            some = units(opened(text))
            parts += some
            owners += [number] * len(some)
        found = grams(parts)
        values, of = 1 / np.sqrt(np.maximum(found.counts, 1)), np.repeat(np.arange(len(parts)), found.counts)
        shape = (len(parts), 1 << BITS)
        one = sparse.csr_matrix((values[of].astype(np.float32), (of, found.buckets)), shape=shape)
        matrices.append(one)
    return Table(sparse.vstack(matrices, format="csr"), np.array(owners))


def fit(some: Table, labels: NDArray[np.float32], weights: NDArray[np.float32], chosen: NDArray[np.int64]) -> Linear:
    """Return what is fitted on the chosen texts."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types

    units_of = np.flatnonzero(np.isin(some.owners, chosen))
    features, owners = some.features[units_of], some.owners[units_of]
    sizes = np.bincount(owners, minlength=len(labels))
    own, said = labels[owners], weights[owners] / np.sqrt(sizes[owners])
    kept = np.ones(len(units_of), bool)
    for number in range(ROUNDS):
        model = LogisticRegression(C=INVERSE_REGULARISATION, max_iter=60, tol=1e-3)
        with threadpool_limits(1):  # sums of several threads differ in their last digits, and then in a weight's level
            model.fit(features[kept], own[kept], said[kept])
        print(f"n-grams: round {number + 1} of {ROUNDS}", flush=True)
        if number + 1 < ROUNDS:
            kept = _still_hostile(owners, own, features @ model.coef_[0])
    found = model.coef_[0]
    scale = float(np.abs(found).max()) / LEVELS
    return Linear(np.round(found / scale).astype(np.int8), scale, round(float(model.intercept_[0]), 6))


def _still_hostile(
    owners: NDArray[np.int64], labels: NDArray[np.float32], scores: NDArray[np.float64]
) -> NDArray[np.bool_]:
    kept, of = np.ones(len(owners), bool), defaultdict(list)
    for at in np.flatnonzero(labels):
        of[owners[at]].append(at)
    for places in of.values():
        kept[sorted(places, key=lambda at: -scores[at])[KEPT_UNITS:]] = False
    return kept
