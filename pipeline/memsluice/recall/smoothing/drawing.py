"""What each run of a smoothed recall is shown: strata, drawn uniformly without replacement, anew for each run.

A stratum is one entry (seed 003), or all that one author wrote (ours). One attacker can write many entries, so what the
paper's certificate calls t is up to him; authors are identities that the registry gave out, and a store whose entries
are each principal's own until somebody promotes them bounds how many of them can reach a question at all. Drawn by
author, t counts *colluding principals*, whatever each of them wrote: entries that agree with each other, which would
undo a draw of entries, cost nothing more than one.

The bound holds by the same argument. Strata are disjoint, which of them are in the pool is settled before anything is
drawn, and what a run is shown of a stratum depends on that stratum alone. So a run that draws none of t hostile strata
is shown nothing that a hostile author wrote, and it draws none with the probability C(m - t, k) / C(m, k).
"""

from collections.abc import Iterable, Sequence
from random import Random
from typing import TypeVar

from memsluice.recall.smoothing.certificate import Plan

Entry = TypeVar("Entry")
Strata = Sequence[tuple[Entry, ...]]


def by_entry(entries: Iterable[Entry]) -> list[tuple[Entry, ...]]:
    """Return each entry as a stratum of its own."""
    return [(entry,) for entry in entries]


def drawn(strata: Strata[Entry], plan: Plan, chance: Random) -> list[tuple[Entry, ...]]:
    """Return what each of the plan's runs is shown of the first ``plan.pool`` strata, in their order.

    ``chance`` must be unforeseeable where it matters: :class:`random.SystemRandom`.
    """
    pool = strata[: plan.pool]
    shown = min(plan.shown, len(pool))
    draws = (sorted(chance.sample(range(len(pool)), shown)) for _ in range(plan.runs))
    return [tuple(entry for at in draw for entry in pool[at]) for draw in draws]
