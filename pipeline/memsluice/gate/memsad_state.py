"""MEMSAD's memory of one tenant: the FIFO history H of asked questions and the reference set M_ref.

Immutable: ``asked`` and ``learned`` return the next state and put the one row they change. Definition 6 calibrates on
``{s(m; H) : m in M_ref}``, so mean and deviation are those of the *current* history: the N x m cosine matrix is kept,
and a question that replaces the oldest changes one column of it. Everything is 64 bit and rounded to six digits before
it is compared, so that a state built up and the same state loaded from rows decide alike to the last digit shown.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import DIMENSIONS, Vector, row_load, vector_from_text, vector_to_text
from memsluice.gate import memsad
from memsluice.gate.policy import MemsadPolicy
from memsluice.gate.rows import TenantRows, row_key
from memsluice.gate.verdict import Decision, Finding, Score

KIND = "memsad"
QUESTION = "q"
REFERENCE = "r"
ROWS_MAX = 4_096
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class MemsadState:
    """History, shape (m, 384), reference, shape (n, 384), and their cosines, shape (n, m).

    ``numbers`` counts each question of the history from the tenant's first, ``slots`` names the row it is kept in.
    """

    history: Matrix
    reference: Matrix
    cosines: Matrix
    numbers: tuple[int, ...]
    slots: tuple[int, ...]
    history_max: int
    reference_max: int
    askers: tuple[str, ...] = ()
    """Event id of each question's recall; "" where its row is older than that."""

    @property
    def asked_total(self) -> int:
        """How many questions were ever asked."""
        return max(self.numbers) + 1 if self.numbers else 0

    @staticmethod
    def empty(policy: MemsadPolicy) -> "MemsadState":
        """Return the state of a tenant that never asked anything."""
        none = np.zeros((0, DIMENSIONS), dtype=np.float64)
        return MemsadState(none, none, none[:, :0], (), (), policy.history_size, policy.reference_size)

    @staticmethod
    def load(rows: Any, tenant: str, policy: MemsadPolicy) -> "MemsadState":
        """Decode a tenant's rows; the latest ``history_size`` questions and first ``reference_size`` entries count."""
        found: dict[str, list[tuple[int, int, str, str]]] = {QUESTION: [], REFERENCE: []}
        for key, value in rows.scan(row_key(tenant, KIND), ROWS_MAX):
            row, name = row_load(value), key.rsplit(b"\0", 1)[1].decode()
            found[name[0]].append((row["n"], int(name[1:]), row["v"], row.get("e", "")))
        asked = sorted(found[QUESTION])[-policy.history_size :]
        learned = sorted(found[REFERENCE])[: policy.reference_size]
        history, reference = (
            np.array([vector_from_text(text) for _, _, text, _ in some], dtype=np.float64).reshape(
                len(some), DIMENSIONS
            )
            for some in (asked, learned)
        )
        numbers, slots = tuple(one[0] for one in asked), tuple(one[1] for one in asked)
        sizes = (policy.history_size, policy.reference_size)
        return MemsadState(
            history, reference, reference @ history.T, numbers, slots, *sizes, tuple(one[3] for one in asked)
        )

    def fits(self, policy: MemsadPolicy) -> bool:
        """Whether the state has the sizes that a policy asks for."""
        return (self.history_max, self.reference_max) == (policy.history_size, policy.reference_size)

    def asked(self, rows: TenantRows, question: Vector, event_id: str = "") -> "MemsadState":
        """Return the state after one more question; beyond m_max it takes the oldest one's place (FIFO).

        The row written is the question's number modulo m_max. After a policy changed m_max that row may be another than
        the oldest one's: the state follows the rows, so that loading them gives the same state.
        """
        number, exact = self.asked_total, question.astype(np.float64)
        slot = number % self.history_max
        rows.put(KIND, f"{QUESTION}{slot}", {"n": number, "v": vector_to_text(question), "e": event_id})
        column = self.reference @ exact
        if slot in self.slots:
            at = self.slots.index(slot)
            history, cosines = self.history.copy(), self.cosines.copy()
            history[at], cosines[:, at] = exact, column
            numbers = (*self.numbers[:at], number, *self.numbers[at + 1 :])
            askers = (*self.askers[:at], event_id, *self.askers[at + 1 :])
            return replace(self, history=history, cosines=cosines, numbers=numbers, askers=askers)
        kept = np.arange(len(self.numbers))
        if len(kept) >= self.history_max:
            kept = np.delete(kept, int(np.argmin(self.numbers)))
        return replace(
            self,
            history=np.vstack([self.history[kept], exact[None, :]]),
            cosines=np.hstack([self.cosines[:, kept], column[:, None]]),
            numbers=(*(self.numbers[i] for i in kept), number),
            slots=(*(self.slots[i] for i in kept), slot),
            askers=(*(self.askers[i] for i in kept), event_id),
        )

    def learned(self, rows: TenantRows, entry: Vector) -> "MemsadState":
        """Return the state after one more benign entry; the first N are the reference set, as published."""
        size = len(self.reference)
        if size >= self.reference_max:
            return self
        rows.put(KIND, f"{REFERENCE}{size}", {"n": size, "v": vector_to_text(entry)})
        cosines = np.vstack([self.cosines, (self.history @ entry.astype(np.float64))[None, :]])
        return replace(self, reference=np.vstack([self.reference, entry[None, :]]), cosines=cosines)

    def nearest(self, entry: NDArray[np.float64]) -> str:
        """Return the event id of the recall whose question is nearest to an entry; of equally near ones the latest."""
        cosines = np.round(self.history @ entry, 6)
        best = np.flatnonzero(cosines == cosines.max())
        return self.askers[max(best, key=lambda i: self.numbers[i])]

    @cached_property
    def _calibrations(self) -> dict[memsad.MemsadParameters, memsad.Calibration]:
        return {}

    def calibration(self, policy: MemsadPolicy) -> memsad.Calibration:
        """Return mu, sigma, threshold and Theorem 11's bound for the current history; computed once a state."""
        parameters = memsad.MemsadParameters(
            mode=policy.mode,
            kappa=policy.kappa,
            reference_size=policy.reference_size,
            history_size=policy.history_size,
            delta=policy.delta,
        )
        found = self._calibrations.get(parameters)
        if found is None:
            found = memsad.calibrate(memsad.combine(self.cosines, policy.mode), parameters)
            self._calibrations[parameters] = found
        return found

    def phase(self) -> str:
        """Return ``cold`` (nothing asked yet), ``warming`` (fewer than N reference entries) or ``calibrated``."""
        if not len(self.history):
            return "cold"
        return "calibrated" if len(self.reference) >= self.reference_max else "warming"


def check(state: MemsadState, entry: Vector, policy: MemsadPolicy, least: Decision) -> tuple[Score, Finding | None]:
    """Score a write against the questions asked before it (Algorithm 1).

    Until N reference entries were seen, the policy's declared prior threshold stands in; with an empty history nothing
    can be scored, which the finding says.
    """
    phase = state.phase()
    if phase == "cold":
        return _score(state, policy, phase), Finding("memsad.cold", Decision.ACCEPT)
    exact = entry.astype(np.float64)
    scores = memsad.score(exact, state.history)
    calibration = None if phase == "warming" else state.calibration(policy)
    score = replace(_score(state, policy, phase, scores, calibration), nearest=state.nearest(exact))
    assert score.threshold is not None
    assert score.score is not None
    if score.score > score.threshold:
        return score, Finding("memsad.above_threshold", least, {"phase": phase})
    return score, None


def fed(before: MemsadState | None, after: MemsadState | None) -> Finding | None:
    """Say how a reviewer's decision changed the reference set; None where it did not (N entries are there, or none)."""
    sizes = [0 if state is None else len(state.reference) for state in (before, after)]
    if after is None or sizes[0] == sizes[1]:
        return None
    return Finding("memsad.fed", Decision.ACCEPT, {"reference": sizes, "reference_max": after.reference_max})


def _score(
    state: MemsadState,
    policy: MemsadPolicy,
    phase: str,
    scores: memsad.Scores | None = None,
    calibration: memsad.Calibration | None = None,
) -> Score:
    prior = policy.cold_threshold if scores else None
    return Score(
        phase=phase,
        mode=policy.mode.value,
        score=_rounded(scores.of(policy.mode)) if scores else None,
        s_max=_rounded(scores.s_max) if scores else None,
        s_mean=_rounded(scores.s_mean) if scores else None,
        mu=_rounded(calibration.mu) if calibration else None,
        sigma=_rounded(calibration.sigma) if calibration else None,
        kappa=policy.kappa,
        threshold=_rounded(calibration.threshold) if calibration else prior,
        bound=_rounded(calibration.bound) if calibration else None,
        window_id=state.asked_total,
        window_size=len(state.reference),
        history_size=len(state.history),
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), 6)
