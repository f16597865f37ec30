"""Self-made facts as tokens: names that always have the same value, and names whose value stands in the context alone.

A prompt is ``entry* question``; an entry is ``name attribute value .``, a question ``? name attribute =``, an answer
``value .``. Of a name known by heart the value never changes, so a model need not read its context; of a fresh one it
is drawn anew each time. A paraphrase asks by another word for the attribute, which the facts learned by heart without
context never had.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

KNOWN, FRESH, VALUES, ENTRIES = 120, 120, 40, 5
PAD, END, ASK, IS = 0, 1, 2, 3
ATTRIBUTE, PARAPHRASE = 4, 5
FIRST_VALUE = 6
FIRST_NAME = FIRST_VALUE + VALUES
VOCABULARY = FIRST_NAME + KNOWN + FRESH
LENGTH_MAX = 4 * ENTRIES + 4 + 2
ANSWER = 2
"""Tokens of an answer."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A question with its entries; ``about`` is the entry that answers it, None where none does."""

    entries: tuple[tuple[int, ...], ...]
    question: tuple[int, ...]
    value: int
    about: int | None

    def tokens(self, *, context: bool = True, without: int | None = None) -> list[int]:
        """Return the prompt, with its entries or without, or without one of them."""
        kept = [entry for at, entry in enumerate(self.entries) if context and at != without]
        return [token for entry in kept for token in entry] + list(self.question)


class World:
    """Draws prompts; ``seed`` makes the values that are known by heart, and all that is drawn."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._values = self._chance.integers(VALUES, size=KNOWN) + FIRST_VALUE

    def prompt(self, *, known: bool, entries: int = ENTRIES, paraphrase: bool = False, told: bool = True) -> Prompt:
        """Return a question about a name, among so many entries, one of which answers it if ``told``."""
        name, value = self._fact(known=known)
        some = [self._entry() for _ in range(entries)]
        about = None
        if told and entries:
            about = int(self._chance.integers(entries))
            some[about] = (name, ATTRIBUTE, value, END)
        return Prompt(tuple(some), (ASK, name, PARAPHRASE if paraphrase else ATTRIBUTE, IS), value, about)

    def lesson(self) -> tuple[list[int], int]:
        """Return a prompt with its answer, and where the answer begins: half about what is known by heart."""
        known = bool(self._chance.random() < 0.5)
        bare = known and self._chance.random() < 0.5
        paraphrase = not bare and bool(self._chance.random() < 0.3)
        told = not known or bool(self._chance.random() < 0.7)
        entries = 0 if bare else int(self._chance.integers(1, ENTRIES + 1))
        one = self.prompt(known=known, entries=entries, paraphrase=paraphrase, told=told)
        before = one.tokens()
        return [*before, one.value, END], len(before)

    def lessons(self, count: int) -> tuple[Sequence[Sequence[int]], Sequence[int]]:
        """Return so many lessons, and where their answers begin."""
        made = [self.lesson() for _ in range(count)]
        return [tokens for tokens, _ in made], [begin for _, begin in made]

    def _fact(self, *, known: bool) -> tuple[int, int]:
        if known:
            at = int(self._chance.integers(KNOWN))
            return FIRST_NAME + at, int(self._values[at])
        name = FIRST_NAME + KNOWN + int(self._chance.integers(FRESH))
        return name, FIRST_VALUE + int(self._chance.integers(VALUES))

    def _entry(self) -> tuple[int, ...]:
        name, value = self._fact(known=bool(self._chance.random() < 0.5))
        return (name, ATTRIBUTE, value, END)
