"""What an attacker can win through both defences: he must get entries past the gate, and then win the vote.

The gate misses each of s hostile writes with a probability of at most q, so at most a random number A of them lands,
and E[A] <= s q. Whatever lands, the vote is lost to A hostile strata with a probability of at most delta(A), which
grows with A: P[win] <= E[delta(A)]. Two bounds follow, by what may be assumed of the gate's misses:

* nothing (they may all come together): the largest E[delta(A)] that any A with that mean reaches. This is the least
  concave function above delta, taken at s q (Jensen's inequality), and some A reaches it, so no smaller one is true;
* they are independent of each other: E[delta(A)] with A ~ Bin(s, q).

A small store has fewer strata than the pool, and an entry that lands weighs more in it: delta is then taken with the
m' that there are. The attack itself can add to them, and more strata make delta smaller; so the bound for those that
are there without it holds.

Drawn by author, s counts authors, and an author gets in if any of his w writes does: q is w times the miss rate, at
most 1. The miss rate is one that was measured, on attacks like these: an attacker who writes unlike them has another.
"""

from math import exp, lgamma, log, log1p

from memsluice.client import arguments
from memsluice.recall.smoothing.certificate import COUNT_MAX, Plan


def end_to_end(
    plan: Plan, attempts: int, missed: float, *, independent: bool = False, available: int | None = None
) -> float:
    """Return how often, at most, an attacker with so many attempts wins the majority, 0 to 1.

    ``missed`` is the probability, at most, that the gate lets one attempt land (of an author: any of his writes).
    ``available`` is how many strata there are to recall, at least, where that may be fewer than the pool.
    Raises InvalidArgument for attempts or ``available`` below 0 or a probability outside of 0 to 1.
    """
    arguments.whole("argument attempts", attempts, 0, COUNT_MAX)
    arguments.number("argument missed", missed, 0, 1)
    # More than the whole pool cannot be the attacker's: what he wins grows no further.
    losses = [plan.delta(landed, available) for landed in range(min(attempts, plan.pool) + 1)]
    if independent:
        return _independent(losses, attempts, missed)
    return _concave(losses, min(attempts * missed, len(losses) - 1))


def _concave(losses: list[float], mean: float) -> float:
    """Return the largest mean of the losses over all ways to draw a place among them with that mean."""
    low = range(int(mean) + 1)
    high = range(int(mean) + 1, len(losses))
    between = (
        losses[few] + (losses[many] - losses[few]) * (mean - few) / (many - few)
        for few in low  # a mean is the mixture of a place at or below it and of one above it
        for many in high
    )
    return max(losses[int(mean)], *between) if high else losses[int(mean)]


def _independent(losses: list[float], attempts: int, missed: float) -> float:
    if missed in {0, 1}:
        return losses[-1 if missed else 0]
    # Whatever is beyond the pool is lost as surely as the whole pool is.
    chances = [_binomial(landed, attempts, missed) for landed in range(len(losses))]
    beyond = max(0.0, 1.0 - sum(chances))
    return min(1.0, sum(loss * chance for loss, chance in zip(losses, chances, strict=True)) + losses[-1] * beyond)


def _binomial(landed: int, attempts: int, missed: float) -> float:
    ways = lgamma(attempts + 1) - lgamma(landed + 1) - lgamma(attempts - landed + 1)
    return exp(ways + landed * log(missed) + (attempts - landed) * log1p(-missed))
