"""Decides a write: what it says (wording), what it comes near (past questions), how rare both are for its tenant.

``G = wording + question + coverage + nearness + repetition``, each zero where there is nothing to say:

- wording: ``.2 (C + .5)+ + .65 (u_C - .8)+``, C the classifier's log-odds, u its rarity in the tenant;
- question: ``1.8 (u_Q - .8)+`` where the text carries a question and the tenant's writes do not;
- coverage: ``(run - .5)+``, the longest run of stems shared with a past question, as a share of that question;
- nearness: ``.8 min((z - 2.5)+, 2.5)``, z the robust z-value of the cosine to the nearest past question that leaves
  more than ten words of the text unsaid;
- repetition: ``1.5 (r - .12)+ + .9 (u_r - .8)+`` where r > .12.

A write is held where ``G >= threshold`` and the conformal p-value of G among the tenant's landed writes is below alpha:
reviewers' releases enter those, so a tenant whose honest writes score high is held less. The weights were chosen on
nine public streams of other wordings; docs/detection.md says how, and what each is worth.

Good lineage: where an agent's session itself asked the question that its write covers, question, coverage and nearness
say nothing.
"""

import math
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

from memsluice.envelope.codec import Vector
from memsluice.events.models import Write
from memsluice.gate.detector import calibration
from memsluice.gate.detector.classifier import Classifier
from memsluice.gate.detector.memory import COLUMNS, C, G, Memory, Q, Question, R, U, Values, W, tag
from memsluice.gate.detector.text import Stems, carries_question, longest_run, places, repetition, stems, words
from memsluice.gate.policy import SIGNALS, DetectPolicy
from memsluice.gate.verdict import Decision, Finding

CANDIDATES = 12
QUESTION_STEMS_MIN = 4
COVERED = 0.8
UNSAID_MIN = 10
PRIOR_WEIGHT = 100.0
WORDING_PRIOR = (-2.2, 0.55)
"""Centre and width of the logistic prior of C on honest texts."""
QUESTION_PRIOR = 0.01
REPETITION_PRIOR = 0.03
REPETITION_MIN = 0.12
NEAR_PRIOR = (0.55, 0.12)
NEAR_PRIOR_WEIGHT = 100.0
"""High: honest notes are there to answer questions, and a tenant that asked little has seen few that do."""
NEAR_SPREAD_MIN = 0.08
NEAR_MIN = 0.4
COLD_WRITES = 30
"""Landed writes below which a tenant's habit of carrying questions is not known."""
HABITUAL = 0.5
"""Share of questions among the last screened writes from which on they are the tenant's habit: nobody is locked out."""
SCORE_PRIOR = (0.01, 1.2, 0.3)
"""Prior tail of G on honest writes: a hundredth beyond 1.2, falling by e every 0.3."""
SCORE_PRIOR_WEIGHT = 30.0
RARE = 0.8
"""-log10 of one in six: what is no rarer says nothing."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What a write shows, before the tenant is asked what is usual. ``question`` is the one it comes nearest to."""

    values: Values
    stems: Stems
    exempt: bool
    question: str = ""
    run_words: int = 0
    run_start: int = 0


@dataclass(frozen=True, slots=True)
class Evidence:
    """G and its parts, rounded to four digits; ``p`` the conformal p-value, ``phase`` how well the tenant is known."""

    wording: float
    question: float
    coverage: float
    nearness: float
    repetition: float
    p: float
    phase: str

    @property
    def total(self) -> float:
        """G."""
        return round(self.wording + self.question + self.coverage + self.nearness + self.repetition, 4)

    def told(self) -> dict[str, Any]:
        """Return what a finding says of it: numbers and names, never content."""
        strong = {name: getattr(self, name) for name in SIGNALS if getattr(self, name) > 0}
        return {"score": self.total, "parts": strong, "p": self.p, "phase": self.phase}


def look(memory: Memory, model: Classifier, content: str, vector: Vector, *, session: str, agent: bool) -> Seen:
    """Return what a write shows against the past questions of its tenant. ``agent``: its session's past clears it."""
    found = words(content)
    of_write = stems(found)
    values = np.zeros(len(COLUMNS))
    values[C] = model.judge(content)[0]
    values[R] = round(repetition(found), 4)
    near: list[tuple[float, Question]] = []
    if memory.questions:
        cosines = memory.question_vectors.cosines(vector)
        best = _top(cosines, CANDIDATES)
        near = [(float(cosines[at]), memory.questions[at]) for at in best]
    where = places(of_write)
    here = tag(session)
    if agent and any(_covers(question.stems, where) for _, question in near if here in question.sessions):
        return Seen(values, of_write, exempt=True)
    values[Q] = float(carries_question(content))
    seen = Seen(values, of_write, exempt=False)
    for cosine, question in near:
        seen = nearer(seen, question, cosine, where)
    return seen


def nearer(seen: Seen, question: Question, cosine: float, where: dict[int, list[int]]) -> Seen:
    """Return what a text shows after it was held against one more question; ``where`` is ``places`` of the text."""
    covered, near, run, start = float(seen.values[U]), float(seen.values[W]), 0, 0
    about = min(1.0, max(0.0, (cosine - 0.3) / 0.25))  # a run by chance, in a text about something else
    if about > covered and len(question.stems) >= QUESTION_STEMS_MIN:
        run, start = longest_run(question.stems, where)
        covered = max(covered, round(min(run / len(question.stems), about), 4))
    if cosine > near:
        said = sum(len(where.get(stem, ())) for stem in set(question.stems.tolist()))
        near = round(cosine, 4) if len(seen.stems) - said > UNSAID_MIN else near
    if covered == seen.values[U] and near == seen.values[W]:
        return seen
    values = seen.values.copy()
    values[U], values[W] = covered, near
    return Seen(values, seen.stems, seen.exempt, question.event_id, run, start)


def weigh(
    values: Values,
    memory: Memory,
    window: int,
    *,
    without: int | None = None,
    signals: Collection[str] = SIGNALS,
) -> Evidence:
    """Return the evidence that a write's values are, against the tenant's last ``window`` landed entries.

    ``without`` leaves an entry out: the one that is looked at again. What is not among ``signals`` is nothing.
    """
    reference = memory.values if without is None else np.delete(memory.values, without, axis=0)
    reference = reference[-window:]
    seen = len(reference)

    def rarity(column: int, tail: float) -> float:
        at_least = calibration.count_at_least(reference[:, column], values[column])
        return max(calibration.rarity(at_least, seen, tail, PRIOR_WEIGHT) - RARE, 0.0)

    wording = 0.2 * max(values[C] + 0.5, 0.0)
    wording += 0.65 * rarity(C, calibration.logistic_tail(float(values[C]), *WORDING_PRIOR))
    habitual = memory.habit.count("1") > HABITUAL * max(len(memory.habit), 1)
    known = seen >= COLD_WRITES and not habitual
    question = 1.8 * rarity(Q, QUESTION_PRIOR) if values[Q] and known else 0.0
    nearness = 0.0
    if values[W] > NEAR_MIN:
        near = reference[:, W]
        z = calibration.robust_z(
            float(values[W]), near[near > 0], *NEAR_PRIOR, weight=NEAR_PRIOR_WEIGHT, least=NEAR_SPREAD_MIN
        )
        nearness = 0.8 * min(max(z - 2.5, 0.0), 2.5)
    repeated = 0.0
    if values[R] > REPETITION_MIN:
        repeated = 1.5 * (values[R] - REPETITION_MIN) + 0.9 * rarity(R, REPETITION_PRIOR)
    found = (wording, question, max(values[U] - 0.5, 0.0), nearness, repeated)
    parts = [round(float(part), 4) if name in signals else 0.0 for name, part in zip(SIGNALS, found, strict=True)]
    total = round(sum(parts), 4)
    share, centre, width = SCORE_PRIOR
    tail = share * math.exp(-(total - centre) / width) if total > centre else 1.0
    p = calibration.conformal(total, reference[:, G], tail, SCORE_PRIOR_WEIGHT)
    phase = "drifting" if habitual and seen >= COLD_WRITES else _phase(seen)
    return Evidence(parts[0], parts[1], parts[2], parts[3], parts[4], round(p, 6), phase)


def holds(found: Evidence, policy: DetectPolicy) -> bool:
    """Whether this much evidence holds a write."""
    return found.total >= policy.threshold and found.p < policy.alpha


def check(
    memory: Memory,
    model: Classifier,
    write: Write,
    vector: Vector,
    policy: DetectPolicy,
    *,
    agent: bool,
    least: Decision,
) -> tuple[Seen, Evidence, Finding | None]:
    """Return what a write shows, the evidence that it is, and a finding: ``least`` where it is held."""
    seen = look(memory, model, write.content, vector, session=write.session, agent=agent)
    found = weigh(seen.values, memory, policy.window, signals=policy.signals)
    seen.values[G] = found.total
    if found.total == 0:
        return seen, found, None
    detail = found.told() | {"threshold": policy.threshold, "model": model.digest}
    if seen.question:
        detail["nearest"] = {"recall": seen.question, "cosine": float(seen.values[W])}
        if seen.run_words:
            detail["nearest"] |= {"words": seen.run_words, "first_word": seen.run_start}
    held = holds(found, policy)
    return seen, found, Finding("detect.held" if held else "detect.scored", least if held else Decision.ACCEPT, detail)


def _phase(seen: int) -> str:
    return "cold" if seen < COLD_WRITES else "warming" if seen < 300 else "calibrated"


def _covers(question: Stems, where: dict[int, list[int]]) -> bool:
    return len(question) > 0 and longest_run(question, where)[0] / len(question) >= COVERED


def _top(cosines: Values, count: int) -> list[int]:
    """Return the positions of the highest, highest first; of equal ones the youngest first."""
    if len(cosines) > count:
        some = np.flatnonzero(cosines >= np.partition(cosines, -count)[-count])
    else:
        some = np.arange(len(cosines))
    return [int(at) for at in some[np.lexsort((-some, -cosines[some]))][:count]]
