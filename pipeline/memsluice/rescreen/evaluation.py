"""A candidate policy held against what reviewers decided: the detector's scores of labelled writes, and the budget.

Scores are those that the candidate's detector gives when history runs through it again: with ``detector: default`` the
evidence G, with ``memsad`` the distance of the score to its own threshold. Pure.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from memsluice.gate.detector.screen import exceeds
from memsluice.gate.policy import Policy
from memsluice.gate.verdict import Decision
from memsluice.rescreen.curve import area, interval, points
from memsluice.rescreen.labels import Labels
from memsluice.rescreen.rerun import Decided

ALPHAS = (0.002, 0.005, 0.01, 0.02, 0.05)
FEW = 30
"""Labels of a kind below which the interval is the finding, and not the number in it."""
WRITE = "memory.write.v1"
UNSCREENED = ("limits", "monitor")
"""Rules before the detector: what they contain or refuse, it never sees."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What the detector says of a write: its score, the conformal p-value (1 where there is none), the threshold."""

    value: float
    p: float
    threshold: float

    def held(self, policy: Policy, alpha: float) -> bool:
        """Whether the detector holds it at a budget; MEMSAD has none, so ``alpha`` changes nothing there."""
        if policy.detector == "memsad":
            return self.value > 0
        return exceeds(self.value, self.p < alpha, policy.detect)


def scored(verdict: Mapping[str, Any], policy: Policy) -> Scored | None:
    """Return a write's score by the policy's detector; None where it was not asked, or had nothing to compare with."""
    firm = (Decision.CONTAIN, Decision.REJECT)
    before = (f for f in verdict["findings"] if f["code"].split(".")[0] in UNSCREENED)
    if verdict["decision"] == Decision.DUPLICATE or any(f["decision"] in firm for f in before):
        return None
    if policy.detector == "memsad":
        score = verdict["score"]
        if not score or score["score"] is None or score["threshold"] is None:
            return None
        return Scored(score["score"] - score["threshold"], 1.0, 0.0)
    found = (f["detail"] for f in verdict["findings"] if f["code"] in ("detect.held", "detect.scored"))
    told = next(found, None)  # no evidence at all leaves no finding
    threshold = policy.detect.threshold
    return Scored(0.0, 1.0, threshold) if told is None else Scored(told["score"], told["p"], threshold)


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
    in the log. Scores of the two detectors have no common scale: labels
    with both (:attr:`detectors`) give no curve.
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
        if one.now.type != WRITE:
            return
        score, place = scored(one.verdict, policy), (one.now.tenant, int(one.verdict["offset"]))
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
    def detectors(self) -> frozenset[str]:
        """The detectors that scored the labelled writes."""
        return frozenset(policy.detector for _, policy in (*self.good, *self.bad))

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
        if good and bad and len(self.detectors) == 1:
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
                "detectors": sorted(self.detectors),
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
