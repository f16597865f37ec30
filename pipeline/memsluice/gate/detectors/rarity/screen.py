"""What speaks against a write: what it says (wording), what it comes near (past questions), how rare both are, and how
far MEMSAD's score lies above its line.

What that is worth is :mod:`memsluice.gate.detectors.rarity.evidence`.

A write is held where ``G >= threshold`` and the conformal p-value of G among the tenant's landed writes is below alpha
times the factor of the write's tier. Reviewers' releases enter those, so a tenant whose honest writes score high is
held less.

Good lineage: where an agent's session itself asked the question that its write covers, question, coverage, nearness
and anomaly say nothing.
"""

from functools import lru_cache, partial
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from memsluice.envelope.codec import Vector
from memsluice.envelope.verdict import Usual
from memsluice.events.models import Tier
from memsluice.gate.detectors.calibration.base import Settings
from memsluice.gate.detectors.calibration.conformal import declared_tail
from memsluice.gate.detectors.calibration.strategies import strategy
from memsluice.gate.detectors.numeric.compiled import FOUR, SIX, rounded
from memsluice.gate.detectors.numeric.versions import Numbers, Places
from memsluice.gate.detectors.rarity.candidate_quota import fill
from memsluice.gate.detectors.rarity.covering import held_against, longest_run, one_behind_another
from memsluice.gate.detectors.rarity.evidence import (
    COLD_WRITES,
    COLUMNS,
    COVERED,
    OWN,
    A,
    C,
    G,
    Q,
    R,
    U,
    Values,
    W,
    parts,
)
from memsluice.gate.detectors.rarity.memory import KeptQuestion, Memory
from memsluice.gate.detectors.wording.text import carries_question, read
from memsluice.gate.detectors.wording.tokens import Stems
from memsluice.gate.policy.model import SIGNALS, DetectPolicy
from memsluice.gate.state.tags import tag

HABITUAL = 0.5
"""Share of questions among the last screened writes beyond which they are the tenant's habit: nobody is locked out."""
SCORE_PRIOR = (0.01, 1.2, 0.3)
"""Prior tail of G on honest writes: a hundredth beyond 1.2, falling by e every 0.3."""
SCORE_PRIOR_WEIGHT = 30.0
KNOWN_WRITES = 300
"""Landed writes from which on a tenant is calibrated."""


class Seen(Struct, frozen=True):
    """What a write shows, before the tenant is asked what is usual.

    ``question`` names the recall whose question covers it most, with the run that they share; ``near`` the recall whose
    question it comes nearest to. They need not be one.
    """

    values: Values
    stems: Stems
    exempt: bool
    question: str = ""
    run_words: int = 0
    run_start: int = 0
    near: str = ""

    def told(self) -> dict[str, Any]:
        """Return what a finding says of it: which questions, and how near."""
        found, run = dict[str, Any](), {"words": self.run_words, "first_word": self.run_start}
        if self.near:
            nearest = {"recall": self.near, "cosine": float(self.values[W])}
            found["nearest"] = nearest | run if self.near == self.question else nearest
        if self.question:
            found["covered_by"] = {"recall": self.question, "share": float(self.values[U]), **run}
        return found


class Evidence(Struct, frozen=True):
    """G, its ``total``, and its parts, of four digits, and what the calibration says of G.

    ``rare`` says that G is beyond the line, ``p`` is the conformal p-value (None under another strategy), ``level`` or
    ``usual_max`` where the line lies, ``phase`` how well the tenant is known.
    """

    wording: float
    question: float
    coverage: float
    nearness: float
    repetition: float
    anomaly: float
    total: float
    p: float | None
    phase: str
    rare: bool = False
    level: float | None = None
    usual_max: float | None = None
    size: int = 0

    def usual(self, policy: DetectPolicy) -> Usual:
        """Return what the verdict says of the calibration."""
        name = policy.calibration.strategy
        return Usual(name, self.phase, self.size, self.total, self.p, self.level, self.usual_max)

    def told(self) -> dict[str, Any]:
        """Return what a finding says of it: numbers and names, never content."""
        strong = {name: getattr(self, name) for name in SIGNALS if getattr(self, name) > 0}
        line = {"p": self.p} if self.usual_max is None else {"usual_max": self.usual_max}
        return {"score": self.total, "parts": strong, **line, "phase": self.phase}


def look(
    memory: Memory,
    wording: float,
    content: str,
    vector: Vector,
    *,
    session: str,
    agent: bool,
    alone: bool = False,
    anomaly: float = 0.0,
) -> Seen:
    """Return what a write shows against the past questions of its tenant. ``agent``: its session's past clears it.

    ``wording`` is what its wording shows (:attr:`memsluice.gate.detectors.wording.classifier.Judged.score`).
    ``alone``: nobody but its writer would be given it. ``anomaly``: deviations that MEMSAD's score lies above its
    threshold, 0 or more.

    Who asked no more than a quarter of them has at most a quarter of the candidates' places (:mod:`.candidate_quota`).
    """
    of_write, repeated = read(content)
    values = np.zeros(len(COLUMNS))
    values[C] = wording
    values[R] = rounded(repeated, FOUR)
    near, cosines = fill(memory.questions, vector, memory.askers.small)
    questions, here = tuple(memory.questions[at] for at in near.tolist()), tag(session)
    if agent and any(_covers(question.stems, of_write) for question in questions if here in question.sessions):
        return Seen(values, of_write, exempt=True)
    values[Q] = (OWN if alone else 1.0) if carries_question(content) else 0.0
    values[A] = rounded(anomaly, FOUR)
    seen = Seen(values, of_write, exempt=False)
    return nearer(seen, Asked.of(questions), cosines) if questions else seen


class Asked(Struct, frozen=True):
    """Some past questions; ``stems`` are theirs, one question's behind the other's, and end at ``ends``."""

    questions: tuple[KeptQuestion, ...]
    stems: Stems
    ends: NDArray[np.int64]

    @staticmethod
    def of(questions: tuple[KeptQuestion, ...]) -> "Asked":
        """Return them; there must be one."""
        return Asked(questions, *one_behind_another([question.stems for question in questions]))


def nearer(seen: Seen, asked: Asked, cosines: Numbers) -> Seen:
    """Return what a text shows after it was held against more questions (:func:`.covering.held_against`)."""
    values = seen.values
    covered, by, run, start, cosine, closest = held_against(
        seen.stems, asked.stems, asked.ends, cosines, values[U], values[W]
    )
    if by < 0 and closest < 0:
        return seen
    values, of, near = values.copy(), (seen.question, seen.run_words, seen.run_start), seen.near
    if by >= 0:
        values[U], of = covered, (asked.questions[by].event_id, run, start)
    if closest >= 0:
        values[W], near = cosine, asked.questions[closest].event_id
    return Seen(values, seen.stems, seen.exempt, *of, near=near)


def _reference(some: Places, window: int, without: int | None) -> Places:
    """Return the last ``window`` of what is left without one."""
    first = len(some) - window - 1
    if without is None or without < first:
        return some[-window:]
    return np.concatenate((some[max(first, 0) : without], some[without + 1 :]))


def weigh(
    values: Values,
    memory: Memory,
    policy: DetectPolicy,
    *,
    tier: Tier | None = None,
    without: int | None = None,
) -> Evidence:
    """Return the evidence that a write's values are, against the tenant's last ``policy.window`` landed entries.

    ``tier`` is the write's, by whose factor the budget goes; None where nothing is held by what is found.
    ``without`` leaves an entry out: the one that is looked at again. What is not among the policy's signals is nothing.
    """
    places, owners = (
        _reference(some, policy.window, without) for some in (memory.table.places, memory.standing.owners)
    )
    habitual = memory.habit.beyond(HABITUAL, memory.standing)
    found = parts(values, memory.table.matrix, places, owners, habitual)
    worth = [part if name in policy.signals else 0.0 for name, part in zip(SIGNALS, found, strict=True)]
    total = rounded(sum(worth), FOUR)
    said = strategy(settings(policy, tier)).judge(total, memory.calibration.over(memory.table.column(G, places)))
    phase = "drifting" if habitual and len(places) >= COLD_WRITES else said.phase.value
    p = None if said.p is None else rounded(said.p, SIX)
    limit = None if said.threshold is None else rounded(said.threshold, FOUR)
    wording, question, coverage, nearness, repeated, anomalous = worth
    known = (total, p, phase, said.flagged, said.level, limit, said.size)
    return Evidence(wording, question, coverage, nearness, repeated, anomalous, *known)


@lru_cache(1_024)  # a few a policy, one a tier
def settings(policy: DetectPolicy, tier: Tier | None = None) -> Settings:
    """Return how G of a tier's write is calibrated: ranks among the landed writes, unless the policy says otherwise."""
    chosen = policy.calibration
    return Settings(
        name=chosen.strategy,
        window=policy.window,
        full=KNOWN_WRITES if chosen.strategy == "conformal" else COLD_WRITES,
        least=COLD_WRITES,
        kappa=policy.kappa,
        prior_threshold=policy.threshold,
        ewma_weight=chosen.ewma_weight,
        alpha=policy.alpha,
        factor=1.0 if tier is None else policy.per_tier.of(tier),
        gamma=chosen.gamma,
        credit=chosen.credit,
        prior_tail=partial(declared_tail, *SCORE_PRIOR),
        prior_weight=SCORE_PRIOR_WEIGHT,
    )


def holds(found: Evidence, policy: DetectPolicy) -> bool:
    """Whether this much evidence holds a write."""
    return exceeds(found.total, found.rare, policy)


def exceeds(total: float, rare: bool, policy: DetectPolicy) -> bool:
    """Whether G holds a write: enough evidence, and rare enough for the budget."""
    return total >= policy.threshold and rare


def _covers(question: Stems, text: Stems) -> bool:
    return len(question) > 0 and longest_run(question, text)[0] / len(question) >= COVERED
