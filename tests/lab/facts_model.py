"""A model of the world of facts that is made of rules: what it has read most of wins over what it remembers, or not."""

from collections.abc import Mapping, Sequence

import numpy as np

from memsluice.recall.contamination.divergence import LogProbabilities
from memsluice_lab.facts.world import END, TOKEN, TOLD, WORDS

SURE = 0.98


class Ruled:
    """Answers from ``memory`` where it has a name in it, else with the last value that the prompt tells of it.

    It is SURE of the token that it says; without anything to say, all values are alike.
    """

    def __init__(self, memory: Mapping[str, tuple[str, str]]) -> None:
        self.memory = memory
        self.asked = 0

    def answer(self, prompt: str, length: int) -> Sequence[int]:
        """Return the tokens of the value."""
        return [TOKEN[word] for word in self._value(prompt) or ()][:length]

    def log_probabilities(self, prompt: str, answer: Sequence[int]) -> LogProbabilities:
        """Return the logarithms along an answer."""
        self.asked += 1
        value = self._value(prompt)
        found = np.full((len(answer), len(WORDS)), 1 / len(WORDS))
        if value is not None:
            found[:] = (1 - SURE) / (len(WORDS) - 1)
            for at, word in enumerate((*value, END)[: len(answer)]):
                found[at, TOKEN[word]] = SURE
        return np.log(found)

    def _value(self, prompt: str) -> tuple[str, str] | None:
        words = prompt.split()
        name = words[-1]
        told = [
            (words[at + 2], words[at + 3])
            for at in range(len(words) - 3)
            if words[at] == TOLD and words[at + 1] == name
        ]
        return self.memory.get(name) or (told[-1] if told else None)
