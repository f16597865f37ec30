"""A smoothed recall's runs: an agent answers each from what it was shown, a judge says what the answers are.

Agent and judge are callables, so that any model serves: see :mod:`memsluice.recall.smoothing.chat`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Protocol

from memsluice.recall.reader import VerifiedEntry
from memsluice.recall.recaller import Recalled
from memsluice.recall.smoothing.certificate import Plan
from memsluice.recall.smoothing.voting import Verdict, by_verdict


@dataclass(frozen=True, slots=True)
class Reply:
    """An agent's answer. ``tokens``: of prompt and answer together, where the model says so."""

    text: str
    tokens: int = 0


@dataclass(frozen=True, slots=True)
class Judged:
    """A judge's verdict on an answer."""

    verdict: Verdict
    tokens: int = 0


class Agent(Protocol):
    """Answers a question from memory."""

    def __call__(self, question: str, memory: Recalled, /) -> Reply:
        """Return the answer. What it raises ends the smoothed recall: no run may be left out of the vote."""


class Judge(Protocol):
    """Says of an answer whether it is correct, malicious or neither; it is shown no memory."""

    def __call__(self, question: str, answer: str, /) -> Judged:
        """Return the verdict; what it raises ends the smoothed recall."""


@dataclass(frozen=True, slots=True)
class Run:
    """One run: what it was shown, what was answered, and the verdict on that."""

    shown: tuple[VerifiedEntry, ...]
    answer: str
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Cost:
    """What the runs cost: calls of agent and judge, their tokens as far as told, and seconds."""

    calls: int
    tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Smoothed:
    """What the runs came to. ``verdict``: of more than half of them; None where there is none.

    ``answer`` is the first answer with that verdict, and None where it is malicious or there is none: nobody should be
    handed what the majority was talked into. ``available``: how many strata were in the pool, the certificate's m'.
    """

    plan: Plan
    available: int
    verdict: Verdict | None
    answer: str | None
    runs: tuple[Run, ...]
    cost: Cost
    memory: Recalled
    """What was recalled: the entries that any run was shown, which the recall's event names."""

    def delta(self, hostile: int) -> float:
        """Return how often, at most, so many hostile strata in the pool win the majority, 0 to 1."""
        return self.plan.delta(hostile, self.available)


def run_all(
    question: str,
    memory: Recalled,
    shown: Sequence[tuple[VerifiedEntry, ...]],
    plan: Plan,
    available: int,
    agent: Agent,
    judge: Judge,
    clock: Callable[[], float] = perf_counter,
) -> Smoothed:
    """Have every run answered and judged, one after the other, and return what they come to.

    ``shown`` has the entries of each run, all of them entries of ``memory``; ``clock`` gives seconds.
    """
    began, runs, tokens = clock(), list[Run](), 0
    for entries in shown:
        reply = agent(question, replace(memory, entries=entries))
        judged = judge(question, reply.text)
        tokens += reply.tokens + judged.tokens
        runs.append(Run(entries, reply.text, judged.verdict))
    verdict = by_verdict([run.verdict for run in runs])
    said = next((run.answer for run in runs if run.verdict is verdict), None)
    cost = Cost(2 * len(runs), tokens, clock() - began)
    answer = None if verdict is Verdict.MALICIOUS else said
    return Smoothed(plan, available, verdict, answer, tuple(runs), cost, memory)
