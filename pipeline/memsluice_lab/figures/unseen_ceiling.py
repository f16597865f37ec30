"""What several readers of the frozen encoder's states know of texts they never saw, if they might choose a budget best.

The texts that :mod:`.unseen` leaves out are judged by heads of five kinds, with ours and its n-grams, fitted on the
others: ours on all of them, the rest on some (:func:`_others`). Each is given the answer to what a gate has to guess:
the score above which it holds just the share of the honest texts left out that the goal allows. A head that ships takes
its budget from texts that it knows, and so does worse than the same head here. Heads that nobody tried may do better.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsluice.errors import StateError
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.figures.unseen import LEAST, Kind, trained
from memsluice_lab.wording import head
from memsluice_lab.wording.features import Features
from memsluice_lab.wording.train import Corpus

ALLOWED = 0.025
"""The goal of ``unseen_fpr``."""
TEXTS_MAX = 20_000
"""Texts that the heads other than ours are fitted on."""
NEAREST = 5
SEED = 1
Numbers = NDArray[np.float64]
Vectors = NDArray[np.float32]
Judge = Callable[[Vectors], Numbers]
"""Scores of units' vectors; higher is more hostile."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """The units of some texts: most and mean of their tokens' states, (U, 768), and whose each is."""

    vectors: Vectors
    owners: NDArray[np.int64]


def unseen_ceiling(setting: Setting) -> Measured:
    """The largest share of unseen hostile texts that any head holds at the threshold that is best in hindsight."""
    models = trained(setting)
    some, kinds = models.corpus, models.kinds
    left_out = np.array(list(kinds))
    scores = {
        "ours": head.logits(models.fitted.head, some.features, left_out),
        "ours, with n-grams": models.fitted.logits(some, left_out),
    }
    units = pooled(some.features, left_out)
    for name, judge in _others(some, models.known).items():
        scores[name] = _worst(judge(units.vectors), units.owners, len(left_out))
        setting.say(f"{name}: judged")
    scores["all together"] = sum((_ranks(one) for one in scores.values()), np.zeros(len(left_out)))
    labels = np.array([some.examples[at].label for at in left_out])
    shares = {name: best(said, labels, [kinds[at] for at in left_out]) for name, said in scores.items()}
    rows = [(name, ", ".join(f"{kind} {share:.2f}" for kind, share in each.items())) for name, each in shares.items()]
    means = {name: float(np.mean(list(each.values()))) for name, each in shares.items()}
    told = [("mean of the kinds", ", ".join(f"{name} {mean:.3f}" for name, mean in means.items()))]
    fitted = ("texts fitted on", f"ours {len(models.known):,}, each of the four others at most {TEXTS_MAX:,} of them")
    return Measured(max(means.values()), (*told, *rows, fitted), (_NOTE,))


_NOTE = (
    "No bound of what the encoder's states tell. The four other heads, each of one size, are fitted on a part of the "
    "texts, drawn by chance, hostile ones only where they have but one unit, unit by unit and unweighted; ours on all "
    "of them, weighted, by the worst unit of each. Heads that nobody tried, or these on more texts, may do better."
)


def best(scores: Numbers, labels: NDArray[np.int64], kinds: list[Kind]) -> Mapping[str, float]:
    """Return the share of each kind's hostile texts that are held where ALLOWED of the honest are, kinds counting
    alike in both."""
    honest = {one: scores[_of(one, kinds) & (labels == 0)] for one in enough(kinds, labels, 0)}
    if not honest:
        raise StateError(f"of no kind of honest text that was left out there are {LEAST}")
    every = np.sort(np.concatenate(list(honest.values())))
    low, high = 0, len(every) - 1
    while low < high:  # the lowest threshold that is allowed
        middle = (low + high) // 2
        share = np.mean([np.mean(some > every[middle]) for some in honest.values()])
        low, high = (low, middle) if share <= ALLOWED else (middle + 1, high)
    return {
        one[0]: float(np.mean(scores[_of(one, kinds) & (labels == 1)] > every[low])) for one in enough(kinds, labels, 1)
    }


def _of(wanted: Kind, kinds: list[Kind]) -> NDArray[np.bool_]:
    return np.array([one == wanted for one in kinds])


def pooled(some: Features, chosen: NDArray[np.int64]) -> Pooled:
    """Return the units of the chosen texts."""
    vectors, owners = list[Vectors](), list[int]()
    for place, text in enumerate(chosen):
        first, end = (some.ends[text - 1] if text else 0), some.ends[text]
        unit, last = (some.text_units[text - 1] if text else 0), some.text_units[text]
        states = np.asarray(some.states[first:end], np.float32)
        for one in range(unit, last):
            token = some.unit_ends[one - 1] if one else 0
            mine = states[some.tokens[token : some.unit_ends[one]]]
            vectors.append(np.concatenate((mine.max(0), mine.mean(0))))
            owners.append(place)
    return Pooled(np.array(vectors, np.float32), np.array(owners, np.int64))


def enough(kinds: list[Kind], labels: NDArray[np.int64], label: int) -> list[Kind]:
    """Return the kinds that the figures count: what they say is explicit, and there are texts enough of them."""
    found = Counter(one for one, mine in zip(kinds, labels, strict=True) if mine == label)
    return sorted(one for one, number in found.items() if one[1] and number >= LEAST)


def _others(some: Corpus, known: NDArray[np.int64]) -> Mapping[str, Judge]:
    """Fit the heads that are not ours, on units of TEXTS_MAX texts: a hostile text's only where it has but one."""
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    rng = np.random.default_rng(SEED)
    sizes = np.diff(some.features.text_units, prepend=0)
    single = np.array([at for at in known if sizes[at] == 1 or not some.labels[at]])
    texts = rng.permutation(single)[:TEXTS_MAX]
    units = pooled(some.features, texts)
    labels = some.labels[texts][units.owners].astype(np.int64)
    models = {
        "linear": make_pipeline(StandardScaler(), LogisticRegression(C=0.1, max_iter=300)),
        "trees": HistGradientBoostingClassifier(max_iter=200, random_state=SEED),
        "wide network": make_pipeline(
            StandardScaler(), MLPClassifier((512,), alpha=1e-2, early_stopping=True, random_state=SEED)
        ),
    }
    for model in models.values():
        model.fit(units.vectors, labels)
    return {**{name: _odds(model) for name, model in models.items()}, "neighbours": _neighbours(units.vectors, labels)}


def _odds(model: Any) -> Judge:
    return lambda vectors: np.asarray(model.predict_proba(vectors)[:, 1], np.float64)


def _neighbours(known: Vectors, labels: NDArray[np.int64]) -> Judge:
    """Return how much nearer the NEAREST hostile units are than the honest ones, by cosine."""

    def unit(vectors: Vectors) -> Vectors:
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.float32)

    sides = [unit(known[labels == label]) for label in (0, 1)]

    def judge(vectors: Vectors) -> Numbers:
        found = []
        for first in range(0, len(vectors), 1_000):
            near = [np.sort(unit(vectors[first : first + 1_000]) @ one.T, 1)[:, -NEAREST:].mean(1) for one in sides]
            found.append(near[1] - near[0])
        return np.concatenate(found).astype(np.float64)

    return judge


def _worst(scores: Numbers, owners: NDArray[np.int64], texts: int) -> Numbers:
    """Return each text's highest score; a text without units has the lowest there is."""
    found = np.full(texts, scores.min())
    np.maximum.at(found, owners, scores)
    return found


def _ranks(scores: Numbers) -> Numbers:
    return np.argsort(np.argsort(scores)).astype(np.float64)
