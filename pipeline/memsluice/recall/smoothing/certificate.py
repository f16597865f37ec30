"""How often an attacker whose entries are among the recalled can win the majority at most: exact, for any parameters.

Seed 003, component 2. Of a pool of m strata each of n runs is shown k, drawn uniformly without replacement and anew for
each run. If t of the m are an attacker's, a run is shown one of his with the probability

    p = 1 - C(m - t, k) / C(m, k)

and the runs are independent of each other, given the pool. Whoever judges the runs' answers takes one for malicious
only where its run was shown an attacker's entry; so the number of malicious verdicts is at most a draw of Bin(n, p),
and the attacker wins a strict majority with the probability

    delta = P[Bin(n, p) > n / 2]

at most. What is assumed: the judge errs in no answer's favour, the draws cannot be foreseen, and t bounds what is the
attacker's *in the pool*. A stratum is an entry (the paper's certificate) or all that one author wrote (ours, see
:mod:`memsluice.recall.smoothing.drawing`): the arithmetic is the same, and only what t counts differs.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from math import comb

from memsluice.client import arguments
from memsluice.events.limits import RETURNED_MAX

POOL_MAX = RETURNED_MAX
"""Strata of the largest pool: a recall's event names what any run was shown, and has room for so many."""
RUNS_MAX = 99
COUNT_MAX = 2**31 - 1
SHOWN, RUNS_ODD = range(1, 11), range(1, 16, 2)
"""Strata a run, and runs, among which a plan is looked for."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A smoothed recall: ``pool`` strata are recalled (m), each of ``runs`` runs (n) is shown ``shown`` of them (k).

    InvalidArgument for a number that is out of range: 1 <= k <= m <= POOL_MAX, 1 <= n <= RUNS_MAX.
    """

    pool: int = 51
    shown: int = 5
    runs: int = 5

    def __post_init__(self) -> None:
        arguments.whole("argument pool", self.pool, 1, POOL_MAX)
        arguments.whole("argument shown", self.shown, 1, self.pool)
        arguments.whole("argument runs", self.runs, 1, RUNS_MAX)

    def delta(self, hostile: int, available: int | None = None) -> float:
        """Return how often, at most, ``hostile`` strata (t) win the majority, 0 to 1.

        ``available`` is how many strata there were to recall (the paper's m'), the hostile ones among them, where those
        are fewer than the pool. Raises InvalidArgument for a number below 0.
        """
        if available is not None:
            arguments.whole("argument available", available, 0, COUNT_MAX)
        pool = self.pool if available is None else min(self.pool, available)
        return float(majority(self.runs, contamination(pool, self.shown, hostile)))


def contamination(pool: int, shown: int, hostile: int) -> Fraction:
    """Return the chance p that a run sees a hostile stratum: exactly, 0 to 1.

    A pool of no more strata than a run is shown is shown as a whole. Raises InvalidArgument for a ``hostile`` below 0.
    """
    arguments.whole("argument hostile", hostile, 0, COUNT_MAX)
    honest, shown = max(pool - hostile, 0), min(pool, shown)
    return 1 - Fraction(comb(honest, shown), comb(pool, shown))


def majority(runs: int, chance: Fraction) -> Fraction:
    """Return the probability that more than half of the runs have what each has with a chance: exactly, 0 to 1."""
    least = runs // 2 + 1
    return sum(
        (comb(runs, some) * chance**some * (1 - chance) ** (runs - some) for some in range(least, runs + 1)),
        start=Fraction(0),
    )


def least_pool(shown: int, runs: int, hostile: int, delta_max: float, available: int = POOL_MAX) -> Plan | None:
    """Return the plan of the smallest pool that certifies ``delta_max`` against ``hostile`` strata; None where none of
    up to POOL_MAX does, or of up to ``available``, the strata that there are: a larger pool would not be filled."""
    for pool in range(shown, min(available, POOL_MAX) + 1):
        plan = Plan(pool, shown, runs)
        if plan.delta(hostile) <= delta_max:
            return plan
    return None


def certifying(
    hostile: int,
    delta_max: float,
    shown: Iterable[int] = SHOWN,
    runs: Iterable[int] = RUNS_ODD,
    available: int = POOL_MAX,
) -> Iterator[Plan]:
    """Yield, for each k and n, the plan of the smallest pool of ``available`` strata at most that certifies
    ``delta_max``, where there is one.

    An even n needs no fewer runs for a strict majority than the next odd one, and is left out unless it is named.
    """
    for k, n in product(shown, runs):
        plan = least_pool(k, n, hostile, delta_max, available)
        if plan is not None:
            yield plan
