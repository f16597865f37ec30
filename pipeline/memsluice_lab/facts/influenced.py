"""How often influence evidence is wrong about which entries made an answer, told by intervention.

An entry made an answer if the answer changes when the entry says another value; two entries made it together if it
changes when both do.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from memsluice.recall.contamination.evidence import idle, moved
from memsluice.recall.contamination.paths import Model, influences
from memsluice.recall.contamination.threshold import Tau, settings
from memsluice_lab.facts.scored import answer, other
from memsluice_lab.facts.world import Asked, World, prompted

MADE, NOT_MADE, MISSED, KEPT = "made the answer", "did not", "made it, judged not", "did not, judged so"
Counts = Counter[str]


def calibrated(model: Model, world: World, count: int, alpha: float) -> Tau:
    """Return a threshold of the influences of ``count`` entries that tell of other names than was asked for, known ones
    and fresh ones in turn."""
    tau, questions = Tau(settings(alpha, window=count)), 0
    while len(tau.state.values) < count:
        asked = world.ask(known=questions % 2 == 0)
        each_ = influences(model, prompted, asked.question, asked.entries, answer(model, asked))
        for at, nats in enumerate(each_):
            if at not in asked.about and len(tau.state.values) < count:
                tau = idle(tau, f"{questions}/{at}", nats)
        questions += 1
    return tau


def made(model: Model, world: World, asked: Asked, places: Sequence[int]) -> bool:
    """Say whether the answer changes when the entries at these places say another value."""
    return answer(model, asked.changed(places, other(world, asked.value))) != answer(model, asked)


def each(model: Model, world: World, tau: Tau, questions: Sequence[Asked]) -> Counts:
    """Count the entries of some questions: what each did, and what the evidence says of it."""
    counts = Counts()
    for asked in questions:
        found = moved(model, prompted, asked.question, asked.entries, answer(model, asked), tau)
        for at in range(len(asked.entries)):
            did, judged = made(model, world, asked, [at]), at in found
            counts[MADE if did else NOT_MADE] += 1
            counts[MISSED] += did and not judged
            counts[KEPT] += judged and not did
    return counts


@dataclass(frozen=True, slots=True)
class Twice:
    """Of questions whose answer two entries made together: those of which neither is judged to have, entry by entry
    and where both are doubted."""

    made: int
    missed_each: int
    missed_together: int


def twice(model: Model, world: World, tau: Tau, count: int) -> Twice:
    """Ask about fresh names of which two entries say the same."""
    all_, by_each, by_both = 0, 0, 0
    for _ in range(count):
        asked = world.ask(known=False, times=2)
        if not made(model, world, asked, asked.about):
            continue
        given = (model, prompted, asked.question, asked.entries, answer(model, asked), tau)
        all_ += 1
        by_each += not set(asked.about) & set(moved(*given))
        by_both += not set(asked.about) & set(moved(*given, doubted=asked.about))
    return Twice(all_, by_each, by_both)
