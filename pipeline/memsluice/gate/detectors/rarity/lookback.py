"""Look back: a question that comes later shows what had landed in a new light.

A recall is held against the entries nearest to it, at most CANDIDATES of them; whatever now shows the shape of an
attack on that very question is to leave. The same evidence and the same threshold decide as for a write. An entry with
good lineage, an operator's, a verified user's, one that a reviewer let in, and one that somebody vouched for since it
landed (by promoting it, lifting its label, renewing it) are never looked at again, nor is what landed where the
policy's ``detect.reach`` did not hold: they take no candidate's place and none of the budget. Nor does what lies
nowhere any more: it is not moved, and what was withdrawn leaves the reference. The budget is that of the tier that an
entry has.

Others' entries take at most half of the places, since none of them reaches the asker until somebody promotes it, and
one principal's a quarter (:mod:`memsluice.gate.detectors.rarity.candidate_quota`).

A principal's recalls may move so many entries a day and no more: beyond, what would have moved is reported and stays.
Whoever copies honest entries into questions moves nothing by it: a question that says all that an entry says covers
nothing and comes near to nothing, one that tells nothing new moves nothing, and a long quotation moves another's entry
only where the asker is one of the tenant's main ones (more than a quarter of the kept questions).
"""

from collections.abc import Callable
from enum import Enum
from functools import partial

from msgspec import Struct

from memsluice.envelope.codec import Vector
from memsluice.events.models import Tier
from memsluice.gate.detectors.numeric.compiled import FOUR, rounded
from memsluice.gate.detectors.numeric.versions import Numbers
from memsluice.gate.detectors.rarity.candidate_quota import CANDIDATES, Near, fill
from memsluice.gate.detectors.rarity.covering import longest_run, one_behind_another, tells
from memsluice.gate.detectors.rarity.evidence import G, U, W
from memsluice.gate.detectors.rarity.memory import EXEMPT, KeptEntry, KeptQuestion, Memory
from memsluice.gate.detectors.rarity.screen import Asked, Evidence, Seen, holds, nearer, weigh
from memsluice.gate.policy.model import DetectPolicy
from memsluice.gate.state.rows import TenantRows

QUOTE_WORDS = 12
"""Words in a row that a question shares with an entry by quoting it: hardly anybody asks in so many of its words."""
COVERED_GAIN = 0.5
"""What a question adds to an entry that has the whole of it, and comes near to nothing."""
SPARED_MAX = 2
"""Entries that lie nowhere any more and are marked so by one recall: each costs a row of up to 4 KiB."""


class Fate(Enum):
    """What became of an entry since it landed: OVER if it expired or was replaced, TAKEN if it was withdrawn.

    PROTECTED lies there and stays: no question takes out what an operator protected (Theorem 1, Part I).
    """

    LIES = "lies"
    PROTECTED = "protected"
    VOUCHED = "vouched"
    OVER = "over"
    TAKEN = "taken"


LYING = (Fate.LIES, Fate.PROTECTED)


class Moved(Struct, frozen=True):
    """One landed entry that a recall showed to be an attack, and why.

    One stays that is ``quoted`` at length, or ``guarded``: protected.
    """

    entry: KeptEntry
    evidence: Evidence
    quoted: bool = False
    guarded: bool = False


def look_back(
    memory: Memory,
    rows: TenantRows,
    question: KeptQuestion,
    vector: Vector,
    policy: DetectPolicy,
    allowed: int,
    fate: Callable[[str], Fate] = lambda _: Fate.LIES,
    tier_of: Callable[[str], Tier | None] = lambda _: None,
) -> tuple[Memory, list[Moved], list[Moved]]:
    """Return the memory, what is to leave (at most ``allowed``), and what would have left but stays.

    ``fate`` says of an event id what became of the entry; it is asked at most LOOKED_AT_MAX times. ``tier_of`` says
    which tier it has.
    """
    moved: list[Moved] = []
    flagged: list[Moved] = []
    near, fates = _near(memory, question, vector, fate)
    told = _told(memory, question, near)
    memory, left = _without_the_gone(memory, rows, fates)
    for place, cosine in told:
        at = place - sum(gone < place for gone in left)
        entry, values = memory.entries[at], memory.table[at][:EXEMPT]
        now = nearer(Seen(values, entry.stems, exempt=False), Asked.of((question,)), cosine)
        again = partial(weigh, memory=memory, policy=policy, tier=tier_of(entry.event_id), without=at)
        evidence = again(now.values)
        now.values[G] = evidence.total
        if not holds(evidence, policy):
            memory = memory.valued(rows, at, now.values)
            continue
        if not _tells(evidence, again(values), policy):
            continue  # its values stay, as below
        guarded, quoted = fates[place] is Fate.PROTECTED, _quotes(memory, entry, question)
        if guarded or quoted or len(moved) >= allowed:
            flagged.append(Moved(entry, evidence, quoted, guarded))  # its values stay: else the like became usual
            continue
        moved.append(Moved(entry, evidence))
        memory = memory.gone(rows, at)
        left.append(place)
    return memory, moved, flagged


def _near(
    memory: Memory, question: KeptQuestion, vector: Vector, fate: Callable[[str], Fate]
) -> tuple[Near, dict[int, Fate]]:
    """Return the candidates, and what became of every entry that was asked about."""
    entries, fates = memory.entries, dict[int, Fate]()

    def fit(at: int) -> bool:
        fates[at] = fate(entries[at].event_id)
        return fates[at] in LYING

    others, exempt = memory.standing.others(question.principal), memory.table.column(EXEMPT) > 0
    return fill(entries, vector, others, out=exempt, fit=fit, limited_max=CANDIDATES // 2), fates


def _told(memory: Memory, question: KeptQuestion, near: Near) -> list[tuple[int, Numbers]]:
    """Return those of the candidates that the question tells anything new of, of most nothing; and each one's cosine,
    shape (1,).
    """
    places, cosines = near
    if not len(places):
        return []
    texts, ends = one_behind_another([memory.entries[at].stems for at in places.tolist()])
    known = memory.table.among(places)
    some = tells(texts, ends, question.stems, cosines, known[:, U], known[:, W]).nonzero()[0].tolist()
    return [(int(places[at]), cosines[at : at + 1]) for at in some]


def _without_the_gone(memory: Memory, rows: TenantRows, fates: dict[int, Fate]) -> tuple[Memory, list[int]]:
    """Return the memory without what was withdrawn, and where that was; some of what is over is marked as spared."""
    for at in [at for at, became in fates.items() if became is Fate.OVER][:SPARED_MAX]:
        memory = memory.spared(rows, at)
    taken = sorted((at for at, became in fates.items() if became is Fate.TAKEN), reverse=True)
    for at in taken:
        memory = memory.gone(rows, at)
    return memory, taken


def _tells(now: Evidence, before: Evidence, policy: DetectPolicy) -> bool:
    """Whether it is the question that tells: without it the entry would pass today, or it is enough by itself.

    An entry that a changed reference alone would hold stays: it was judged when it was written. But one that carries a
    question, and landed while that said nothing (in a new tenant), goes by the question that it covers.
    """
    enough = COVERED_GAIN if before.question else policy.threshold
    return not holds(before, policy) or rounded(now.total - before.total, FOUR) >= enough


def _quotes(memory: Memory, entry: KeptEntry, question: KeptQuestion) -> bool:
    """Whether one of the principals that ask little repeats so much of another's entry that it seems copied."""
    if entry.principal == question.principal or memory.askers.much(question.principal):
        return False
    return longest_run(question.first, entry.stems)[0] >= QUOTE_WORDS
