"""A candidate policy held against what reviewers decided: the detector's scores of labelled writes, and the budget.

Scores are those that the candidate's detector gives when history runs through it again, on the scale that its line is
drawn on: the default detector's evidence G; MEMSAD's distance to its threshold, or where it is calibrated by ranks the
score. Pure.
"""

import math
from dataclasses import dataclass, field
from typing import Any

from memsluice.envelope.verdict import Verdict
from memsluice.events.names import EventType
from memsluice.gate.detectors.rarity.screen import exceeds
from memsluice.gate.policy.model import Policy
from memsluice.operations.rescreen.curve import area, interval, points
from memsluice.operations.rescreen.labels import Labels
from memsluice.operations.rescreen.rerun import Decided

ALPHAS = (0.002, 0.005, 0.01, 0.02, 0.05)
FEW = 30
"""Labels of a kind below which the interval is the finding, and not the number in it."""
BIASED = (
    "Only held writes have labels: nobody reviewed what was never held. The curve shows how well the candidate "
    "separates held writes, not how many attacks it misses."
)


@dataclass(frozen=True, slots=True)
class Scored:
    """What the detector says of a write: its score, on which scale, and whether the candidate's own line holds it.

    ``p`` is the conformal p-value; None where the line is one of mean and deviation, which no budget moves. ``factor``
    is what a budget is multiplied by for the write's tier.
    """

    scale: str
    value: float
    p: float | None
    beyond: bool
    factor: float = 1.0

    def held(self, policy: Policy, alpha: float) -> bool:
        """Whether the detector holds it at a budget."""
        if self.p is None:
            return self.beyond
        rare = self.p < alpha * self.factor
        return exceeds(self.value, rare, policy.detect) if self.scale == "evidence" else rare


def scored(verdict: Verdict, policy: Policy) -> Scored | None:
    """Return a write's score by the policy's detector; None where it was not asked, or had nothing to compare with."""
    codes = {finding.code for finding in verdict.findings}
    if policy.detector == "default":
        usual = verdict.usual
        if usual is None:
            return None
        factor = policy.detect.per_tier.of(verdict.credential_tier)
        return Scored("evidence", usual.score, usual.p, "detect.held" in codes, factor)
    score = verdict.score
    if score is None or score.score is None:
        return None
    beyond = "memsad.above_threshold" in codes
    if score.p is not None:
        return Scored("score", score.score, score.p, beyond)
    return None if score.threshold is None else Scored("margin", score.score - score.threshold, None, beyond)


@dataclass(frozen=True, slots=True)
class Cost:
    """What a budget costs: labelled good writes held, labelled bad ones passed, and writes held of all screened."""

    alpha: float
    good_held: int
    bad_passed: int
    held: int


@dataclass(slots=True)
class Evaluation:
    """Scores of labelled writes, and how many writes each budget holds in all.

    ``screened`` writes have a score; ``unscreened`` labelled ones have none under the candidate; ``appealed`` counts
    the scored labels whose writer asked for the review, good and bad. :meth:`lost` are labels whose write is no longer
    in the log. Labels whose scores have no common scale (:attr:`scales`) give no curve.
    """

    labels: Labels
    good: list[tuple[Scored, Policy]] = field(default_factory=list)
    bad: list[tuple[Scored, Policy]] = field(default_factory=list)
    screened: int = 0
    unscreened: int = 0
    appealed: list[int] = field(default_factory=lambda: [0, 0])
    held: dict[float, int] = field(default_factory=lambda: dict.fromkeys(ALPHAS, 0))
    _met: int = 0

    def take(self, one: Decided, policy: Policy) -> None:
        """Learn from one event, decided by the candidate's policy for its tenant."""
        if one.now.type != EventType.WRITE:
            return
        score, place = scored(one.verdict, policy), (one.now.tenant, one.verdict.offset)
        bad = self.labels.bad.get(place)
        self._met += bad is not None
        if score is None:
            self.unscreened += bad is not None
            return
        self.screened += 1
        for alpha in ALPHAS:
            self.held[alpha] += score.held(policy, alpha)
        if bad is not None:
            (self.bad if bad else self.good).append((score, policy))
            self.appealed[bad] += place in self.labels.appealed

    @property
    def lost(self) -> int:
        """Labels whose write the sealed log no longer holds."""
        return len(self.labels.bad) - self._met

    @property
    def scales(self) -> frozenset[str]:
        """The scales that the labelled writes' scores are on."""
        return frozenset(score.scale for score, _ in (*self.good, *self.bad))

    @property
    def budgeted(self) -> bool:
        """Whether a budget moves the line of every labelled write."""
        return all(score.p is not None for score, _ in (*self.good, *self.bad))

    def costs(self) -> list[Cost]:
        """Return what each budget costs."""
        return [
            Cost(
                alpha,
                sum(score.held(policy, alpha) for score, policy in self.good),
                sum(not score.held(policy, alpha) for score, policy in self.bad),
                self.held[alpha],
            )
            for alpha in ALPHAS
        ]

    def values(self) -> tuple[list[float], list[float]]:
        """Return the scores of the good and of the bad."""
        good, bad = ([score.value for score, _ in some] for some in (self.good, self.bad))
        return good, bad

    def as_data(self) -> dict[str, Any]:
        """Return the evaluation as JSON values."""
        good, bad = self.values()
        curve = None
        if good and bad and len(self.scales) == 1:
            auroc = area(good, bad)
            curve = {
                "auroc": auroc,
                "interval_95": interval(auroc, len(good), len(bad)),
                "interval_method": "Newcombe 2006, method 5",
                "points": [
                    {"threshold": at.threshold if math.isfinite(at.threshold) else None, "bad_held": at.bad,
                     "good_held": at.good}
                    for at in points(good, bad)
                ],
            }  # fmt: skip
        return {
            "labels": {
                "good": len(good),
                "bad": len(bad),
                "appealed": {"good": self.appealed[0], "bad": self.appealed[1]},
                "scales": sorted(self.scales),
                "write_no_longer_in_the_log": self.lost,
                "not_screened_by_the_candidate": self.unscreened,
                "unplaced": self.labels.unplaced,
                "left_out": self.labels.left_out,
                "of": "held writes alone",
            },
            "curve": curve,
            "screened": self.screened,
            "budgets": [
                {"alpha": c.alpha, "good_held": c.good_held, "bad_passed": c.bad_passed, "held": c.held}
                for c in self.costs()
            ],
        }
