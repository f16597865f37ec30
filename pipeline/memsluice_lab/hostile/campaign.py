"""A campaign: so many hostile inputs over all targets, by their parts, repeatable by its seed."""

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from memsluice.encoder import Encoder
from memsluice_lab.hostile import sealed, texts, wire
from memsluice_lab.hostile.judge import CPU_S_MAX, Judgement, Target, judge
from memsluice_lab.hostile.specimens import Specimens, collect

KEPT_MAX = 20
"""Failures of a target that are described; all are counted."""


@dataclass(slots=True)
class Tally:
    """What became of the inputs of each target, and why those failed that did: (target, seed, why)."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    failures: list[tuple[str, int, str]] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Count another's in."""
        self.counts += other.counts
        self.failures += other.failures

    def of(self, judgement: Judgement) -> int:
        """Return how many inputs came to this."""
        return sum(count for (_, found), count in self.counts.items() if found == judgement)


def all_targets(specimens: Specimens) -> list[Target]:
    """Return every target."""
    return [*wire.targets(specimens), *sealed.targets(specimens), *texts.targets(specimens)]


def made(encoder: Encoder) -> list[Target]:
    """Return every target, on specimens that this process's own gate wrote."""
    return all_targets(collect(encoder))


def dealt(targets: Sequence[Target], count: int) -> list[Target]:
    """Return a target for each of so many inputs, by their parts, taking turns."""
    turns = [target for target in targets for _ in range(target.parts)]
    random.Random(0).shuffle(turns)  # noqa: S311 - an order, not a secret
    return [turns[number % len(turns)] for number in range(count)]


def run(targets: Sequence[Target], count: int, *, first: int = 0, cpu_s: float = CPU_S_MAX) -> Tally:
    """Judge inputs number ``first`` to ``first + count``: each is drawn by a seed that is its number."""
    tally = Tally()
    turns = dealt(targets, count)
    for number, target in enumerate(turns, first):
        judged = judge(target, target.draw(random.Random(number)), cpu_s)  # noqa: S311 - a fuzzer
        tally.counts[target.name, judged.judgement] += 1
        if judged.judgement is Judgement.FAILED and len(tally.failures) < KEPT_MAX * len(targets):
            tally.failures.append((target.name, number, judged.why))
    return tally


def kinds(failures: Iterable[tuple[str, int, str]]) -> Counter[tuple[str, str]]:
    """Return how many failures there are of each kind, by target."""
    return Counter((name, why.split(":")[0]) for name, _, why in failures)
