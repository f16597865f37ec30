"""MEMSAD's memory of one tenant: the FIFO history H of asked questions and the reference set M_ref.

Immutable: ``asked`` and ``learned`` return the next state and put the one row they change. Definition 6 calibrates on
``{s(m; H) : m in M_ref}``, so mean and deviation are those of the *current* history: the N x m cosine matrix is kept,
and a question that replaces the oldest changes one column of it. Sums are of 64 bits and rounded to six digits before
they are compared, so that a state built up and the same state loaded from rows decide alike to the last digit shown. A
reference entry is kept with 12 bits a component, which moves its cosines by some 3e-5; questions, which candidates are
compared with, are as they travelled.
"""

import math
from functools import cached_property
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from memsluice.envelope.codec import Vector, coarse_from_text, coarse_to_text, vector_from_text
from memsluice.envelope.verdict import Decision, Finding
from memsluice.gate.detectors.calibration.state import EMPTY, State
from memsluice.gate.detectors.memsad import scores as memsad
from memsluice.gate.detectors.memsad.lexical import NOTHING, Lexical
from memsluice.gate.detectors.numeric.compiled import compiled
from memsluice.gate.detectors.numeric.versions import Table
from memsluice.gate.policy.model import MemsadPolicy, Mode
from memsluice.gate.state.kinds import (
    ASKED,
    ENCODER,
    FIRST_ENCODER,
    LEXICAL,
    MEMSAD_CALIBRATION,
    REFERENCE,
    EncoderRow,
    VectorRow,
)
from memsluice.gate.state.rows import RowKind, TenantRows

ROWS_MAX = 4_096
Matrix = NDArray[np.float64]
Rows = NDArray[np.float32]


SIX_DIGITS = 1e6


@compiled("int64(float64[::1])")
def _latest(cosines: Matrix) -> int:
    """Return where the greatest is, of those that are equal to six digits the last."""
    found, best = 0, -math.inf
    for at in range(len(cosines)):
        rounded = np.rint(cosines[at] * SIX_DIGITS)
        if rounded >= best:
            found, best = at, rounded
    return found


def _cosines(history: Rows, reference: Rows) -> Matrix:
    return np.array([memsad.cosines(question, reference) for question in history]).reshape(len(history), len(reference))


def _by_number(rows: Any, tenant: str, kind: RowKind[VectorRow], turn: int) -> list[tuple[int, VectorRow]]:
    """Return the rows of a kind and of an encoder's turn by their numbers, each with the slot that it is kept in."""
    prefix = kind.key(tenant)
    found = [(int(key[len(prefix) :]), kind.load(value)) for key, value in rows.scan(prefix, ROWS_MAX)]
    return sorted([one for one in found if one[1].turn == turn], key=lambda one: (one[1].number, one[0]))


def _vector(row: VectorRow) -> Vector:
    return coarse_from_text(row.coarse) if row.coarse else vector_from_text(row.vector)


class MemsadState(Struct, frozen=True, dict=True):
    """``asked_rows``: the history, (m, d); ``reference``, (n, d); ``cosine_rows``: their cosines, (m, n).

    Questions are in the order they were asked: ``numbers`` counts each from the tenant's first, ``slots`` names the row
    it is kept in, ``askers`` its recall's event id ("" where its row is older than that). ``encoder`` made the vectors.
    """

    asked_rows: Table
    reference: Rows
    cosine_rows: Table
    numbers: tuple[int, ...]
    slots: tuple[int, ...]
    history_max: int
    reference_max: int
    askers: tuple[str, ...] = ()
    scores: State = EMPTY
    lexical: Lexical = NOTHING
    encoder: EncoderRow = FIRST_ENCODER

    @property
    def history(self) -> Rows:
        """H, shape (m, d), the oldest question first."""
        return self.asked_rows.window

    @property
    def asked_total(self) -> int:
        """How many questions were ever asked."""
        return self.numbers[-1] + 1 if self.numbers else 0

    @staticmethod
    def empty(policy: MemsadPolicy) -> "MemsadState":
        """Return the state of a tenant that never asked anything."""
        none, sizes = _none(FIRST_ENCODER), (policy.history_size, policy.reference_size)
        return MemsadState(Table.of(none), none, Table.of(np.zeros((0, 0))), (), (), *sizes)

    @staticmethod
    def load(rows: Any, tenant: str, policy: MemsadPolicy) -> "MemsadState":
        """Decode a tenant's rows; the latest ``history_size`` questions and first ``reference_size`` entries count."""
        known = rows.get(ENCODER.key(tenant, "0"))
        encoder = FIRST_ENCODER if known is None else ENCODER.load(known)
        asked = _by_number(rows, tenant, ASKED, encoder.turn)[-policy.history_size :]
        learned = _by_number(rows, tenant, REFERENCE, encoder.turn)[: policy.reference_size]
        history, reference = (
            np.array([_vector(row) for _, row in some], dtype=np.float32).reshape(len(some), encoder.dimensions)
            for some in (asked, learned)
        )
        scores, lexical = (rows.get(kind.key(tenant, "0")) for kind in (MEMSAD_CALIBRATION, LEXICAL))
        return MemsadState(
            Table.of(history),
            reference,
            Table.of(_cosines(history, reference)),
            tuple(row.number for _, row in asked),
            tuple(slot for slot, _ in asked),
            policy.history_size,
            policy.reference_size,
            tuple(row.event_id or "" for _, row in asked),
            State.loaded(None if scores is None else MEMSAD_CALIBRATION.load(scores)),
            Lexical.loaded(None if lexical is None else LEXICAL.load(lexical)),
            encoder,
        )

    def fits(self, policy: MemsadPolicy) -> bool:
        """Whether the state has the sizes that a policy asks for."""
        return (self.history_max, self.reference_max) == (policy.history_size, policy.reference_size)

    def anew(self, rows: TenantRows, encoder: EncoderRow) -> "MemsadState":
        """Return the state of a tenant whose vectors are another encoder's from now on; what words say stays."""
        rows.delete(MEMSAD_CALIBRATION, "0")
        none, sizes = _none(encoder), (self.history_max, self.reference_max)
        empty = (Table.of(none), none, Table.of(np.zeros((0, 0))), (), (), *sizes)
        return MemsadState(*empty, lexical=self.lexical, encoder=encoder)

    def asked(self, rows: TenantRows, question: Vector, event_id: str = "") -> "MemsadState":
        """Return the state after one more question; beyond m_max it takes the oldest one's place (FIFO).

        The row written is the question's number modulo m_max. After a policy changed m_max that row may be another than
        the oldest one's: the state follows the rows, so that loading them gives the same state.
        """
        number = self.asked_total
        slot = number % self.history_max
        turn = self.encoder.turn
        row = VectorRow(number=number, vector=rows.packed(question), event_id=event_id, turn=turn)
        rows.put(ASKED, str(slot), row)
        full = len(self.numbers) >= self.history_max
        gone = self.slots.index(slot) if slot in self.slots else 0 if full else None
        state = self if gone in (None, 0) else self._without(gone)
        drop = gone == 0
        return MemsadState(
            asked_rows=state.asked_rows.appended(question, drop=drop),
            reference=state.reference,
            cosine_rows=state.cosine_rows.appended(memsad.cosines(question, state.reference), drop=drop),
            numbers=(*state.numbers[drop:], number),
            slots=(*state.slots[drop:], slot),
            history_max=state.history_max,
            reference_max=state.reference_max,
            askers=(*state.askers[drop:], event_id),
            scores=state.scores,
            lexical=state.lexical,
            encoder=state.encoder,
        )

    def _without(self, at: int) -> "MemsadState":
        numbers, slots, askers = ((*some[:at], *some[at + 1 :]) for some in (self.numbers, self.slots, self.askers))
        history, cosines = (np.delete(table.window, at, axis=0) for table in (self.asked_rows, self.cosine_rows))
        asked, near = Table.of(history), Table.of(cosines)
        return replace(self, asked_rows=asked, cosine_rows=near, numbers=numbers, slots=slots, askers=askers)

    def learned(self, rows: TenantRows, entry: Vector) -> "MemsadState":
        """Return the state after one more benign entry; the first N are the reference set, as published."""
        size = len(self.reference)
        if size >= self.reference_max:
            return self
        kept = coarse_to_text(entry)
        rows.put(REFERENCE, str(size), VectorRow(number=size, coarse=kept, turn=self.encoder.turn))
        learned = coarse_from_text(kept)
        cosines = np.hstack([self.cosine_rows.window, memsad.cosines(learned, self.history)[:, None]])
        return replace(self, reference=np.vstack([self.reference, learned[None, :]]), cosine_rows=Table.of(cosines))

    def nearest(self, cosines: memsad.Exact) -> str:
        """Return the event id of the nearest question's recall, of equally near ones the latest.

        ``cosines``, shape (m,), are those to the last m questions.
        """
        return self.askers[len(self.askers) - len(cosines) + _latest(cosines)]

    def calibrated(self, rows: TenantRows, scores: State) -> "MemsadState":
        """Return the state with other scores of a strategy than the paper's."""
        if scores is self.scores:
            return self
        rows.put(MEMSAD_CALIBRATION, "0", scores.dumped())
        return replace(self, scores=scores)

    def worded(self, rows: TenantRows, lexical: Lexical) -> "MemsadState":
        """Return the state with another baseline of MEMSAD+."""
        if lexical is self.lexical:
            return self
        rows.put(LEXICAL, "0", lexical.dumped())
        return replace(self, lexical=lexical)

    @cached_property
    def _references(self) -> dict[Mode, Matrix]:
        return {}

    def reference_scores(self, mode: Mode) -> Matrix:
        """Return {s(m; H) : m in M_ref} for the current history, shape (n,); computed once a state."""
        found = self._references.get(mode)
        if found is None:
            found = self._references[mode] = memsad.combine(self.cosine_rows.window, mode)
        return found


def _none(encoder: EncoderRow) -> Rows:
    return np.zeros((0, encoder.dimensions), np.float32)


def fed(before: MemsadState | None, after: MemsadState | None) -> Finding | None:
    """Say how a reviewer's decision changed the reference set; None where it did not (N entries are there, or none)."""
    sizes = [0 if state is None else len(state.reference) for state in (before, after)]
    if after is None or sizes[0] == sizes[1]:
        return None
    return Finding("memsad.fed", Decision.ACCEPT, {"reference": sizes, "reference_max": after.reference_max})
