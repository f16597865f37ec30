"""What the detector remembers of a tenant: the questions that were asked, and the entries that landed as guidance.

Both are bounded. Questions that nearly repeat each other are one, and whoever asks most gives way first: one account
that asks many pushes out its own. Many accounts push out others' questions, those of who asked most first. Entries give
way in the order they landed; their values are at the same time the tenant's reference
(:mod:`memsluice.gate.detectors.rarity.evidence`): what was held never enters it, what look back takes away leaves it.

Rows of kind ``detect``, each a JSON value: ``q<n>`` a question, ``e<n>`` an entry's vector and stems, ``v<n>`` its
values in whole ten-thousandths; ``h0`` which of the last screened writes carried a question, and whose those were;
``c0`` held scores and level, where the policy's calibration has them; ``b0`` see
:mod:`memsluice.gate.detectors.rarity.stored`. They hold embeddings and, in order, 32-bit hashes of stems, without a
key: no text, but whoever has the rows and a list of words reads most of it.
Immutable: each change returns the next memory and puts the rows it changes.
"""

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from memsluice.envelope.codec import DIMENSIONS, Vector, vector_from_text
from memsluice.gate.detectors.calibration.state import EMPTY, State
from memsluice.gate.detectors.numeric.vector_set import Kept
from memsluice.gate.detectors.numeric.versions import Table
from memsluice.gate.detectors.rarity.covering import STEMS_OF_QUESTION_MAX
from memsluice.gate.detectors.rarity.evidence import COLUMNS, Values
from memsluice.gate.detectors.rarity.habit import Habit
from memsluice.gate.detectors.rarity.principal_shares import Standing
from memsluice.gate.detectors.rarity.stored import Surplus, read
from memsluice.gate.detectors.wording.tokens import Stems
from memsluice.gate.state.kinds import (
    DETECT_CALIBRATION,
    HABIT,
    LANDED,
    QUESTION,
    VALUES,
    EncoderRow,
    LandedRow,
    NamedValues,
    QuestionRow,
)
from memsluice.gate.state.kinds import Values as ValuesRow
from memsluice.gate.state.rows import TenantRows

SAME_COSINE = 0.97
STEMS_OF_ENTRY_MAX = 256
SESSIONS_MAX = 4
EXEMPT = len(COLUMNS)
"""Where it stands behind an entry's values whether look back leaves it alone."""
PARTS = 10_000
"""Values are kept as whole ten-thousandths."""


class KeptQuestion(Struct, frozen=True):
    """A past question: its number, its recall's event id, who asked and in which sessions (tags), its stems."""

    number: int
    event_id: str
    principal: str
    sessions: tuple[str, ...]
    stems: Stems

    @property
    def first(self) -> Stems:
        """The stems that are kept, and that runs are of. What it says beyond them counts only to know a copy by."""
        return self.stems[:STEMS_OF_QUESTION_MAX]


class KeptEntry(Struct, frozen=True):
    """A landed entry: its number, event id, stems, whether look back leaves it alone, and its principal's tag.

    No principal is named where somebody vouched for it, or the row is of a version that kept none.
    """

    number: int
    event_id: str
    stems: Stems
    exempt: bool
    principal: str = ""


class Memory(Struct, frozen=True):
    """Questions and entries with their vectors, oldest first; ``table`` has each entry's :data:`COLUMNS` and EXEMPT."""

    questions: Kept[KeptQuestion]
    entries: Kept[KeptEntry]
    table: Table
    questions_max: int
    entries_max: int
    habit: Habit = field(default_factory=Habit)
    calibration: State = EMPTY
    """What a calibration keeps besides the values: held scores and the level, where the policy asks for them."""
    standing: Standing = field(default_factory=lambda: Standing.of([]))
    """Who wrote each entry."""
    askers: Standing = field(default_factory=lambda: Standing.of([]))
    """Who asked each question."""
    surplus: Surplus = field(default_factory=Surplus)

    @staticmethod
    def empty(questions_max: int, entries_max: int, dimensions: int = DIMENSIONS) -> "Memory":
        """Return the memory of a tenant that did nothing yet; vectors to come have so many ``dimensions``."""
        questions, entries = Kept[KeptQuestion].of((), (), dimensions), Kept[KeptEntry].of((), (), dimensions)
        return Memory(questions, entries, Table.of(np.zeros((0, EXEMPT + 1))), questions_max, entries_max)

    @staticmethod
    def load(rows: Any, tenant: str, questions_max: int, entries_max: int) -> "Memory":
        """Decode a tenant's rows; the youngest ``questions_max`` and ``entries_max`` count."""
        found = read(rows, tenant, questions_max, entries_max)
        questions = [_question(number, row) for number, row in found.questions.items()]
        entries = [_entry(number, row) for number, (row, _) in found.entries.items()]
        values = [
            _with_mark(_values(of), entry) for entry, (_, of) in zip(entries, found.entries.values(), strict=True)
        ]
        asked, landed = found.questions.values(), (row for row, _ in found.entries.values())
        return Memory(
            Kept.of(questions, [vector_from_text(row.vector) for row in asked], found.dimensions),
            Kept.of(entries, [vector_from_text(row.vector) for row in landed], found.dimensions),
            Table.of(np.array(values, np.float64).reshape(-1, EXEMPT + 1)),
            questions_max,
            entries_max,
            standing=Standing.of([entry.principal for entry in entries]),
            askers=Standing.of([question.principal for question in questions]),
            habit=Habit.loaded(found.habit),
            calibration=State.loaded(found.calibration),
            surplus=found.surplus,
        )

    def fits(self, questions_max: int, entries_max: int) -> bool:
        """Whether the memory has these bounds."""
        return (self.questions_max, self.entries_max) == (questions_max, entries_max)

    def anew(self, rows: TenantRows, encoder: EncoderRow) -> "Memory":
        """Return the memory of a tenant whose vectors are another encoder's from now on. Habits stay: words tell them.

        Numbers go on, and rows of the last encoder's are deleted as those that a lower bound leaves over are.
        """
        asked, landed = ([one.number for one in kept] for kept in (self.questions, self.entries))
        own = ((QUESTION, asked), (LANDED, landed), (VALUES, landed))
        left = [(kind, number) for kind, numbers in own for number in sorted({*self.surplus.of(kind), *numbers})]
        rows.delete(DETECT_CALIBRATION, "0")
        fresh = Memory.empty(self.questions_max, self.entries_max, encoder.dimensions)
        return replace(fresh, habit=self.habit, surplus=Surplus.all_of(self.surplus.first, left, encoder.turn))

    def asked(self, rows: TenantRows, new: KeptQuestion, vector: Vector) -> "Memory":
        """Return the memory after one more question. One that nearly repeats it gives it its sessions, and goes."""
        memory = self._reduced(rows)
        out, here = self.questions.twin(vector, SAME_COSINE), new.sessions
        if out is not None:
            others = tuple(name for name in self.questions[out].sessions if name not in here)
            here = (*others, *here)[-SESSIONS_MAX:]
        elif len(self.questions) >= self.questions_max:
            out = self.askers.oldest_of_most()
        number = self.questions[-1].number + 1 if self.questions else self.surplus.first[0]
        new = KeptQuestion(number, new.event_id, new.principal, here, new.first)
        kept, askers = self.questions, self.askers
        if out is not None:
            rows.delete(QUESTION, str(kept[out].number))
            kept, askers = kept.without(out), askers.gone(out)
        rows.put(QUESTION, str(number), _question_row(new, rows.packed(vector)))
        return replace(memory, questions=kept.appended((new, vector)), askers=askers.landed(new.principal))

    def _reduced(self, rows: TenantRows) -> "Memory":
        """Return the memory after some of the rows that were left over are deleted."""
        if self.surplus.told and not self.surplus.rows:
            return self
        return replace(self, surplus=self.surplus.reduced(rows))

    def screened(self, rows: TenantRows, carries_question: bool, principal: str = "") -> "Memory":
        """Return the memory after one more write of a principal (its tag) was screened, whatever became of it."""
        habit = self.habit.screened(carries_question, principal)
        rows.put(HABIT, "0", habit.dumped())
        return replace(self, habit=habit)

    def calibrated(self, rows: TenantRows, state: State) -> "Memory":
        """Return the memory with another state of the calibration."""
        if state is self.calibration:
            return self
        rows.put(DETECT_CALIBRATION, "0", state.dumped())
        return replace(self, calibration=state)

    def landed(self, rows: TenantRows, new: KeptEntry, vector: Vector, values: Values) -> "Memory":
        """Return the memory after one more entry landed as guidance; ``values`` as :data:`COLUMNS`."""
        memory, full = self._reduced(rows), len(self.entries) >= self.entries_max
        if full:
            _delete(rows, self.entries[0])
        number = self.entries[-1].number + 1 if self.entries else self.surplus.first[1]
        new = KeptEntry(number, new.event_id, new.stems[:STEMS_OF_ENTRY_MAX], new.exempt, new.principal)
        rows.put(LANDED, str(number), _entry_row(new, rows.packed(vector)))
        rows.put(VALUES, str(number), _values_row(values))
        return replace(
            memory,
            entries=memory.entries.appended((new, vector), drop=full),
            table=memory.table.appended(_with_mark(values, new), drop=full),
            standing=memory.standing.landed(new.principal, drop=full),
        )

    def gone(self, rows: TenantRows, at: int) -> "Memory":
        """Return the memory without an entry."""
        _delete(rows, self.entries[at])
        entries, table, standing = self.entries.without(at), self.table.without(at), self.standing.gone(at)
        return replace(self, entries=entries, table=table, standing=standing)

    def spared(self, rows: TenantRows, at: int) -> "Memory":
        """Return the memory in which look back leaves an entry alone for good; its values still say what is usual."""
        entry = replace(self.entries[at], exempt=True)
        vector = self.entries.vector(at)
        rows.put(LANDED, str(entry.number), _entry_row(entry, rows.packed(vector)))
        table = self.table.changed(at, _with_mark(self.table[at][:EXEMPT], entry))
        return replace(self, entries=self.entries.changed(at, (entry, vector)), table=table)

    def valued(self, rows: TenantRows, at: int, values: Values) -> "Memory":
        """Return the memory with other values for an entry."""
        entry = self.entries[at]
        rows.put(VALUES, str(entry.number), _values_row(values))
        return replace(self, table=self.table.changed(at, _with_mark(values, entry)))


def _with_mark(values: Sequence[float] | Values, entry: KeptEntry) -> Values:
    marked = np.empty(EXEMPT + 1)
    marked[:EXEMPT], marked[EXEMPT] = values, entry.exempt
    return marked


def _delete(rows: TenantRows, entry: KeptEntry) -> None:
    rows.delete(LANDED, str(entry.number))
    rows.delete(VALUES, str(entry.number))


def _packed(stems: Stems) -> str:
    return base64.b64encode(stems.astype("<u4").tobytes()).decode()


def _unpacked(text: str) -> Stems:
    return np.frombuffer(base64.b64decode(text), "<u4").astype(np.uint32)


def _question_row(question: KeptQuestion, vector: str) -> QuestionRow:
    return QuestionRow(
        event_id=question.event_id,
        principal=question.principal,
        sessions=question.sessions,
        stems=_packed(question.stems),
        vector=vector,
    )


def _question(number: int, row: QuestionRow) -> KeptQuestion:
    return KeptQuestion(number, row.event_id, row.principal, row.sessions, _unpacked(row.stems))


def _entry_row(entry: KeptEntry, vector: str) -> LandedRow:
    return LandedRow(
        event_id=entry.event_id,
        stems=_packed(entry.stems),
        vector=vector,
        exempt=entry.exempt,
        principal=entry.principal,
    )


def _entry(number: int, row: LandedRow) -> KeptEntry:
    return KeptEntry(number, row.event_id, _unpacked(row.stems), row.exempt, row.principal)


def _values_row(values: Values) -> tuple[int, ...]:
    return tuple([round(float(value) * PARTS) for value in values])


def _values(row: ValuesRow) -> list[float]:
    """Return an entry's values; a column that its row is older than is 0."""
    if isinstance(row, NamedValues):
        return [getattr(row, name, 0.0) for name in COLUMNS]
    return [*(value / PARTS for value in row), *(0.0 for _ in COLUMNS[len(row) :])]
