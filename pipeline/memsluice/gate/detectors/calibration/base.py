"""What a strategy is given and what it says."""

from collections.abc import Callable
from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memsluice.gate.policy.model import Strategy

Values = NDArray[np.float64]


class Phase(StrEnum):
    """How well a tenant is known: what stands in every verdict, metric and picture."""

    COLD = "cold"
    WARMING = "warming"
    CALIBRATED = "calibrated"
    DRIFTING = "drifting"
    FROZEN = "frozen"


class Settings(Struct, frozen=True):
    """What a policy says of a calibration. Scores may lie anywhere; a higher one is more suspicious.

    ``window`` reference scores are kept; below ``full`` of them the tenant is warming, and below ``least`` cold. The
    fixed strategy goes by the first ``full`` of those it is given: of a state that keeps its own scores, or MEMSAD's
    reference, the first that ever came; over the default detector's scores, of which the last ``window`` count, the
    first of these, so that its line rolls. Until ``full``, a strategy of mean and deviation judges by
    ``prior_threshold``. ``alpha`` is the budget of the conformal strategy, ``gamma`` the step of its level (0: the
    level stays at alpha), ``factor`` what the level is multiplied by for the trust tier of the write, ``credit``
    whether the lowest-scored held writes count as honest (see :mod:`.conformal`), ``prior_tail`` the share of honest
    writes that score at least so much, worth ``prior_weight`` writes.
    """

    name: Strategy
    window: int = 200
    full: int = 50
    least: int = 1
    kappa: float = 2.0
    prior_threshold: float = 0.6
    ewma_weight: float = 0.02
    alpha: float = 0.01
    factor: float = 1.0
    gamma: float = 0.0
    credit: bool = False
    frozen: bool = False
    prior_tail: Callable[[float], float] = lambda value: 1.0
    prior_weight: float = 0.0


class Judged(Struct, frozen=True):
    """What a strategy says of one score. ``size`` is how many reference scores counted.

    ``threshold``, ``mu`` and ``sigma`` are those of a strategy of mean and deviation; ``p`` and ``level`` (the alpha
    that p is compared with) those of the conformal one. None where the strategy has no such number.
    """

    flagged: bool
    phase: Phase
    size: int
    threshold: float | None = None
    mu: float | None = None
    sigma: float | None = None
    p: float | None = None
    level: float | None = None


def phase_of(settings: Settings, size: int, *, drifting: bool = False) -> Phase:
    """Return the phase of a reference of that size."""
    if settings.frozen:
        return Phase.FROZEN
    if size < settings.least:
        return Phase.COLD
    if drifting:
        return Phase.DRIFTING
    return Phase.WARMING if size < settings.full else Phase.CALIBRATED
