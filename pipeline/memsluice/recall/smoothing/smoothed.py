"""A smoothed recall from question to answer: recall a pool, draw each run's share, publish what will be shown, ask."""

from collections.abc import Sequence
from enum import StrEnum
from itertools import chain
from random import Random, SystemRandom

from memsluice.client import arguments
from memsluice.errors import InvalidArgument
from memsluice.events.limits import RETURNED_MAX
from memsluice.recall.reader import VerifiedEntry
from memsluice.recall.recaller import Publish, Question, Recaller
from memsluice.recall.smoothing.certificate import Plan
from memsluice.recall.smoothing.drawing import by_entry, drawn
from memsluice.recall.smoothing.runs import Agent, Judge, Smoothed, run_all
from memsluice.recall.wanted import Nearest, NearestAuthors, by_author


class Stratum(StrEnum):
    """What is drawn as a whole: an ENTRY (seed 003), or all entries of one AUTHOR."""

    ENTRY = "entry"
    AUTHOR = "author"


def smoothed(
    recaller: Recaller,
    question: Question,
    plan: Plan,
    agent: Agent,
    judge: Judge,
    *,
    stratum: Stratum = Stratum.AUTHOR,
    each_max: int = 1,
    chance: Random | None = None,
    publish: Publish | None = None,
) -> Smoothed:
    """Ask a question by ``plan.runs`` runs, each on its own draw of the memory recalled, and return the majority's.

    ``question.k`` is not used. ``each_max``: entries of one author, where authors are drawn. ``chance`` draws; None is
    the system's, which nobody foresees. ``publish`` as for :meth:`Recaller.ask`: the recall's event names every entry
    that any run is shown, and nothing is handed to the agent before it is acknowledged.

    Raises InvalidArgument where more than RETURNED_MAX entries could be shown, and as :meth:`Recaller.recall` does.
    """
    arguments.whole("argument each_max", each_max, 1, RETURNED_MAX)
    each_max = each_max if stratum is Stratum.AUTHOR else 1
    most = min(plan.pool, plan.runs * plan.shown) * each_max
    if most > RETURNED_MAX:
        raise InvalidArgument(f"the runs could be shown {most} entries: a recall's event names {RETURNED_MAX} at most")
    source, runs, available = chance or SystemRandom(), list[tuple[VerifiedEntry, ...]](), 0

    def narrow(kept: Sequence[VerifiedEntry]) -> Sequence[VerifiedEntry]:
        nonlocal available
        strata = by_entry(kept) if stratum is Stratum.ENTRY else by_author(kept, each_max)
        available = len(strata)
        runs.extend(drawn(strata, plan, source))
        shown = {entry.admission.object_id for entry in chain.from_iterable(runs)}
        return [entry for entry in kept if entry.admission.object_id in shown]

    wanted = Nearest(plan.pool) if stratum is Stratum.ENTRY else NearestAuthors(plan.pool, each_max)
    memory = recaller.ask(question, publish, wanted=wanted, narrow=narrow)
    return run_all(question.text, memory, runs, plan, available, agent, judge)
