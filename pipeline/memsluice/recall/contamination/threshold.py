"""The threshold tau of seed 004, kept current: the alpha-quantile of the last clean prompts' scores, by their ranks.

The paper learns tau once, and leaves its drift as an open problem. Here clean prompts are a window that moves on with
the model and its memory, and a prompt is flagged where hardly any of them scored as low: the conformal calibration that
the gate's detectors have, on the score's negative. Ranks need no bound on log-ratios and no gap: as long as clean
prompts can be exchanged for each other, no more than alpha of them are flagged (Gibbs and Candès' adaptive level bounds
what drift does to that).
"""

from dataclasses import dataclass, field
from math import isnan

from memsluice.errors import InvalidArgument
from memsluice.gate.detectors.calibration.base import Judged, Settings
from memsluice.gate.detectors.calibration.state import DIGITS, EMPTY, State
from memsluice.gate.detectors.calibration.strategies import strategy

ALPHA = 0.05
WINDOW = 400
NATS_MAX = 1e6
"""What counts for the ranks, either way: beyond it (a token that cannot come without the context is infinitely far) all
are alike, and a row that is kept has finite numbers."""


def settings(alpha: float = ALPHA, window: int = WINDOW, gamma: float = 0.0) -> Settings:
    """Return the calibration's settings: ``alpha`` of clean prompts may be flagged, ``window`` are remembered,
    ``gamma`` is the step by which the level follows what is flagged (0: it stays at alpha)."""
    return Settings("conformal", window=window, full=round(1 / alpha), alpha=alpha, gamma=gamma, prior_weight=1.0)


@dataclass(frozen=True, slots=True)
class Tau:
    """A threshold and what it was made of. Immutable: each change returns the next one.

    Scores are nats, to infinity; each method raises InvalidArgument for one that is no number.
    """

    calibrated: Settings = field(default_factory=settings)
    state: State = EMPTY

    def judge(self, score: float) -> Judged:
        """Say whether a score is as low as that of an answer which the context did not move."""
        return strategy(self.calibrated).judge(round(-_nats(score), DIGITS), self.state)

    def clean(self, prompt_id: str, score: float) -> "Tau":
        """Return the threshold after one more prompt that is known to be answered from its context."""
        return Tau(self.calibrated, self.state.landed(self.calibrated, prompt_id, -_nats(score)))

    def seen(self, prompt_id: str, score: float, *, flagged: bool) -> "Tau":
        """Return the threshold after one more prompt of which nothing is known: with a gamma its level moves."""
        return Tau(self.calibrated, self.state.screened(self.calibrated, prompt_id, -_nats(score), held=flagged))


def _nats(score: float) -> float:
    if isnan(score):
        raise InvalidArgument("argument score must be a number")
    return min(max(score, -NATS_MAX), NATS_MAX)
