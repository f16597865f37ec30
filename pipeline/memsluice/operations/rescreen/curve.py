"""The receiver-operating curve of scores with labels: its points, its area, and how little a few labels say. Pure."""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

Z_95 = 1.959963984540054
"""Standard normal deviate of a two-sided 95 % interval."""
BISECTIONS = 60


@dataclass(frozen=True, slots=True)
class RocPoint:
    """Shares of the bad and of the good that score at least ``threshold``: true and false positive rate, 0 to 1."""

    threshold: float
    bad: float
    good: float


def points(good: Sequence[float], bad: Sequence[float]) -> list[RocPoint]:
    """Return the curve from (0, 0) to (1, 1): one point for each different score, the highest first.

    Both need at least one score; the first point's threshold is infinite.
    """
    good, bad = sorted(good), sorted(bad)

    def share(scores: Sequence[float], threshold: float) -> float:
        return 1 - bisect_left(scores, threshold) / len(scores)

    steps = [RocPoint(at, share(bad, at), share(good, at)) for at in sorted({*good, *bad}, reverse=True)]
    return [RocPoint(math.inf, 0.0, 0.0), *steps]


def area(good: Sequence[float], bad: Sequence[float]) -> float:
    """Return AUROC: how often a bad one scores above a good one, ties counting half (Mann-Whitney), 0 to 1."""
    good = sorted(good)
    wins = sum(bisect_left(good, score) + bisect_right(good, score) for score in bad) / 2
    return wins / (len(good) * len(bad))


def interval(estimate: float, n_good: int, n_bad: int, z: float = Z_95) -> tuple[float, float]:
    """Return the interval of an AUROC by Newcombe's method 5 (Statistics in Medicine 25, 2006, 559-573).

    It holds both bounds t that are z standard errors from the estimate, the error being that *at t*: with
    m = (n_good + n_bad) / 2 - 1, ``t (1 - t) (1 + m ((1 - t) / (2 - t) + t / (1 + t))) / (n_good n_bad)``. So it has a
    width where every label is on its side, as a method with the error at the estimate has not.
    """
    extra, pairs = (n_good + n_bad) / 2 - 1, n_good * n_bad

    def far(t: float) -> bool:
        variance = t * (1 - t) * (1 + extra * ((1 - t) / (2 - t) + t / (1 + t))) / pairs
        return abs(t - estimate) > z * math.sqrt(variance)

    def bound(out: float) -> float:
        inside = estimate
        for _ in range(BISECTIONS):
            middle = (inside + out) / 2
            inside, out = (inside, middle) if far(middle) else (middle, out)
        return inside

    return bound(0.0), bound(1.0)


def chart(curve: Sequence[RocPoint], width: int = 41, height: int = 11) -> list[str]:
    """Return the curve drawn in lines of text: bad held upwards, good held to the right; dots are chance."""
    grid = [[" "] * width for _ in range(height)]
    for column in range(width):
        grid[height - 1 - round(column / (width - 1) * (height - 1))][column] = "·"
    for before, after in pairwise(curve):
        for step in range(width + 1):
            share = step / width
            column = round((before.good + share * (after.good - before.good)) * (width - 1))
            row = round((before.bad + share * (after.bad - before.bad)) * (height - 1))
            grid[height - 1 - row][column] = "█"
    sides = ["100 % ", *["      "] * (height - 2), "  0 % "]
    lines = [f"{side}│{''.join(row).rstrip()}" for side, row in zip(sides, grid, strict=True)]
    return [*lines, f"      └{'─' * width}", f"       0 %{'good held'.center(width - 8)}100 %"]
