"""A tenant's rows of kind ``detect`` as they are read back: which of them count, and which are left over.

A policy that lowers a bound leaves rows over. They never count again, also not once the bound is higher: row ``b0``
says from which number on questions (``q``) and entries (``e``) do, and numbers go on from there. They are deleted a few
at a time with the events that follow, so that no event has to write thousands of rows.
"""

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from memsluice.gate.state.kinds import (
    DETECT_CALIBRATION,
    ENCODER,
    FIRST_ENCODER,
    FLOOR,
    HABIT,
    LANDED,
    QUESTION,
    VALUES,
    CalibrationRow,
    FloorRow,
    HabitRow,
    LandedRow,
    QuestionRow,
    Values,
)
from memsluice.gate.state.rows import R, RowKind, TenantRows

ROWS_MAX = 32_768
"""Rows of one kind that are read: three times the highest bound that a policy may set."""
DELETED_MAX = 32
"""Rows left over that one event deletes."""


class Surplus(Struct, frozen=True):
    """``first``: the least number that counts, of questions and of entries. ``rows``: kinds and numbers left over.

    ``told`` is whether row ``b0`` says so, ``turn`` the encoder's whose vectors are kept
    (:mod:`memsluice.gate.checks.encoder`).
    """

    first: tuple[int, int] = (0, 0)
    rows: tuple[tuple[RowKind[Any], int], ...] = ()
    told: bool = True
    turn: int = 0

    @staticmethod
    def all_of(first: tuple[int, int], rows: Sequence[tuple[RowKind[Any], int]], turn: int) -> "Surplus":
        """Return that all there is is left over, since an encoder's turn began; later numbers are above all of it."""
        asked = [number + 1 for kind, number in rows if kind is QUESTION]
        landed = [number + 1 for kind, number in rows if kind is not QUESTION]
        after = (max(asked, default=0), max(landed, default=0))
        return Surplus((max(first[0], after[0]), max(first[1], after[1])), tuple(rows), told=False, turn=turn)

    def of(self, kind: RowKind[Any]) -> list[int]:
        """Return the numbers of a kind that are left over."""
        return [number for found, number in self.rows if found is kind]

    def reduced(self, rows: TenantRows) -> "Surplus":
        """Return what is left over after one more event, which deletes some of it."""
        if not self.told:
            rows.put(FLOOR, "0", FloorRow(questions=self.first[0], entries=self.first[1], turn=self.turn))
        for kind, number in self.rows[:DELETED_MAX]:
            rows.delete(kind, str(number))
        return Surplus(self.first, self.rows[DELETED_MAX:], turn=self.turn)


class StoredRows(Struct, frozen=True):
    """Rows by number, in order of their numbers: of an entry its own and its values'."""

    questions: dict[int, QuestionRow]
    entries: dict[int, tuple[LandedRow, Values]]
    habit: HabitRow | None
    calibration: CalibrationRow | None
    surplus: Surplus
    dimensions: int


def read(rows: Any, tenant: str, questions_max: int, entries_max: int) -> StoredRows:
    """Read what a tenant's state rows hold; the youngest ``questions_max`` and ``entries_max`` count."""
    asked, landed, values = (_numbered(rows, tenant, kind) for kind in (QUESTION, LANDED, VALUES))
    floor = _single(rows, tenant, FLOOR) or FloorRow(questions=0, entries=0)
    questions = [number for number in asked if number >= floor.questions]
    entries = [number for number in landed if number >= floor.entries and number in values]
    first = (floor.questions, floor.entries)
    encoder = _single(rows, tenant, ENCODER) or FIRST_ENCODER
    if floor.turn != encoder.turn:  # whatever lies there was of another encoder
        every = ((QUESTION, asked), (LANDED, landed), (VALUES, values))
        surplus = Surplus.all_of(first, [(kind, number) for kind, found in every for number in found], encoder.turn)
        return StoredRows({}, {}, _single(rows, tenant, HABIT), None, surplus, encoder.dimensions)
    over = len(questions) > questions_max or len(entries) > entries_max
    if over:
        questions, entries = questions[-questions_max:], entries[-entries_max:]
        first = (min(questions, default=first[0]), min(entries, default=first[1]))
    kinds = ((QUESTION, asked, set(questions)), (LANDED, landed, set(entries)), (VALUES, values, set(entries)))
    left = tuple((kind, number) for kind, found, kept in kinds for number in found if number not in kept)
    return StoredRows(
        {number: asked[number] for number in questions},
        {number: (landed[number], values[number]) for number in entries},
        _single(rows, tenant, HABIT),
        _single(rows, tenant, DETECT_CALIBRATION),
        Surplus(first, left, told=not over, turn=encoder.turn),
        encoder.dimensions,
    )


def _numbered(rows: Any, tenant: str, kind: RowKind[R]) -> dict[int, R]:
    prefix = kind.key(tenant)
    some = {int(key[len(prefix) :]): kind.load(value) for key, value in rows.scan(prefix, ROWS_MAX)}
    return dict(sorted(some.items()))


def _single(rows: Any, tenant: str, kind: RowKind[R]) -> R | None:
    data = rows.get(kind.key(tenant, "0"))
    return None if data is None else kind.load(data)
