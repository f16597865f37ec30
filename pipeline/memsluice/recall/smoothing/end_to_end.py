"""What an attacker can win through both defences: he must get entries past the gate, and then win the vote.

The gate misses each of s hostile writes with a probability of at most q, so at most a random number A of them lands,
and E[A] <= s q. Whatever lands, the vote is lost to A hostile strata with a probability of at most delta(A), which
grows with A. Two bounds follow, by what may be assumed of the gate's misses:

* nothing (they may all come together): for every t, P[win] <= delta(t) + P[A > t] <= delta(t) + s q / (t + 1), by
  Markov's inequality; the smallest of these, and 1;
* they are independent of each other: P[win] <= E[delta(A)] with A ~ Bin(s, q).

Drawn by author, s counts authors, and an author gets in if any of his w writes does: q is w times the miss rate, at
most 1. The miss rate is one that was measured, on attacks like these: an attacker who writes unlike them has another.
"""

from fractions import Fraction
from math import comb

from memsluice.client import arguments
from memsluice.recall.smoothing.certificate import COUNT_MAX, Plan


def end_to_end(plan: Plan, attempts: int, missed: float, *, independent: bool = False) -> float:
    """Return how often, at most, an attacker with so many attempts wins the majority, 0 to 1.

    ``missed`` is the probability, at most, that the gate lets one attempt land (of an author: any of his writes).
    Raises InvalidArgument for attempts below 0 or a probability outside of 0 to 1.
    """
    arguments.whole("argument attempts", attempts, 0, COUNT_MAX)
    arguments.number("argument missed", missed, 0, 1)
    if independent:
        return _independent(plan, attempts, Fraction(missed))
    bounds = (
        plan.delta(t) + (attempts * missed / (t + 1) if t < attempts else 0.0)
        for t in range(min(attempts, plan.pool) + 1)
    )
    return min(1.0, *bounds)


def _independent(plan: Plan, attempts: int, missed: Fraction) -> float:
    return float(
        sum(
            comb(attempts, landed) * missed**landed * (1 - missed) ** (attempts - landed) * Fraction(plan.delta(landed))
            for landed in range(attempts + 1)
        )
    )
