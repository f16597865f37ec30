"""Influence evidence: which of the texts that a model was given had a hand in its answer (leave-one-out, seed 004).

What is written from the answer names those as its parents; under a policy with ``taint: parents`` nothing else that
the session was given taints it. The evidence is of one model and one answer, and it can be wrong: docs/contamination.md
has how often.
"""

from collections.abc import Collection, Sequence

from memsluice.recall.contamination.paths import Model, Prompted, group_influences
from memsluice.recall.contamination.threshold import Tau


def moved(
    model: Model,
    prompted: Prompted,
    question: str,
    entries: Sequence[str],
    answer: Sequence[int],
    tau: Tau,
    *,
    doubted: Collection[int] = (),
) -> tuple[int, ...]:
    """Return the places of the entries that count as having moved the answer, in order.

    ``tau`` is calibrated on influences (nats) of entries that are known to have made an answer: an entry that moved
    this one less than hardly any of them did is left out. As long as nothing is known, all count. Of the ``doubted``
    ones (those that are tainted) all count if leaving them out together moves the answer, since two that say the same
    hide each other. One pass an entry, and two.
    """
    groups = [{at} for at in range(len(entries))] + ([set(doubted)] if doubted else [])
    *each, together = [
        *group_influences(model, prompted, question, entries, answer, groups),
        *([] if doubted else [0.0]),
    ]
    found = {at for at, nats in enumerate(each) if not tau.judge(nats).flagged}
    if doubted and not tau.judge(together).flagged:
        found |= set(doubted)
    return tuple(sorted(found))
