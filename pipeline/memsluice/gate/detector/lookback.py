"""Look back: a question that comes later shows what had landed in a new light.

A recall is held against the entries nearest to it, at most CANDIDATES of them; whatever now shows the shape of an
attack on that very question is to leave. The same evidence and the same threshold decide as for a write. An entry with
good lineage, an operator's, one that a reviewer let in, and one that somebody vouched for since it landed (by promoting
it, lifting its label, renewing it) are never looked at again: they take no candidate's place and none of the budget.

A principal's recalls may move so many entries a day and no more: beyond, what would have moved is reported and stays.
Whoever copies honest entries into questions moves nothing by it: a question that says all that an entry says covers
nothing and comes near to nothing, one that tells nothing new moves nothing, and a long quotation moves another's entry
only where the asker is one of the tenant's main ones (more than a quarter of the kept questions).
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

from memsluice.envelope.codec import Vector
from memsluice.gate.detector.memory import Entry, G, Memory, Question
from memsluice.gate.detector.screen import CANDIDATES, Evidence, Seen, holds, nearer, weigh
from memsluice.gate.detector.standing import QUARTER
from memsluice.gate.detector.text import Reading, longest_run
from memsluice.gate.policy import DetectPolicy
from memsluice.gate.rows import TenantRows

LOOKED_AT_MAX = 4 * CANDIDATES
QUOTE_WORDS = 12
"""Words in a row that a question shares with an entry by quoting it: hardly anybody asks in so many of its words."""


@dataclass(frozen=True, slots=True)
class Moved:
    """One landed entry that a recall showed to be an attack, and why."""

    entry: Entry
    evidence: Evidence


def look_back(
    memory: Memory,
    rows: TenantRows,
    question: Question,
    vector: Vector,
    policy: DetectPolicy,
    allowed: int,
    vouched: Callable[[str], bool] = lambda _: False,
    protected: Callable[[str], bool] = lambda _: False,
) -> tuple[Memory, list[Moved], list[Moved]]:
    """Return the memory, what is to leave (at most ``allowed``), and what would have left beyond that.

    ``vouched`` says of an event id whether somebody vouched for the entry since it landed; ``protected`` whether its
    key is: it is reported among the last, and stays.
    """
    moved: list[Moved] = []
    flagged: list[Moved] = []
    left: list[int] = []
    near = memory.entry_vectors.nearest(vector, LOOKED_AT_MAX)
    entries = memory.entries
    fit = (one for one in near if not (entries[one[0]].exempt or vouched(entries[one[0]].event_id)))
    for place, cosine in list(islice(fit, CANDIDATES)):
        at = place - sum(gone < place for gone in left)
        entry, values = memory.entries[at], memory.values[at]
        text = Reading(entry.stems)
        now = nearer(seen := Seen(values, entry.stems, exempt=False), question, cosine, text)
        if now is seen:
            continue
        evidence = weigh(now.values, memory, policy, without=at)
        now.values[G] = evidence.total
        if not holds(evidence, policy):
            memory = memory.valued(rows, at, now.values)
        elif holds(weigh(values, memory, policy, without=at), policy):
            continue  # it is not the question that tells; as below
        elif len(moved) < allowed and not (protected(entry.event_id) or _quotes(memory, entry, question, text)):
            moved.append(Moved(entry, evidence))
            memory = memory.gone(rows, at)
            left.append(place)
        else:  # its values stay as they were: what is only reported must not make the like of it usual
            flagged.append(Moved(entry, evidence))
    return memory, moved, flagged


def _quotes(memory: Memory, entry: Entry, question: Question, text: Reading) -> bool:
    """Whether one of the principals that ask little repeats so much of another's entry that it seems copied."""
    if entry.principal == question.principal or memory.shares[question.principal] > QUARTER * len(memory.questions):
        return False
    return longest_run(question.stems, text.where)[0] >= QUOTE_WORDS
