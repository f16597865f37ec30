"""Questions asked of a model with and without their context, and what truly made each answer: by intervention.

An answer is from memory if it stays the same when every entry of the context says another value: no divergence is
used to tell, and an answer that was copied from the wrong entry is none from memory.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import roc_auc_score, roc_curve

from memsluice.errors import StateError
from memsluice.recall.contamination.paths import Model, compare
from memsluice_lab.facts.world import ANSWER, Asked, Value, World, prompted

LENGTH = ANSWER + 1
DRAWS, SIDES = 1_000, (2.5, 97.5)
AT_TOP, TRUE_RATE = 10, 0.95


@dataclass(frozen=True, slots=True)
class Scored:
    """A question, whether it is about a known name and in other words, and what came of it.

    ``agree`` says whether its context told the true value; ``score`` is Z in nats; ``memory`` whether the answer stays
    the same when the whole context says other values.
    """

    asked: Asked
    known: bool
    reworded: bool
    agree: bool
    answer: tuple[int, ...]
    score: float
    memory: bool


def scored(model: Model, world: World, *, clean: int, contaminated: int, paraphrased: int) -> list[Scored]:
    """Ask so many questions of each kind of seed 004's Table III. Contaminated ones are about known names, every second
    with a context that says another value than the known one."""
    found = [one(model, world, world.ask(known=False), known=False) for _ in range(clean)]
    for at in range(contaminated + paraphrased):
        asked, agree = world.ask(known=True), at % 2 == 0
        asked = asked if agree else asked.contradicted(other(world, asked.value))
        asked = asked if at < contaminated else asked.reworded()
        found.append(one(model, world, asked, known=True, reworded=at >= contaminated, agree=agree))
    return found


def one(model: Model, world: World, asked: Asked, *, known: bool, reworded: bool = False, agree: bool = True) -> Scored:
    """Ask one question, and once more with other values in all of its context."""
    compared = compare(model, prompted, asked.question, asked.entries, length=LENGTH)
    stays = answer(model, rewritten(world, asked)) == compared.answer
    return Scored(asked, known, reworded, agree, compared.answer, compared.score, stays)


def rewritten(world: World, asked: Asked) -> Asked:
    """Return the same question where every entry says another value than it did."""
    for place, entry in enumerate(asked.entries):
        first, second = entry.split()[2:4]
        asked = asked.changed([place], other(world, (first, second)))
    return asked


def answer(model: Model, asked: Asked) -> tuple[int, ...]:
    """Return the tokens of the answer to a question with its context."""
    return tuple(model.answer(prompted(asked.question, asked.entries), LENGTH))


def other(world: World, value: Value) -> Value:
    """Draw another value than this one, other in its first word."""
    while True:
        drawn = world.value()
        if drawn[0] != value[0]:
            return drawn


@dataclass(frozen=True, slots=True)
class Told:
    """How well scores tell what is contaminated (low) from what is not: seed 004's metrics."""

    auroc: float
    low: float
    high: float
    precision: float
    """Share of contaminated ones among the AT_TOP lowest scores."""
    false_rate: float
    """Share of clean ones flagged where TRUE_RATE of the contaminated ones are."""

    def __str__(self) -> str:
        return (
            f"AUROC {self.auroc:.3f} ({self.low:.3f} to {self.high:.3f}), precision@{AT_TOP} {self.precision:.2f}, "
            f"FPR@95 % {self.false_rate:.3f}"
        )


def area(contaminated: Sequence[float], clean: Sequence[float]) -> float:
    """Return the AUROC of low scores for what is contaminated."""
    labels = [1] * len(contaminated) + [0] * len(clean)
    return float(roc_auc_score(labels, [-nats for nats in (*contaminated, *clean)]))


def told(contaminated: Sequence[float], clean: Sequence[float]) -> Told:
    """Return the metrics; the interval is the bootstrap's of DRAWS draws, 95 %. Raises StateError where either is
    empty."""
    if not contaminated or not clean:
        raise StateError("no answer came from memory, or none from the context: the model has not learned both")
    scores = -np.array([*contaminated, *clean])
    labels = np.repeat([1, 0], [len(contaminated), len(clean)])
    areas = list(_drawn(scores, labels))
    low, high = np.percentile(areas, SIDES)
    top = labels[np.argsort(-scores, kind="stable")[:AT_TOP]]
    false, true, _ = roc_curve(labels, scores, drop_intermediate=False)
    return Told(
        area(contaminated, clean), float(low), float(high), float(top.mean()),
        float(false[true >= TRUE_RATE].min()),
    )  # fmt: skip


def _drawn(scores: NDArray[np.float64], labels: NDArray[np.int64]) -> Iterator[float]:
    """Yield the area of questions drawn again, with repetitions, of either kind as many as there are."""
    chance, kinds = np.random.default_rng(0), [np.flatnonzero(labels == kind) for kind in (0, 1)]
    for _ in range(DRAWS):
        chosen = np.concatenate([chance.choice(kind, len(kind)) for kind in kinds])
        yield float(roc_auc_score(labels[chosen], scores[chosen]))
