"""Influence evidence: which of the texts that a model was given had a hand in its answer (leave-one-out, seed 004).

It is of one model and one answer, and it errs: docs/contamination.md has how often, and why the gate has no taint scope
that rests on it. A platform may declare what counts as the parents of what it writes from the answer.
"""

from collections.abc import Collection, Sequence

from memsluice.gate.detectors.calibration.base import Phase
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

    ``tau`` is calibrated on the negatives of the influences (nats) of entries that are known to have had no hand in an
    answer (:func:`idle`): what moved this one more than hardly any of them did counts, so alpha is the share of such
    entries that count all the same. As long as too few are known, all count. Of the ``doubted`` ones (those that are
    tainted) all count if leaving them out together moves the answer, since two that say the same hide each other. One
    pass an entry, and two.
    """
    groups = [{at} for at in range(len(entries))] + ([set(doubted)] if doubted else [])
    found = group_influences(model, prompted, question, entries, answer, groups)
    counted = {at for group, nats in zip(groups, found, strict=True) if _counts(tau, nats) for at in group}
    return tuple(sorted(counted))


def idle(tau: Tau, entry_id: str, nats: float) -> Tau:
    """Return the threshold after one more influence of an entry that had no hand in an answer."""
    return tau.clean(entry_id, -nats)


def _counts(tau: Tau, nats: float) -> bool:
    judged = tau.judge(-nats)
    return judged.flagged or judged.phase in (Phase.COLD, Phase.WARMING)
