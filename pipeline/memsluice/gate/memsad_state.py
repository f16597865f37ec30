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
from memsluice.gate.calibration.state import EMPTY, State
from memsluice.gate.policy import MemsadPolicy
from memsluice.gate.published.lexical import Lexical
from memsluice.gate.rows import TenantRows, row_key
from memsluice.gate.verdict import Decision, Finding

KIND = "memsad"
QUESTION = "q"
REFERENCE = "r"
SCORES = "s"
"""Prefix of the row of scores that a strategy other than the paper's rests on."""
LEXICAL = "c"
"""Prefix of MEMSAD+'s row."""
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
    scores: State = EMPTY
    lexical: Lexical = Lexical.loaded(None)  # noqa: RUF009  # immutable

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
        single: dict[str, Any] = {}
        for key, value in rows.scan(row_key(tenant, KIND), ROWS_MAX):
            row, name = row_load(value), key.rsplit(b"\0", 1)[1].decode()
            if name[0] in (SCORES, LEXICAL):
                single[name[0]] = row
                continue
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
            history,
            reference,
            reference @ history.T,
            numbers,
            slots,
            *sizes,
            tuple(one[3] for one in asked),
            State.loaded(single.get(SCORES)),
            Lexical.loaded(single.get(LEXICAL)),
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

    def nearest(self, cosines: memsad.Floats) -> str:
        """Return the event id of the nearest question's recall, of equally near ones the latest; cosines shape (m,)."""
        cosines = np.round(cosines, 6)
        best = np.flatnonzero(cosines == cosines.max())
        return self.askers[max(best, key=lambda i: self.numbers[i])]

    def calibrated(self, rows: TenantRows, scores: State) -> "MemsadState":
        """Return the state with other scores of a strategy than the paper's."""
        if scores is self.scores:
            return self
        rows.put(KIND, f"{SCORES}0", scores.dumped())
        return replace(self, scores=scores)

    def worded(self, rows: TenantRows, lexical: Lexical) -> "MemsadState":
        """Return the state with another baseline of MEMSAD+."""
        if lexical is self.lexical:
            return self
        rows.put(KIND, f"{LEXICAL}0", lexical.dumped())
        return replace(self, lexical=lexical)

    @cached_property
    def _references(self) -> dict[memsad.Mode, Matrix]:
        return {}

    def reference_scores(self, mode: memsad.Mode) -> Matrix:
        """Return {s(m; H) : m in M_ref} for the current history, shape (n,); computed once a state."""
        found = self._references.get(mode)
        if found is None:
            found = self._references[mode] = memsad.combine(self.cosines, mode)
        return found


def fed(before: MemsadState | None, after: MemsadState | None) -> Finding | None:
    """Say how a reviewer's decision changed the reference set; None where it did not (N entries are there, or none)."""
    sizes = [0 if state is None else len(state.reference) for state in (before, after)]
    if after is None or sizes[0] == sizes[1]:
        return None
    return Finding("memsad.fed", Decision.ACCEPT, {"reference": sizes, "reference_max": after.reference_max})
