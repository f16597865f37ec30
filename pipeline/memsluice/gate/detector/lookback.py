"""Look back: a question that comes later shows what had landed in a new light.

A recall is held against the entries nearest to it, at most CANDIDATES of them; whatever now shows the shape of an
attack on that very question is to leave. The same evidence and the same threshold decide as for a write. An entry with
good lineage, an operator's, and one that a reviewer let in are never looked at again.

A principal's recalls may move so many entries a day and no more: beyond, what would have moved is reported and stays.
Somebody who asks questions copied from honest entries moves nothing: a text that says no more than the question is
nearness to nothing (see ``UNSAID_MIN``).
"""

from dataclasses import dataclass

from memsluice.envelope.codec import Vector
from memsluice.gate.detector.memory import Entry, G, Memory, Question
from memsluice.gate.detector.screen import CANDIDATES, Evidence, Seen, holds, nearer, weigh
from memsluice.gate.detector.text import places
from memsluice.gate.policy import DetectPolicy
from memsluice.gate.rows import TenantRows

LOOKED_AT_MAX = 4 * CANDIDATES


@dataclass(frozen=True, slots=True)
class Moved:
    """One landed entry that a recall showed to be an attack, and why."""

    entry: Entry
    evidence: Evidence


def look_back(
    memory: Memory, rows: TenantRows, question: Question, vector: Vector, policy: DetectPolicy, allowed: int
) -> tuple[Memory, list[Moved], list[Moved]]:
    """Return the memory, what is to leave (at most ``allowed``), and what would have left beyond that."""
    moved: list[Moved] = []
    flagged: list[Moved] = []
    if not memory.entries:
        return memory, moved, flagged
    cosines = memory.entry_vectors.cosines(vector)
    order = sorted(range(len(cosines)), key=lambda at: (-cosines[at], -at))[:LOOKED_AT_MAX]
    numbers = [memory.entries[at].number for at in order if not memory.entries[at].exempt][:CANDIDATES]
    near = {memory.entries[at].number: float(cosines[at]) for at in order}
    for number in numbers:
        at = next(at for at, entry in enumerate(memory.entries) if entry.number == number)
        entry, values = memory.entries[at], memory.values[at]
        seen = Seen(values, entry.stems, exempt=False)
        now = nearer(seen, question, near[number], places(entry.stems))
        if now is seen:
            continue
        evidence = weigh(now.values, memory, policy.window, without=at, signals=policy.signals)
        now.values[G] = evidence.total
        if holds(evidence, policy):
            if len(moved) < allowed:
                moved.append(Moved(entry, evidence))
                memory = memory.gone(rows, at)
                continue
            flagged.append(Moved(entry, evidence))
        memory = memory.valued(rows, at, now.values)
    return memory, moved, flagged
