"""Models around a model: one that remembers what it was asked, and one whose logits are noisy (seed 004, Table IV)."""

from collections.abc import Callable, Sequence

import numpy as np

from memsluice.recall.contamination.divergence import LogProbabilities
from memsluice.recall.contamination.paths import Model

Noise = Callable[[LogProbabilities, np.random.Generator], LogProbabilities]
LEAST = 1e-9
"""Probability that a noisy softmax leaves a token at least: below 0 there is none, and a divergence needs some."""


class Kept:
    """Asks the model once for each prompt and answer."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._answers: dict[tuple[str, int], Sequence[int]] = {}
        self._logs: dict[tuple[str, tuple[int, ...]], LogProbabilities] = {}

    def answer(self, prompt: str, length: int) -> Sequence[int]:
        """Return the model's answer."""
        if (prompt, length) not in self._answers:
            self._answers[prompt, length] = self._model.answer(prompt, length)
        return self._answers[prompt, length]

    def log_probabilities(self, prompt: str, answer: Sequence[int]) -> LogProbabilities:
        """Return the model's log-probabilities, shape (T, V)."""
        asked = (prompt, tuple(answer))
        if asked not in self._logs:
            self._logs[asked] = self._model.log_probabilities(prompt, answer)
        return self._logs[asked]


class Noisy:
    """The model's answers, and its distributions with noise, drawn anew each time."""

    def __init__(self, model: Model, noise: Noise, seed: int) -> None:
        self._model, self._noise, self._chance = model, noise, np.random.default_rng(seed)

    def answer(self, prompt: str, length: int) -> Sequence[int]:
        """Return the model's answer."""
        return self._model.answer(prompt, length)

    def log_probabilities(self, prompt: str, answer: Sequence[int]) -> LogProbabilities:
        """Return log-probabilities with noise, shape (T, V), rows of distributions."""
        return self._noise(self._model.log_probabilities(prompt, answer), self._chance)


def on_logits(sigma: float) -> Noise:
    """Return Gaussian noise of this deviation on the logits, as Table IV's title has it."""

    def noise(logs: LogProbabilities, chance: np.random.Generator) -> LogProbabilities:
        moved = logs + chance.normal(0, sigma, logs.shape)
        return np.asarray(moved - np.logaddexp.reduce(moved, axis=1, keepdims=True))

    return noise


def on_probabilities(sigma: float) -> Noise:
    """Return Gaussian noise of this deviation on the softmax's outputs, as the text beside Table IV has it."""

    def noise(logs: LogProbabilities, chance: np.random.Generator) -> LogProbabilities:
        moved = np.maximum(np.exp(logs) + chance.normal(0, sigma, logs.shape), LEAST)
        return np.asarray(np.log(moved / moved.sum(axis=1, keepdims=True)))

    return noise
