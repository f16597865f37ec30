"""The two paths of seed 004, along one answer: the same question with what was recalled, and without it.

And what each entry by itself did: the same answer with all entries but one (leave-one-out). An entry that did not move
the answer is no evidence that whoever wrote it had a hand in what was said.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from memsluice.recall.contamination.divergence import LogProbabilities, score

LENGTH = 64
"""T, the tokens of an answer that are looked at."""


class Model(Protocol):
    """A causal language model."""

    def answer(self, prompt: str, length: int) -> Sequence[int]:
        """Return the tokens of the likeliest answer to a prompt, ``length`` at most, decoded greedily."""

    def log_probabilities(self, prompt: str, answer: Sequence[int]) -> LogProbabilities:
        """Return the logarithms of the next token's probabilities at each position of an answer, shape (T, V)."""


class Prompted(Protocol):
    """Puts a question and entries into one prompt."""

    def __call__(self, question: str, entries: Sequence[str], /) -> str:
        """Return the prompt; without entries it is the question's own."""


@dataclass(frozen=True, slots=True)
class Compared:
    """What the two paths came to: the answer's tokens, and Z in nats."""

    answer: tuple[int, ...]
    score: float


def compare(
    model: Model, prompted: Prompted, question: str, entries: Sequence[str], *, length: int = LENGTH
) -> Compared:
    """Answer with the entries, and return how far the answer's distributions lie from those without.

    Two passes over the whole answer more than answering takes: a model need not give the distributions as it answers.
    """
    prompt = prompted(question, entries)
    answer = tuple(model.answer(prompt, length))
    rag, para = (model.log_probabilities(one, answer) for one in (prompt, prompted(question, ())))
    return Compared(answer, score(rag, para))


def influences(
    model: Model, prompted: Prompted, question: str, entries: Sequence[str], answer: Sequence[int]
) -> list[float]:
    """Return, for each entry, how far the answer's distributions move when it alone is left out: KL of all to the
    others, in nats, summed over the answer. One pass an entry, and one."""
    groups = [{at} for at in range(len(entries))]
    return group_influences(model, prompted, question, entries, answer, groups)


def group_influences(
    model: Model,
    prompted: Prompted,
    question: str,
    entries: Sequence[str],
    answer: Sequence[int],
    groups: Sequence[Collection[int]],
) -> list[float]:
    """Return the same for entries that are left out together, each group by the places of its entries: of two that say
    the same neither moves the answer by itself. One pass a group, and one."""
    whole = model.log_probabilities(prompted(question, entries), answer)
    found = []
    for group in groups:
        others = [entry for at, entry in enumerate(entries) if at not in group]
        found.append(score(whole, model.log_probabilities(prompted(question, others), answer)))
    return found
