"""What the detector remembers of a tenant: the questions that were asked, and the entries that landed as guidance.

Both are bounded. Questions that nearly repeat each other are one, and whoever asks most gives way first, so nobody
pushes the others' questions out by asking many. Entries give way in the order they landed; their values are at the same
time the tenant's reference (:mod:`memsluice.gate.detector.calibration`): what was held never enters it, what look back
takes away leaves it.

Rows of kind ``detect``, one JSON object each: ``q<n>`` a question, ``e<n>`` an entry's vector and stems, ``v<n>`` its
values; ``h0`` which of the last screened writes carried a question; ``c0`` held scores and level, where the policy's
calibration has them. They hold embeddings and 32-bit hashes of stems, no
text. Immutable: each change returns the next memory and puts the rows it changes.
"""

import base64
from collections import Counter
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from memsluice.envelope.codec import Vector, row_load, vector_from_text, vector_to_text
from memsluice.gate.calibration.state import EMPTY, State
from memsluice.gate.detector.standing import Standing
from memsluice.gate.detector.text import Stems
from memsluice.gate.detector.vectors import Vectors
from memsluice.gate.rows import TenantRows, row_key

KIND = "detect"
SAME_COSINE = 0.97
STEMS_OF_QUESTION_MAX = 64
STEMS_OF_ENTRY_MAX = 256
SESSIONS_MAX = 4
COLUMNS = ("c", "q", "r", "w", "u", "g")
"""Values of an entry: classifier log-odds, carries a question, repetition, nearness to a question, coverage, and G."""
C, Q, R, W, U, G = range(len(COLUMNS))
HABIT_WRITES = 100
"""Screened writes, held ones too, of which the share that carries a question is known."""
Values = NDArray[np.float64]


def tag(name: str) -> str:
    """Return 12 hex digits that stand for a session or a principal."""
    return sha256(name.encode()).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class Question:
    """A past question: its number, its recall's event id, who asked and in which sessions (tags), its stems."""

    number: int
    event_id: str
    principal: str
    sessions: tuple[str, ...]
    stems: Stems


@dataclass(frozen=True, slots=True)
class Entry:
    """A landed entry: its number, event id, stems, whether look back leaves it alone, and its principal's tag.

    No principal is named where somebody vouched for it, or the row is of a version that kept none.
    """

    number: int
    event_id: str
    stems: Stems
    exempt: bool
    principal: str = ""


@dataclass(frozen=True, slots=True)
class Memory:
    """Questions and entries, oldest first, with their vectors; ``values`` float64 of shape (entries, len(COLUMNS))."""

    questions: tuple[Question, ...]
    question_vectors: Vectors
    entries: tuple[Entry, ...]
    entry_vectors: Vectors
    values: Values
    questions_max: int
    entries_max: int
    habit: str = ""
    """``1`` for each of the last HABIT_WRITES screened writes that carried a question, ``0`` for the others."""
    calibration: State = EMPTY
    """What a calibration keeps besides the values: held scores and the level, where the policy asks for them."""
    standing: Standing = field(default_factory=lambda: Standing.of([]))
    shares: Counter[str] = field(default_factory=Counter)
    """How many of the questions each principal asked, by its tag. Never changed in place."""

    @staticmethod
    def empty(questions_max: int, entries_max: int) -> "Memory":
        """Return the memory of a tenant that did nothing yet."""
        none = np.zeros((0, len(COLUMNS)))
        return Memory((), Vectors.empty(), (), Vectors.empty(), none, questions_max, entries_max)

    @staticmethod
    def load(rows: Any, tenant: str, questions_max: int, entries_max: int) -> "Memory":
        """Decode a tenant's rows; the youngest ``questions_max`` and ``entries_max`` count."""
        found: dict[str, dict[int, Any]] = {"q": {}, "e": {}, "v": {}, "h": {}, "c": {}}
        for key, value in rows.scan(row_key(tenant, KIND), questions_max + 2 * entries_max + 4_096):
            name = key.rsplit(b"\0", 1)[1].decode()
            found[name[0]][int(name[1:])] = row_load(value)
        memory = Memory.empty(questions_max, entries_max)
        asked = sorted(found["q"])[-questions_max:]
        landed = [number for number in sorted(found["e"]) if number in found["v"]][-entries_max:]
        question_vectors, entry_vectors = memory.question_vectors, memory.entry_vectors
        for number in asked:
            question_vectors = question_vectors.appended(vector_from_text(found["q"][number]["v"]))
        for number in landed:
            entry_vectors = entry_vectors.appended(vector_from_text(found["e"][number]["v"]))
        questions = tuple(_question(number, found["q"][number]) for number in asked)
        entries = tuple(_entry(number, found["e"][number]) for number in landed)
        return replace(
            memory,
            standing=Standing.of([entry.principal for entry in entries]),
            questions=questions,
            shares=Counter(question.principal for question in questions),
            question_vectors=question_vectors,
            entries=entries,
            entry_vectors=entry_vectors,
            values=np.array([[found["v"][n][name] for name in COLUMNS] for n in landed]).reshape(-1, len(COLUMNS)),
            habit=found["h"].get(0, {"f": ""})["f"],
            calibration=State.loaded(found["c"].get(0)),
        )

    def fits(self, questions_max: int, entries_max: int) -> bool:
        """Whether the memory has these bounds."""
        return (self.questions_max, self.entries_max) == (questions_max, entries_max)

    def asked(self, rows: TenantRows, new: Question, vector: Vector) -> "Memory":
        """Return the memory after one more question. One that nearly repeats it gives it its sessions, and goes."""
        memory = self
        for nearest, cosine in self.question_vectors.nearest(vector, 1):
            if cosine >= SAME_COSINE:
                old = memory.questions[nearest]
                others = tuple(name for name in old.sessions if name not in new.sessions)
                new = replace(new, sessions=(*others, *new.sessions)[-SESSIONS_MAX:])
                memory = memory._forgotten(rows, nearest)
        if len(memory.questions) >= memory.questions_max:
            memory = memory._forgotten(rows, memory._least_missed())
        number = self.questions[-1].number + 1 if self.questions else 0
        new = replace(new, number=number, stems=new.stems[:STEMS_OF_QUESTION_MAX])
        rows.put(KIND, f"q{number}", _question_row(new, vector))
        vectors, shares = memory.question_vectors.appended(vector), _counted(memory.shares, new.principal, 1)
        return replace(memory, questions=(*memory.questions, new), question_vectors=vectors, shares=shares)

    def _forgotten(self, rows: TenantRows, at: int) -> "Memory":
        rows.delete(KIND, f"q{self.questions[at].number}")
        kept = (*self.questions[:at], *self.questions[at + 1 :])
        shares = _counted(self.shares, self.questions[at].principal, -1)
        return replace(self, questions=kept, question_vectors=self.question_vectors.without(at), shares=shares)

    def _least_missed(self) -> int:
        """Return the position of the oldest question of the principal that has most of them."""
        most = max(self.shares.values())
        return next(at for at, question in enumerate(self.questions) if self.shares[question.principal] == most)

    def screened(self, rows: TenantRows, carries_question: bool) -> "Memory":
        """Return the memory after one more write was screened, whatever became of it."""
        habit = (self.habit + "01"[carries_question])[-HABIT_WRITES:]
        rows.put(KIND, "h0", {"f": habit})
        return replace(self, habit=habit)

    def calibrated(self, rows: TenantRows, state: State) -> "Memory":
        """Return the memory with another state of the calibration."""
        if state is self.calibration:
            return self
        rows.put(KIND, "c0", state.dumped())
        return replace(self, calibration=state)

    def landed(self, rows: TenantRows, new: Entry, vector: Vector, values: Values) -> "Memory":
        """Return the memory after one more entry landed as guidance; ``values`` as :data:`COLUMNS`."""
        memory = self
        if len(memory.entries) >= memory.entries_max:
            memory = memory.gone(rows, 0)
        number = self.entries[-1].number + 1 if self.entries else 0
        new = replace(new, number=number, stems=new.stems[:STEMS_OF_ENTRY_MAX])
        rows.put(KIND, f"e{number}", _entry_row(new, vector))
        rows.put(KIND, f"v{number}", _values_row(values))
        return replace(
            memory,
            entries=(*memory.entries, new),
            entry_vectors=memory.entry_vectors.appended(vector),
            values=np.concatenate((memory.values, values[None, :])),
            standing=memory.standing.landed(new.principal),
        )

    def gone(self, rows: TenantRows, at: int) -> "Memory":
        """Return the memory without an entry."""
        rows.delete(KIND, f"e{self.entries[at].number}")
        rows.delete(KIND, f"v{self.entries[at].number}")
        return replace(
            self,
            entries=(*self.entries[:at], *self.entries[at + 1 :]),
            entry_vectors=self.entry_vectors.without(at),
            values=np.concatenate((self.values[:at], self.values[at + 1 :])),
            standing=self.standing.gone(at),
        )

    def valued(self, rows: TenantRows, at: int, values: Values) -> "Memory":
        """Return the memory with other values for an entry."""
        rows.put(KIND, f"v{self.entries[at].number}", _values_row(values))
        changed = self.values.copy()
        changed[at] = values
        return replace(self, values=changed)


def _counted(shares: Counter[str], name: str, by: int) -> Counter[str]:
    counted = shares.copy()
    counted[name] += by
    if not counted[name]:
        del counted[name]
    return counted


def _packed(stems: Stems) -> str:
    return base64.b64encode(stems.astype("<u4").tobytes()).decode()


def _unpacked(text: str) -> Stems:
    return np.frombuffer(base64.b64decode(text), "<u4").astype(np.uint32)


def _question_row(question: Question, vector: Vector) -> dict[str, Any]:
    return {
        "id": question.event_id,
        "p": question.principal,
        "s": list(question.sessions),
        "t": _packed(question.stems),
        "v": vector_to_text(vector),
    }


def _question(number: int, row: Any) -> Question:
    return Question(number, row["id"], row["p"], tuple(row["s"]), _unpacked(row["t"]))


def _entry_row(entry: Entry, vector: Vector) -> dict[str, Any]:
    return {
        "id": entry.event_id,
        "t": _packed(entry.stems),
        "v": vector_to_text(vector),
        "k": entry.exempt,
        "p": entry.principal,
    }


def _entry(number: int, row: Any) -> Entry:
    return Entry(number, row["id"], _unpacked(row["t"]), row["k"], row.get("p", ""))


def _values_row(values: Values) -> dict[str, float]:
    return {name: round(float(value), 4) for name, value in zip(COLUMNS, values, strict=True)}
