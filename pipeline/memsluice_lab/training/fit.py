"""Fits the wording classifier: logistic regression on hashed n-grams, multiple-instance, then eight-bit weights.

A hostile text is hostile somewhere, not in every sentence: after each of the first rounds only the two most hostile
units of a hostile text stay hostile examples. scikit-learn is needed here (a development dependency), never to decide.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from memsluice.errors import ConfigError
from memsluice.gate.detectors.wording.classifier import Classifier, grams
from memsluice.gate.detectors.wording.shipped import read
from memsluice.gate.detectors.wording.text import units
from memsluice.gate.detectors.wording.tokens import BITS
from memsluice_lab.training.corpus import Example, examples

ROUNDS = 3
KEPT_UNITS = 2
UNITS_OF_ONE_MAX = 12
INVERSE_REGULARISATION = 3.0
FOLDS = 5
LEVELS = 127


@dataclass(frozen=True, slots=True)
class Table:
    """The units of all examples: a sparse matrix (u, 2 ** BITS), labels, weights, and the example of each, (u,)."""

    features: Any
    labels: NDArray[np.int64]
    weights: NDArray[np.float64]
    owners: NDArray[np.int64]


def table(corpus: list[Example]) -> Table:
    """Return the training table. Raises ConfigError where scikit-learn's SciPy is not installed."""
    try:
        from scipy import sparse
    except ImportError:
        raise ConfigError("training needs scikit-learn: install the development dependencies") from None
    parts, owners = [], []
    for number, example in enumerate(corpus):
        for part in units(example.text)[:UNITS_OF_ONE_MAX]:
            parts.append(part)
            owners.append(number)
    found = grams(parts)
    values, units_of = 1 / np.sqrt(np.maximum(found.counts, 1)), np.repeat(np.arange(len(parts)), found.counts)
    matrix = sparse.csr_matrix((values[units_of], (units_of, found.buckets)), shape=(len(parts), 1 << BITS))
    own = np.array(owners)
    shares = np.sqrt(np.bincount(own, minlength=len(corpus)))
    weights = np.array([corpus[owner].weight / shares[owner] for owner in owners])
    return Table(matrix, np.array([corpus[owner].label for owner in owners]), weights, own)


def fit(some: Table, chosen: NDArray[np.int64]) -> tuple[NDArray[np.float64], float]:
    """Return weights and bias fitted on the chosen units."""
    from sklearn.linear_model import LogisticRegression
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]  # it has no types

    kept, features, labels = np.ones(len(chosen), bool), some.features[chosen], some.labels[chosen]
    for number in range(ROUNDS):
        model = LogisticRegression(C=INVERSE_REGULARISATION, max_iter=100, tol=1e-3)
        with threadpool_limits(1):  # sums of several threads differ in their last digits, and then in a weight's level
            model.fit(features[kept], labels[kept], some.weights[chosen][kept])
        if number + 1 < ROUNDS:
            kept = _still_hostile(some.owners[chosen], labels, features @ model.coef_[0])
    return model.coef_[0], float(model.intercept_[0])


def _still_hostile(
    owners: NDArray[np.int64], labels: NDArray[np.int64], scores: NDArray[np.float64]
) -> NDArray[np.bool_]:
    kept, of = np.ones(len(owners), bool), defaultdict(list)
    for at in np.flatnonzero(labels):
        of[owners[at]].append(at)
    for places in of.values():
        kept[sorted(places, key=lambda at: -scores[at])[KEPT_UNITS:]] = False
    return kept


def packed(weights: NDArray[np.float64], bias: float) -> bytes:
    """Return the model file: int8 weights with one scale. The same weights give the same bytes."""
    from io import BytesIO

    scale = float(np.abs(weights).max()) / LEVELS
    out = BytesIO()
    np.savez_compressed(out, weights=np.round(weights / scale).astype(np.int8), scale=scale, bias=round(bias, 6))
    return out.getvalue()


def train(data: Path, out: Path, seed: int = 1) -> Classifier:
    """Train on all records of ``data`` and write the model file. Raises ConfigError."""
    corpus = examples(data, seed)
    some = table(corpus)
    model = packed(*fit(some, np.arange(len(some.labels))))
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_bytes(model)
    return read(model)


def without(data: Path, left_out: Callable[[Example], bool], seed: int = 1) -> bytes:
    """Return the file of a model trained without some of the examples: for tables that leave some of them out."""
    corpus = examples(data, seed)
    some = table(corpus)
    kept = np.array([not left_out(corpus[owner]) for owner in some.owners])
    return packed(*fit(some, np.flatnonzero(kept)))


def fold(group: str) -> int:
    """Return the cross-validation fold of a group."""
    return crc32(group.encode()) % FOLDS


def sources(corpus: Iterable[Example]) -> dict[str, tuple[int, int]]:
    """Return, by source, how many hostile and how many honest texts there are."""
    counts: dict[str, tuple[int, int]] = {}
    for example in corpus:
        hostile, honest = counts.get(example.source, (0, 0))
        counts[example.source] = (hostile + example.label, honest + 1 - example.label)
    return counts
