"""The evidence G that a write is, in six parts, from its values and those of the tenant's landed writes.

``G = wording + question + coverage + nearness + repetition + anomaly``, each zero where there is nothing to say:

- wording: ``.2 (C + .5)+ + .65 (u_C - .8)+``, C the share of honest texts that say as much to do, on the
  scale of log-odds (:attr:`memsluice.gate.detectors.wording.classifier.Judged.score`), u its rarity in the tenant;
- question: ``1.8 (u_Q - .8)+`` where the text carries a question and covers one that was asked (U >= .8), and the
  tenant's writes carry none. A question that nobody asked (an e-mail's, a quotation's) says nothing. Nor does one in
  a text that reaches nobody but its writer; where that quotes what was asked, nearness, repetition and anomaly are 0;
- coverage: ``(run - .5)+``, the longest run of stems shared with a past question, as a share of that question;
- nearness: ``.8 min((z - 2.5)+, 2.5)``, z the robust z-value of the cosine to the nearest past question that leaves
  more than ten words of the text unsaid;
- repetition: ``1.5 (r - .12)+ + .9 (u_r - .8)+`` where r > .12;
- anomaly: ``.2 min(a, 4)``, a how many deviations MEMSAD's score lies above its calibrated threshold
  (:attr:`memsluice.gate.detectors.memsad.detector.MemsadDetector.anomaly`).

Ranks do not follow a heavy tail as a mean and a deviation do, and an attacker just below the threshold moves them by a
place each. The prior stands for so many writes that nobody has seen yet, and keeps its weight: with n reference values,
m of them at least x, and a prior tail t(x) worth w writes, ``p = (m + w t(x) + 1) / (n + w + 1)``, ``u = -log10 p``.

What is usual for a tenant must be usual without a quarter of its writes, whoever wrote them. An attacker who may write
can make anything usual by writing it often; so before a value counts as usual, the principals that show it most are
left out, up to QUARTER of the reference: the ranks are then those of a tenant in which nobody did that, as long as the
attackers among its writers have no larger share. The same holds against many small accounts. A principal with a larger
share of the reference is never left out, nor is what a reviewer let in, an operator wrote, or a verified user himself.

Weights and threshold were chosen on the nine streams that the figures of docs/detection.md are of, and on two more
draws of them: those are figures of a development set. That page says what each is worth.
"""

import math

import numpy as np
from numpy.typing import NDArray

from memsluice.gate.detectors.numeric.compiled import compiled
from memsluice.gate.detectors.wording.classifier import CENTRE, WIDTH

COLUMNS = ("c", "q", "r", "w", "u", "g", "a")
"""Values of an entry: what its wording shows, carries a question, repetition, nearness to a question, coverage, G, and
how far MEMSAD's score was above its threshold. Rows of older versions end before the last: those are 0 in them."""
C, Q, R, W, U, G, A = range(len(COLUMNS))
QUARTER = 0.25
VOUCHED = 0
"""Code of entries that are never left out: what a reviewer let in, an operator's, a verified user's, and those of whom
the writer is unknown."""
SHOWN = 1e-9
"""Values that differ by less are the same: rows keep four digits."""
PRIOR_WEIGHT = 100.0
QUESTION_PRIOR = 0.01
OWN = 0.5
"""The value Q of a question in a text that reaches nobody but its writer: it is usual like any other, and no evidence,
for who answers his own questions falsely misleads himself. Elsewhere Q is 1, and 0 without a question."""
COVERED = 0.8
"""Share of a past question from which on a text covers it."""
REPETITION_PRIOR = 0.03
REPETITION_MIN = 0.12
NEAR_CENTRE, NEAR_SPREAD = 0.55, 0.12
NEAR_PRIOR_WEIGHT = 100.0
"""High: honest notes are there to answer questions, and a tenant that asked little has seen few that do."""
NEAR_SPREAD_MIN = 0.08
NEAR_MIN = 0.4
NEAR_Z_MIN = 2.5
ANOMALY_WEIGHT, ANOMALY_MAX = 0.2, 4.0
"""What a deviation above MEMSAD's threshold is worth, and how many count."""
COLD_WRITES = 30
"""Landed writes below which a tenant's habit of carrying questions is not known."""
RARE = 0.8
"""-log10 of one in six: what is no rarer says nothing."""
DEVIATION = 1.4826
"""Standard deviations in one median absolute deviation, for a normal distribution."""
Values = NDArray[np.float64]
Flags = NDArray[np.bool_]
Owners = NDArray[np.int64]
"""Who wrote each entry, by a code; :data:`VOUCHED` or above."""


@compiled("float64(int64, int64, float64, float64)")
def rarity(at_least: int, seen: int, tail: float, weight: float) -> float:
    """Return -log10 of the p-value above: 2 is one write in a hundred."""
    return -math.log10((at_least + weight * tail + 1) / (seen + weight + 1))


@compiled("float64(float64, float64, float64)")
def logistic_tail(value: float, centre: float, width: float) -> float:
    """Return the upper tail of a logistic distribution."""
    return 1 / (1 + math.exp(min((value - centre) / width, 700.0)))


@compiled("boolean[::1](boolean[::1], int64[::1])")
def stays(hits: Flags, owners: Owners) -> Flags:
    """Return which entries of a reference stay, shape (n,), without those who show the value most.

    They go in the order of their shares of hits, of equal ones who wrote less first, then who wrote first, as long as
    there is room.
    """
    size = len(hits)
    codes = int(owners.max()) + 1 if size else VOUCHED + 1
    entries, shown, met = np.zeros(codes, np.int64), np.zeros(codes, np.int64), np.empty(size, np.int64)
    known = 0
    for at in range(size):
        if not entries[owners[at]]:
            met[known] = owners[at]
            known += 1
        entries[owners[at]] += 1
        shown[owners[at]] += hits[at]
    some = met[:known]
    some = some[(some != VOUCHED) & (shown[some] > 0) & (entries[some] <= QUARTER * size)]
    some = some[np.argsort(entries[some], kind="mergesort")]  # stable, as is the next
    some = some[np.argsort(-shown[some] / entries[some], kind="mergesort")]
    out, room = np.zeros(codes, np.bool_), QUARTER * size
    for code in some:
        room -= entries[code]
        if room < 0:
            break
        out[code] = True
    kept = np.empty(size, np.bool_)
    for at in range(size):
        kept[at] = not out[owners[at]]
    return kept


@compiled("UniTuple(int64, 2)(boolean[::1], int64[::1])")
def left(hits: Flags, owners: Owners) -> tuple[int, int]:
    """Return (hits, entries) that are left of a reference of shape (n,) without those who show the value most."""
    if not hits.any():
        return 0, len(hits)
    kept = stays(hits, owners)
    return int((hits & kept).sum()), int(kept.sum())


@compiled("float64(float64[::1])")
def _median(values: Values) -> float:
    middle = len(values) // 2
    high = np.partition(values, middle)
    if len(values) % 2:
        return float(high[middle])
    return float((high[:middle].max() + high[middle]) / 2)


@compiled("float64(float64, float64[::1], float64, float64, float64, float64)")
def robust_z(value: float, values: Values, centre: float, spread: float, weight: float, least: float) -> float:
    """Return (value - median) / (1.4826 MAD), both blended with a prior of that weight; the spread is >= ``least``."""
    seen = len(values)
    if seen:
        median = _median(values)
        deviation = DEVIATION * _median(np.abs(values - median))
        centre = (seen * median + weight * centre) / (seen + weight)
        spread = (seen * deviation + weight * spread) / (seen + weight)
    return (value - centre) / max(spread, least)


@compiled("float64(float64, float64[::1], int64[::1], float64)")
def _rare(value: float, column: Values, owners: Owners, tail: float) -> float:
    """Return ``(u - .8)+`` of a value among a column of the reference."""
    seen, hits = len(column), column >= value - SHOWN
    out = int(QUARTER * seen)  # were all of those that are left out among the hits, would it be rare then?
    if rarity(max(int(hits.sum()) - out, 0), seen - out, tail, PRIOR_WEIGHT) <= RARE:
        return 0.0
    lasting, kept = left(hits, owners)
    return max(rarity(lasting, kept, tail, PRIOR_WEIGHT) - RARE, 0.0)


@compiled("float64(float64, float64[::1], int64[::1])")
def _nearness(value: float, column: Values, owners: Owners) -> float:
    """Return what nearness is worth; an entry that came near to nothing has 0 in the column."""
    if value <= NEAR_MIN:
        return 0.0
    came = column > 0
    near, owners = column[came], owners[came]
    line = value - NEAR_Z_MIN * NEAR_SPREAD_MIN + SHOWN  # were centre and median above it, z would be too low
    if line <= NEAR_CENTRE and 2 * (near >= line).sum() - int(QUARTER * len(near)) > len(near):
        return 0.0
    if len(near):
        near = near[stays(near > np.partition(near, len(near) // 2)[len(near) // 2], owners)]
    z = robust_z(value, near, NEAR_CENTRE, NEAR_SPREAD, NEAR_PRIOR_WEIGHT, NEAR_SPREAD_MIN)
    return 0.8 * min(max(z - NEAR_Z_MIN, 0.0), 2.5)


@compiled("float64[::1](float64[:,::1], int64[::1], int64)")
def _column(table: Values, places: NDArray[np.int64], at: int) -> Values:
    found = np.empty(len(places))
    for row in range(len(places)):
        found[row] = table[places[row], at]
    return found


@compiled("float64(float64)")
def _four(value: float) -> float:
    return float(np.rint(value * 1e4) / 1e4)


Parts = tuple[float, float, float, float, float, float]


def parts(values: Values, table: Values, places: NDArray[np.int64], owners: Owners, habitual: bool) -> Parts:
    """Return the parts of G, in its order, of a write's values, shape (len(COLUMNS),), of four digits.

    Rows ``places``, shape (n,), of ``table`` have the values of landed writes, ``owners`` who wrote them; ``habitual``
    says that the tenant's writes carry questions anyway.
    """
    found: Parts = _parts(values, table, places, owners, habitual, logistic_tail(values[C], CENTRE, WIDTH))
    return found


@compiled("UniTuple(float64, 6)(float64[::1], float64[:,::1], int64[::1], int64[::1], boolean, float64)")
def _parts(
    values: Values, table: Values, places: NDArray[np.int64], owners: Owners, habitual: bool, tail: float
) -> Parts:
    """Return the parts; ``tail`` is the prior's of the write's wording."""
    wording = 0.2 * max(values[C] + 0.5, 0.0) + 0.65 * _rare(values[C], _column(table, places, C), owners, tail)
    question, repeated = 0.0, 0.0
    if values[Q] == 1 and values[U] >= COVERED and len(places) >= COLD_WRITES and not habitual:
        question = 1.8 * _rare(OWN, _column(table, places, Q), owners, QUESTION_PRIOR)
    quotes = values[Q] == OWN and values[U] >= COVERED  # near to it, and in its words, because it quotes it
    if values[R] > REPETITION_MIN and not quotes:
        repeated = 1.5 * (values[R] - REPETITION_MIN)
        repeated += 0.9 * _rare(values[R], _column(table, places, R), owners, REPETITION_PRIOR)
    nearness = 0.0 if quotes else _nearness(values[W], _column(table, places, W), owners)
    anomaly = 0.0 if quotes else ANOMALY_WEIGHT * min(max(values[A], 0.0), ANOMALY_MAX)
    coverage = max(values[U] - 0.5, 0.0)
    return _four(wording), _four(question), _four(coverage), _four(nearness), _four(repeated), _four(anomaly)
