"""Decides a write: what it says (wording), what it comes near (past questions), how rare both are for its tenant.

``G = wording + question + coverage + nearness + repetition``, each zero where there is nothing to say:

- wording: ``.2 (C + .5)+ + .65 (u_C - .8)+``, C the classifier's log-odds, u its rarity in the tenant;
- question: ``1.8 (u_Q - .8)+`` where the text carries a question and the tenant's writes do not;
- coverage: ``(run - .5)+``, the longest run of stems shared with a past question, as a share of that question;
- nearness: ``.8 min((z - 2.5)+, 2.5)``, z the robust z-value of the cosine to the nearest past question that leaves
  more than ten words of the text unsaid;
- repetition: ``1.5 (r - .12)+ + .9 (u_r - .8)+`` where r > .12.

A write is held where ``G >= threshold`` and the conformal p-value of G among the tenant's landed writes is below alpha:
reviewers' releases enter those, so a tenant whose honest writes score high is held less. Weights and threshold were
chosen on the nine streams that the figures of docs/detection.md are of, and on two more draws of them: those are
figures of a development set. That page says what each is worth.

Good lineage: where an agent's session itself asked the question that its write covers, question, coverage and nearness
say nothing.
"""

from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import Vector
from memsluice.events.models import Write
from memsluice.gate.calibration.base import Settings
from memsluice.gate.calibration.chosen import strategy
from memsluice.gate.calibration.conformal import at_least, declared_tail
from memsluice.gate.detector import calibration
from memsluice.gate.detector.classifier import Classifier
from memsluice.gate.detector.memory import (
    COLUMNS,
    STEMS_OF_QUESTION_MAX,
    C,
    G,
    Memory,
    Q,
    Question,
    R,
    U,
    Values,
    W,
    tag,
)
from memsluice.gate.detector.slots import fill
from memsluice.gate.detector.standing import QUARTER, Owners, left, stays
from memsluice.gate.detector.text import Reading, Stems, carries_question, longest_run, repetition, stems, words
from memsluice.gate.policy import SIGNALS, DetectPolicy
from memsluice.gate.verdict import Decision, Finding, Usual

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
KNOWN_WRITES = 300
"""Landed writes from which on a tenant is calibrated."""
RARE = 0.8
"""-log10 of one in six: what is no rarer says nothing."""


@dataclass(frozen=True, slots=True)
class Seen:
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


@dataclass(frozen=True, slots=True)
class Evidence:
    """G and its parts, rounded to four digits, and what the calibration says of G.

    ``rare`` says that G is beyond the line, ``p`` is the conformal p-value (None under another strategy), ``level`` or
    ``usual_max`` where the line lies, ``phase`` how well the tenant is known.
    """

    wording: float
    question: float
    coverage: float
    nearness: float
    repetition: float
    p: float | None
    phase: str
    rare: bool = False
    level: float | None = None
    usual_max: float | None = None
    size: int = 0

    @property
    def total(self) -> float:
        """G."""
        return round(self.wording + self.question + self.coverage + self.nearness + self.repetition, 4)

    def usual(self, policy: DetectPolicy) -> Usual:
        """Return what the verdict says of the calibration."""
        name = policy.calibration.strategy
        return Usual(name, self.phase, self.size, self.total, self.p, self.level, self.usual_max)

    def told(self) -> dict[str, Any]:
        """Return what a finding says of it: numbers and names, never content."""
        strong = {name: getattr(self, name) for name in SIGNALS if getattr(self, name) > 0}
        line = {"p": self.p} if self.usual_max is None else {"usual_max": self.usual_max}
        return {"score": self.total, "parts": strong, **line, "phase": self.phase}


def look(memory: Memory, model: Classifier, content: str, vector: Vector, *, session: str, agent: bool) -> Seen:
    """Return what a write shows against the past questions of its tenant. ``agent``: its session's past clears it.

    Who asked no more than a quarter of them has at most a quarter of the candidates' places (:mod:`.slots`).
    """
    found = words(content)
    of_write = stems(found)
    values = np.zeros(len(COLUMNS))
    values[C] = model.judge(content)[0]
    values[R] = round(repetition(found), 4)
    places = fill(memory.question_vectors, vector, memory.asks_little)
    near = [(cosine, memory.questions[at]) for at, cosine in places]
    text, here = Reading(of_write), tag(session)
    if agent and any(_covers(question.stems, text) for _, question in near if here in question.sessions):
        return Seen(values, of_write, exempt=True)
    values[Q] = float(carries_question(content))
    seen = Seen(values, of_write, exempt=False)
    for cosine, question in near:
        seen = nearer(seen, question, cosine, text)
    return seen


def nearer(seen: Seen, question: Question, cosine: float, text: Reading, said: Reading | None = None) -> Seen:
    """Return what a text shows after it was held against one more question; ``said``: its stems, where they were read.

    One that says all that the text says is a copy of it: it covers nothing.
    """
    said = said or Reading(question.stems)
    covered, near, run, start = float(seen.values[U]), float(seen.values[W]), 0, 0
    about = min(1.0, max(0.0, (cosine - 0.3) / 0.25))  # a run by chance, in a text about something else
    asked = said.order[:STEMS_OF_QUESTION_MAX] if about > covered else []
    runs = len(asked) >= QUESTION_STEMS_MIN
    runs = runs and sum(map(text.known.__contains__, asked)) > covered * len(asked)
    if runs or cosine > near:
        unsaid = len(text.order) - sum(map(said.known.__contains__, text.order))
        if runs and unsaid:
            run, start = longest_run(asked, text.where)
            covered = max(covered, round(min(run / len(asked), about), 4))
        if cosine > near and unsaid > UNSAID_MIN:
            near = round(cosine, 4)
    covers, closer = covered > seen.values[U], near > seen.values[W]
    if not (covers or closer):
        return seen
    values = seen.values.copy()
    values[U], values[W] = covered, near
    of = (question.event_id, run, start) if covers else (seen.question, seen.run_words, seen.run_start)
    return Seen(values, seen.stems, seen.exempt, *of, near=question.event_id if closer else seen.near)


def _reference(values: NDArray[Any], window: int, without: int | None) -> NDArray[Any]:
    """Return the last ``window`` rows of what is left without one."""
    first = len(values) - window - 1
    if without is None or without < first:
        return values[-window:]
    return np.concatenate((values[max(first, 0) : without], values[without + 1 :]))


def weigh(
    values: Values, memory: Memory, policy: DetectPolicy, *, without: int | None = None, window: int | None = None
) -> Evidence:
    """Return the evidence that a write's values are, against the tenant's last ``window`` landed entries.

    ``without`` leaves an entry out: the one that is looked at again. What is not among the policy's signals is nothing.
    """
    window = window or policy.window
    reference, owners = (_reference(some, window, without) for some in (memory.values, memory.standing.owners))
    seen = len(reference)

    def rarity(column: int, tail: float) -> float:
        hits = at_least(reference[:, column], values[column])
        out = int(QUARTER * seen)  # were all of those that are left out among the hits, would it be rare then?
        if calibration.rarity(max(int(np.count_nonzero(hits)) - out, 0), seen - out, tail, PRIOR_WEIGHT) <= RARE:
            return 0.0
        return max(calibration.rarity(*left(hits, owners), tail, PRIOR_WEIGHT) - RARE, 0.0)

    wording = 0.2 * max(values[C] + 0.5, 0.0)
    wording += 0.65 * rarity(C, calibration.logistic_tail(float(values[C]), *WORDING_PRIOR))
    habitual = memory.habit.beyond(HABITUAL, memory.standing)
    known = seen >= COLD_WRITES and not habitual
    question = 1.8 * rarity(Q, QUESTION_PRIOR) if values[Q] and known else 0.0
    nearness = _nearness(float(values[W]), reference[:, W], owners)
    repeated = 0.0
    if values[R] > REPETITION_MIN:
        repeated = 1.5 * (values[R] - REPETITION_MIN) + 0.9 * rarity(R, REPETITION_PRIOR)
    found = (wording, question, max(values[U] - 0.5, 0.0), nearness, repeated)
    parts = [
        round(float(part), 4) if name in policy.signals else 0.0 for name, part in zip(SIGNALS, found, strict=True)
    ]
    total = round(sum(parts), 4)
    said = strategy(settings(policy)).judge(total, memory.calibration.over(reference[:, G]))
    phase = "drifting" if habitual and seen >= COLD_WRITES else said.phase.value
    p = None if said.p is None else round(said.p, 6)
    limit = None if said.threshold is None else round(said.threshold, 4)
    return Evidence(
        parts[0], parts[1], parts[2], parts[3], parts[4], p, phase, said.flagged, said.level, limit, said.size
    )


@lru_cache(256)  # one a policy
def settings(policy: DetectPolicy) -> Settings:
    """Return how G is calibrated: ranks among the landed writes, unless the policy says otherwise."""
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
        gamma=chosen.gamma,
        credit=chosen.credit,
        prior_tail=partial(declared_tail, *SCORE_PRIOR),
        prior_weight=SCORE_PRIOR_WEIGHT,
    )


def _nearness(value: float, near: Values, owners: Owners) -> float:
    """Return what nearness is worth; ``near`` shape (n,), 0 where an entry came near to nothing."""
    if value <= NEAR_MIN:
        return 0.0
    near, owners = near[near > 0], owners[near > 0]
    if len(near):
        middle = len(near) // 2
        near = near[stays(near > np.partition(near, middle)[middle], owners)]
    z = calibration.robust_z(value, near, *NEAR_PRIOR, weight=NEAR_PRIOR_WEIGHT, least=NEAR_SPREAD_MIN)
    return 0.8 * min(max(z - 2.5, 0.0), 2.5)


def holds(found: Evidence, policy: DetectPolicy) -> bool:
    """Whether this much evidence holds a write."""
    return exceeds(found.total, found.rare, policy)


def exceeds(total: float, rare: bool, policy: DetectPolicy) -> bool:
    """Whether G holds a write: enough evidence, and rare enough for the budget."""
    return total >= policy.threshold and rare


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
    found = weigh(seen.values, memory, policy)
    seen.values[G] = found.total
    if found.total == 0:
        return seen, found, None
    detail = found.told() | {"threshold": policy.threshold, "model": model.digest}
    run = {"words": seen.run_words, "first_word": seen.run_start}
    if seen.near:
        detail["nearest"] = {"recall": seen.near, "cosine": float(seen.values[W])}
        detail["nearest"] |= run if seen.near == seen.question else {}
    if seen.question:
        detail["covered_by"] = {"recall": seen.question, "share": float(seen.values[U]), **run}
    held = holds(found, policy)
    return seen, found, Finding("detect.held" if held else "detect.scored", least if held else Decision.ACCEPT, detail)


def _covers(question: Stems, text: Reading) -> bool:
    return len(question) > 0 and longest_run(question.tolist(), text.where)[0] / len(question) >= COVERED
