"""The conformal strategy: a score is beyond the line where too few reference scores are as high.

``p = (#{reference >= score} + w t(score)) / (n + w)``, t the declared prior tail, worth w writes and fading to a tenth
of that at 300 of the tenant's own. A score is beyond the line where p < level. Ranks bound what a heavy tail, or an
attacker just below the line, can do: each such write moves p by one place. The prior stands for the "+1" of a conformal
p-value, with which no tenant of less than 1 / level writes could have anything held; so where nothing reaches a score,
p may be too small by up to 1 / (n + 1), and a level below that (a quarter of a percent of 400) promises less than it
says.

Two cures for calibrating on what was let through alone (which is a ratchet: what is held never says that it was usual):

- *adaptive level*: see :meth:`.state.State.screened`;
- *credit*: of n screened writes, the floor(alpha n) lowest-scored held ones count as honest, which is what the budget
  says they are.
"""

import math

import numpy as np
from msgspec import Struct

from memsluice.gate.detectors.calibration.base import Judged, Settings, Values, phase_of
from memsluice.gate.detectors.calibration.state import State
from memsluice.gate.detectors.numeric.compiled import compiled

PRIOR_GONE = 300
"""Reference scores at which the prior has faded to a tenth."""


class Conformal(Struct, frozen=True):
    """The strategy; ``alpha``, ``gamma``, ``credit`` and the prior are its settings."""

    settings: Settings

    def judge(self, value: float, state: State) -> Judged:
        """Judge one score. Where the level lies at its floor more is held than the budget allows: drifting.

        The level is the tenant's, its factor the write's: what one tier is held more does not move the others' line.
        """
        settings = self.settings
        level = settings.alpha if state.level is None else state.level
        values = np.append(state.values, credited(state, settings)) if settings.credit else state.values
        p = p_value(value, values, settings.prior_tail(value), settings.prior_weight)
        drifting = bool(settings.gamma) and level <= settings.alpha / 5
        phase = phase_of(settings, len(state.values), drifting=drifting)
        line = min(level * settings.factor, 1.0)
        return Judged(p < line, phase, len(values), p=p, level=line)


def p_value(value: float, scores: Values, prior_tail: float, prior_weight: float) -> float:
    """Return the conformal p-value of a score among n reference ones, n >= 0."""
    seen = len(scores)
    weight = prior_weight * max(0.1, 1 - seen / PRIOR_GONE)
    if seen + weight == 0:
        return 1.0
    return (count_at_least(scores, value) + weight * prior_tail) / (seen + weight)


def declared_tail(share: float, centre: float, width: float, value: float) -> float:
    """Return a declared prior tail: ``share`` of the honest scores lie beyond ``centre``, falling by e every width."""
    return share * math.exp((centre - value) / width) if value > centre else 1.0


@compiled("int64(float64[:], float64)")
def count_at_least(values: Values, value: float) -> int:
    """Return how many values are at least ``value``, to the digits that rows keep."""
    some = 0
    for one in values:
        some += one >= value - 1e-9
    return some


def credited(state: State, settings: Settings) -> list[float]:
    """Return the floor(alpha n) lowest held scores, n the screened writes of the window."""
    within = min(state.screened_total, settings.window)
    return sorted(score for _, _, score in state.held)[: math.floor(settings.alpha * within)]
