"""How often something happens, as learned from a decaying past, and how surprising it is now: a Beta-binomial."""

from dataclasses import dataclass
from math import exp, lgamma


@dataclass(frozen=True, slots=True)
class Share:
    """``hits`` of ``trials`` in the past, in decayed numbers, both >= 0."""

    hits: float = 0.0
    trials: float = 0.0

    def after(self, hits: int, trials: int, keep: float, trials_max: float) -> "Share":
        """Return the share once a window of ``trials`` is past. ``keep`` (0 to 1) is what the past still counts.

        It never counts for more than ``trials_max``: how often people ask changes by the hour, and no past is so long
        that this would not be expected again.
        """
        total = keep * self.trials + trials
        scale = min(1.0, trials_max / total) if total > 0 else 1.0
        return Share(scale * (keep * self.hits + hits), scale * total)

    def given(self, usual: float, weight: float) -> tuple[float, float]:
        """Return the Beta's two parameters: the past, and a prior of ``weight`` trials with the share ``usual``."""
        return weight * usual + self.hits, weight * (1 - usual) + self.trials - self.hits


def at_least(hits: int, trials: int, alpha: float, beta: float) -> float:
    """Return P[X >= hits] of ``trials`` trials whose common share is drawn from Beta(alpha, beta), both > 0.

    Exact up to rounding. What made the past and what makes the present need not be one share known to the digit, so
    the tail is heavier than a binomial's.
    """
    if hits <= 0:
        return 1.0
    term = exp(
        lgamma(trials + 1) - lgamma(hits + 1) - lgamma(trials - hits + 1)
        + lgamma(hits + alpha) + lgamma(trials - hits + beta) - lgamma(trials + alpha + beta)
        + lgamma(alpha + beta) - lgamma(alpha) - lgamma(beta)
    )  # fmt: skip
    total = term
    for k in range(hits, trials):  # the next term from this one
        term *= (trials - k) * (k + alpha) / ((k + 1) * (trials - k - 1 + beta))
        total += term
    return min(1.0, total)


def at_most(hits: int, trials: int, alpha: float, beta: float) -> float:
    """Return P[X <= hits]: the other tail."""
    return at_least(trials - hits, trials, beta, alpha)
