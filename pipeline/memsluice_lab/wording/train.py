"""Trains what ships: the head on the encoder's states, the n-grams' weights, and how the two are put together.

Both are fitted on four fifths of the groups; how they are weighed, and how rare a log-odds is on honest text, is taken
from the fifth that neither saw, each kind of honest text counting alike. Then both are fitted again on all.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from io import BytesIO
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memsluice.events.codes import opened
from memsluice.gate.detectors.wording.text import units
from memsluice_lab.wording import head, ngrams
from memsluice_lab.wording.corpus import Example, examples, held_out
from memsluice_lab.wording.features import Features, features

ENOUGH = 1_200
"""Texts of one kind; more of a kind weigh less each."""
TAIL = (0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.035, 0.025, 0.0175, 0.0125, 0.009, 0.006, 0.004, 0.0025)
"""Shares of honest text whose log-odds are kept; beyond the last the tail goes on as it ends."""
Numbers = NDArray[np.float64]
Mix = tuple[float, float, float, float]
"""As :class:`memsluice.gate.detectors.wording.classifier.Classifier` has it."""


@dataclass(frozen=True)
class Corpus:
    """All texts with what is computed of them once."""

    examples: list[Example]
    labels: NDArray[np.float32]
    weights: NDArray[np.float32]
    features: Features
    table: ngrams.Table

    @cached_property
    def sizes(self) -> Numbers:
        """The logarithm of the number of units of each text, one at least."""
        return np.log(np.array([len(units(opened(one.text))) for one in self.examples], np.float64))

    @staticmethod
    def read(data: Path, keep: Path, seed: int = 1) -> "Corpus":
        """Read and encode the corpus. Raises ConfigError where a record is missing."""
        some = examples(data, seed)
        texts = [one.text for one in some]
        kinds = Counter((kind(one), one.label) for one in some)
        weights = [one.weight * min(1.0, (ENOUGH / kinds[kind(one), one.label]) ** 0.5) for one in some]
        labels = np.array([one.label for one in some], np.float32)
        return Corpus(some, labels, np.array(weights, np.float32), features(texts, keep), ngrams.table(texts))


@dataclass(frozen=True, slots=True)
class Fitted:
    """``mix`` weighs both log-odds, and adds; the tails are log-odds at TAIL, of both and of the n-grams alone."""

    head: head.Model
    linear: ngrams.Linear
    mix: Mix
    tail: tuple[float, ...]
    tail_alone: tuple[float, ...]

    def logits(self, some: Corpus, chosen: NDArray[np.int64]) -> Numbers:
        """Return the log-odds of the chosen texts by both."""
        of_head = head.logits(self.head, some.features, chosen)
        of_grams = self.linear.logits(some.table, len(some.examples))[chosen]
        return mixed(self.mix, of_head, of_grams, some.sizes[chosen])

    def files(self) -> dict[str, bytes]:
        """Return the files that ship, by name."""
        out = BytesIO()
        linear = self.linear
        np.savez_compressed(
            out, weights=linear.levels, scale=linear.scale, bias=linear.bias, mix=np.round(self.mix, 6),
            tail=np.round(self.tail, 6), tail_alone=np.round(self.tail_alone, 6), shares=np.array(TAIL),
        )  # fmt: skip
        return {"head.npz": head.packed(self.head), "classifier.npz": out.getvalue()}


def kind(one: Example) -> str:
    """Return what a text counts as: its family within the grammar, else its source."""
    return f"{one.family} {one.language}" if one.source == "grammar" else f"{one.source} {one.language}"


def mixed(mix: Mix, of_head: Numbers, of_grams: Numbers, sizes: Numbers) -> Numbers:
    """Return the log-odds of both; ``sizes`` are the logarithms of the numbers of units."""
    return mix[0] * of_head + mix[1] * of_grams + mix[2] * sizes + mix[3]


def fit(
    some: Corpus,
    out: Callable[[Example], bool],
    *,
    again: bool,
    unseen: Callable[[Example], bool] = lambda one: False,
) -> Fitted:
    """Fit on what is not left out, weigh on what is; with ``again`` fit both on all with those weights.

    What is ``unseen`` enters none of it: how well the models know that can be measured.
    """
    left = np.array([out(one) for one in some.examples])
    apart = np.array([unseen(one) for one in some.examples])
    within, beside = np.flatnonzero(~left & ~apart), np.flatnonzero(left & ~apart)
    model = head.rounded(head.fit(some.features, some.labels, some.weights, within))
    linear = ngrams.fit(some.table, some.labels, some.weights, within)
    of_head = head.logits(model, some.features, beside)
    of_grams = linear.logits(some.table, len(some.examples))[beside]
    sizes = some.sizes[beside]
    mix = _mix(of_head, of_grams, sizes, some.labels[beside], some.weights[beside])
    kinds = [_honest_kind(some.examples[at]) for at in beside]
    honest = some.labels[beside] == 0
    tails = [
        _tail(said[honest], [kinds[at] for at in np.flatnonzero(honest)])
        for said in (mixed(mix, of_head, of_grams, sizes), of_grams)
    ]
    if again:
        every = np.flatnonzero(~apart)
        model = head.rounded(head.fit(some.features, some.labels, some.weights, every))
        linear = ngrams.fit(some.table, some.labels, some.weights, every)
    return Fitted(model, linear, mix, *tails)


def _honest_kind(one: Example) -> str:
    return f"{one.family} {'en' if one.language == 'en' else 'others'}" if one.source == "grammar" else one.source


def _mix(
    of_head: Numbers, of_grams: Numbers, sizes: Numbers, labels: NDArray[np.float32], weights: NDArray[np.float32]
) -> Mix:
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(C=1.0).fit(np.stack((of_head, of_grams, sizes), 1), labels, weights)
    first, second, third = (float(one) for one in model.coef_[0])
    return max(first, 0.0), max(second, 0.0), min(third, 0.0), float(model.intercept_[0])


def _tail(said: Numbers, kinds: list[str]) -> tuple[float, ...]:
    """Return the log-odds at TAIL: the share of the honest texts at least so high, averaged over their kinds."""
    counts = Counter(kinds)
    weights = np.array([1 / counts[one] for one in kinds])
    order = np.argsort(-said)
    shares = np.cumsum(weights[order]) / weights.sum()
    return tuple(float(said[order][min(int(np.searchsorted(shares, share)), len(said) - 1)]) for share in TAIL)


def train(data: Path, keep: Path, seed: int = 1) -> Fitted:
    """Return what ships, fitted on all records of ``data``. Raises ConfigError."""
    return fit(Corpus.read(data, keep, seed), lambda one: held_out(one.group), again=True)
