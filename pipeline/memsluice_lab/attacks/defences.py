"""The paper's five defences on a case (seed 000, Sections 4 and 5): which entries each of them flags.

All of them are the gate's own code, under the names that the paper has for them.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from memsluice.gate.checks import instructions
from memsluice.gate.checks.spelled import spelled
from memsluice.gate.detectors.memsad import lexical, proactive, watermark
from memsluice.gate.detectors.memsad.scores import moments, reference_scores, score
from memsluice.gate.policy.model import Mode
from memsluice_lab.attacks.setting import REFERENCE, Case, Vectors

KAPPA, PROACTIVE = 2.0, 0.19
SEED = "lab"
"""Of the watermark."""


@dataclass(frozen=True, slots=True)
class Memsad:
    """MEMSAD, combined score, calibrated on a case's reference entries against some past questions."""

    history: Vectors
    mu: float
    sigma: float

    @staticmethod
    def of(case: Case, *, triggered: bool = False) -> "Memsad":
        """Calibrate on the first REFERENCE honest entries."""
        history = case.triggered if triggered else case.history
        return Memsad(history, *moments(reference_scores(case.honest[:REFERENCE], history, Mode.COMBINED)))

    def scores(self, vectors: Vectors) -> list[float]:
        """Return the score of each row."""
        return [score(vector, self.history).of(Mode.COMBINED) for vector in vectors]

    def flags(self, vectors: Vectors, kappa: float = KAPPA) -> list[bool]:
        """Tell of each row whether it is above mu + kappa sigma."""
        line = self.mu + kappa * self.sigma
        return [one > line for one in self.scores(vectors)]


Flags = Callable[[Case, Sequence[str], Vectors, bool], list[bool]]
"""Of a case, some texts, their vectors and whether they are honest: which of them are flagged."""


def by_watermark(case: Case, texts: Sequence[str], vectors: Vectors, honest: bool) -> list[bool]:
    """What carries no mark; honest entries are marked when they are written, poison is not."""
    green = watermark.green_list(SEED)
    marked = [watermark.embed(text, green) if honest else text for text in texts]
    return [watermark.detect(text, green) < watermark.Z_MIN for text in marked]


def by_validation(case: Case, texts: Sequence[str], vectors: Vectors, honest: bool) -> list[bool]:
    """What has a pattern of seed 002: the paper prints none of its own."""
    return [bool(instructions.find(spelled(text))) for text in texts]


def by_probes(case: Case, texts: Sequence[str], vectors: Vectors, honest: bool) -> list[bool]:
    """What lies near the probes."""
    return [proactive.similarity(vector) > PROACTIVE for vector in vectors]


def by_memsad(case: Case, texts: Sequence[str], vectors: Vectors, honest: bool) -> list[bool]:
    """MEMSAD with the questions that were asked."""
    return Memsad.of(case).flags(vectors)


def by_memsad_triggered(case: Case, texts: Sequence[str], vectors: Vectors, honest: bool) -> list[bool]:
    """MEMSAD with questions that carry the attacker's trigger."""
    return Memsad.of(case, triggered=True).flags(vectors)


def by_memsad_plus(case: Case, texts: Sequence[str], vectors: Vectors, honest: bool) -> list[bool]:
    """MEMSAD, or n-grams unlike those of the reference."""
    known = lexical.NOTHING
    for text in case.texts[:REFERENCE]:
        known = known.landed(text, REFERENCE)
    judged = (known.judge(text, REFERENCE, KAPPA) for text in texts)
    unlike = [found is not None and found[0] > found[1] for found in judged]
    return [near or odd for near, odd in zip(by_memsad(case, texts, vectors, honest), unlike, strict=True)]


def by_composite(case: Case, texts: Sequence[str], vectors: Vectors, honest: bool) -> list[bool]:
    """The disjunction of Appendix C: any of three."""
    some = (by_watermark, by_memsad, by_probes)
    return [any(flags) for flags in zip(*(one(case, texts, vectors, honest) for one in some), strict=True)]


DEFENCES: dict[str, Flags] = {
    "watermark": by_watermark,
    "validation": by_validation,
    "proactive": by_probes,
    "MEMSAD": by_memsad,
    "MEMSAD, triggered calibration": by_memsad_triggered,
    "composite": by_composite,
}


def false_alarms(flags: Flags, some: Sequence[Case]) -> tuple[int, int]:
    """Return how many honest entries that nothing was calibrated on are flagged, and of how many."""
    found = [one for case in some for one in _honest(flags, case)]
    return sum(found), len(found)


def _honest(flags: Flags, case: Case) -> Iterator[bool]:
    yield from flags(case, case.texts[REFERENCE:], case.honest[REFERENCE:], True)


def auroc(bad: Sequence[float], good: Sequence[float]) -> float:
    """Return the chance that one of ``bad`` is above one of ``good``, ties counting half."""
    ordered = np.sort(np.asarray(good))
    below = np.searchsorted(ordered, bad, "left") + np.searchsorted(ordered, bad, "right")
    return float(below.mean() / 2 / len(ordered))
