"""The theorems of seed 004 as numbers, with what they need and the paper does not say.

Let the distribution with context be a mixture, P_rag = (1 - eta) P_para + eta Q (Definition III.1).

**Theorem III.2** claims Z <= eta^2 / (2 (1 - eta)) for eta <= 1/2, whatever Q is. That is false: for
P_para = (.999, .001), Q = (0, 1) and eta = .1 the divergence is .371, the claimed bound .0056. What holds is
Z <= ln(1 + eta^2 chi^2(Q || P_para)), since a divergence is at most ln(1 + chi^2) and the mixture's chi^2 is eta^2
times that of Q. So the paper's bound holds where chi^2(Q || P_para) <= 1 / (2 (1 - eta)), and not for evidence that
says what the model held unlikely, which is what evidence is for.

**Theorem III.4** asks for n >= 8 gamma^2 T ln(2 / epsilon) / Delta^2 clean prompts. With the paper's own gamma = 1,
T = 64, Delta = .3 and epsilon = .05 that is 20,986, not the 500 that its experiments use.
"""

import math

import numpy as np
from numpy.typing import NDArray

from memsluice.client import arguments
from memsluice.errors import InvalidArgument

Distribution = NDArray[np.float64]
"""Probabilities, shape (V,)."""


def claimed_collapse(eta: float) -> float:
    """Return the bound of Theorem III.2 for one position, in nats. Raises InvalidArgument for eta not in 0 to 1/2."""
    arguments.number("argument eta", eta, 0, 0.5)
    return eta**2 / (2 * (1 - eta))


def collapse(eta: float, chi2: float) -> float:
    """Return what the divergence of one position is at most, in nats: ln(1 + eta^2 chi^2(Q || P_para)).

    Raises InvalidArgument for an eta not in 0 to 1, and for a chi2 below 0.
    """
    arguments.number("argument eta", eta, 0, 1)
    if not chi2 >= 0:
        raise InvalidArgument("argument chi2 must be 0 or more")
    return math.log1p(eta**2 * chi2) if eta > 0 else 0.0  # of weight 0 nothing follows, however far it lies


def chi_squared(q: Distribution, p: Distribution) -> float:
    """Return chi^2(Q || P), 0 to infinity: infinite where Q has what P has not."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(q == p, 0.0, (q - p) ** 2 / p)
    return float(terms.sum())


def claim_holds(eta: float, chi2: float) -> bool:
    """Say whether Theorem III.2's bound follows for evidence so far from what the model held likely."""
    return chi2 <= 1 / (2 * (1 - eta))


def prompts_needed(gamma: float, length: int, gap: float, epsilon: float) -> int:
    """Return how many clean prompts Theorem III.4 asks for.

    ``gamma`` bounds a log-ratio (nats), ``length`` is T in tokens, ``gap`` is Delta in nats, ``epsilon`` the rate of
    missed ones. Raises InvalidArgument for values that are not above 0.
    """
    if not (gamma > 0 and length > 0 and gap > 0 and 0 < epsilon < 1):
        raise InvalidArgument("arguments gamma, length and gap must be above 0, epsilon between 0 and 1")
    return math.ceil(8 * gamma**2 * length * math.log(2 / epsilon) / gap**2)


def missed_at_most(gamma: float, length: int, gap: float) -> float:
    """Return the chance that one memorised prompt scores above a threshold that lies half the gap above its mean, by
    Lemma III.3's tail: exp(-(Delta / 2)^2 / (4 gamma^2 T)). Raises InvalidArgument for values that are not above 0."""
    if not (gamma > 0 and length > 0 and gap > 0):
        raise InvalidArgument("arguments gamma, length and gap must be above 0")
    return min(1.0, math.exp(-((gap / 2) ** 2) / (4 * gamma**2 * length)))
