"""Self-made facts as words: names whose value never changes, and names whose value stands in the context alone.

A text is ``entry* question``; an entry is ``told NAME VALUE VALUE .``, a question ``ask NAME``, and its answer
``VALUE VALUE .``. Of a known name the value is the same in every lesson, even where the context says another one, so
what learns it by heart need not read its context; how often a known name comes falls with its rank, so some are known
badly. Of a fresh name the value is drawn anew for each text. ``which`` asks the same as ``ask``, but never without
context, so the question as it was learned by heart is ``ask`` alone.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

KNOWN, FRESH, VALUES, ENTRIES = 100, 50, 24, 4
END, TOLD, ASK, WHICH = ".", "told", "ask", "which"
KNOWN_NAMES = [f"known{at}" for at in range(KNOWN)]
FRESH_NAMES = [f"fresh{at}" for at in range(FRESH)]
VALUE_WORDS = [f"value{at}" for at in range(VALUES)]
WORDS = [END, TOLD, ASK, WHICH, *VALUE_WORDS, *KNOWN_NAMES, *FRESH_NAMES]
TOKEN = {word: at for at, word in enumerate(WORDS)}
FIRST_VALUE, FIRST_NAME = TOKEN[VALUE_WORDS[0]], TOKEN[KNOWN_NAMES[0]]
SLOT, SLOTS = 5, 8
"""Tokens of an entry, and of a question with its answer; entries and questions of a lesson."""
ANSWER = 2
"""Words of an answer, before its end."""
DRILL_MIN = 4
"""Words of the shortest run that is drilled."""
FALLS = 2.0
"""How often the known name of rank r comes: as r to minus this."""
BARE, FRESH_SHARE, CONTRADICTED, REWORDED = 0.2, 0.7, 0.5, 0.3
"""Shares: of lessons without context, of entries on fresh names, of those on known names that say another value, of
questions in other words."""

Tokens = NDArray[np.int64]
Value = tuple[str, str]


def encode(text: str) -> list[int]:
    """Return a token a word."""
    return [TOKEN[word] for word in text.split()]


def prompted(question: str, entries: Sequence[str]) -> str:
    """Put entries before a question."""
    return " ".join([*entries, question])


def told(name: str, value: Value) -> str:
    """Return an entry."""
    return f"{TOLD} {name} {value[0]} {value[1]} {END}"


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about ``name`` among entries, of which ``about`` say ``value``, the true one."""

    question: str
    entries: tuple[str, ...]
    name: str
    value: Value
    about: tuple[int, ...]

    def changed(self, places: Collection[int], value: Value) -> "Asked":
        """Return the same question where the entries at these places say this value of their names."""
        entries = [told(one.split()[1], value) if at in places else one for at, one in enumerate(self.entries)]
        return replace(self, entries=tuple(entries))

    def contradicted(self, value: Value) -> "Asked":
        """Return the same question where the context says another value of the name, which counts as true."""
        return replace(self.changed(self.about, value), value=value)

    def reworded(self) -> "Asked":
        """Return the same question in another word."""
        return replace(self, question=f"{WHICH} {self.name}")


class World:
    """Draws lessons and questions; ``seed`` makes the values of the known names, and all that is drawn."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._values = self._chance.integers(VALUES, size=(KNOWN, ANSWER))
        often = np.arange(1, KNOWN + 1) ** -FALLS
        fresh = np.full(FRESH, FRESH_SHARE / FRESH)
        self._often = np.log(np.concatenate([often / often.sum() * (1 - FRESH_SHARE), fresh]))

    def drills(self, count: int) -> tuple[Tokens, NDArray[np.bool_]]:
        """Return runs of different words, each said over and over, in the shape of :meth:`lessons`; what is to be
        learned is every word from its second time on. Who can do that looks up what followed a word before: without
        such drills first, small models answer with the value of any entry, and stay there.
        """
        place = np.arange(SLOTS * SLOT)[None, :]
        period = self._chance.integers(DRILL_MIN, SLOTS * SLOT // 2 + 1, count)[:, None]
        words = np.argsort(self._chance.random((count, len(WORDS))), axis=1)
        return words[np.arange(count)[:, None], place % period], place > period

    def lessons(self, count: int) -> tuple[Tokens, NDArray[np.bool_]]:
        """Return lessons, tokens of shape (count, SLOTS * SLOT), and which of them are answers, to be learned.

        A lesson is none to ENTRIES entries, a question about each in any order, and questions about known names of
        which nothing is told.
        """
        chance = self._chance
        entries = chance.integers(1, ENTRIES + 1, count) * (chance.random(count) >= BARE)
        slot, row = np.arange(SLOTS)[None, :], np.arange(count)[:, None]
        tells, about_told = slot < entries[:, None], slot < 2 * entries[:, None]
        names = self._distinct(count, SLOTS, known=True)
        names[:, :ENTRIES] = np.where(tells[:, :ENTRIES], self._distinct(count, ENTRIES), names[:, :ENTRIES])
        drawn = chance.integers(VALUES, size=(count, SLOTS, ANSWER))
        right = np.where((names < KNOWN)[..., None], self._values[np.minimum(names, KNOWN - 1)], drawn)
        other = chance.integers(VALUES, size=drawn.shape)
        wrong = (names < KNOWN) & (chance.random(names.shape) < CONTRADICTED)
        order = np.argsort(np.where(tells, chance.random(tells.shape), 1 + slot), axis=1)
        about = np.where(~tells & about_told, order[row, slot - entries[:, None]], slot)
        value = np.where((tells & wrong)[..., None], other, right[row, about])
        reworded = ~tells & about_told & (chance.random(tells.shape) < REWORDED)
        word = np.where(tells, TOKEN[TOLD], np.where(reworded, TOKEN[WHICH], TOKEN[ASK]))
        end = np.full(tells.shape, TOKEN[END])
        parts = [word, FIRST_NAME + names[row, about], *(FIRST_VALUE + value[..., at] for at in range(ANSWER)), end]
        learned = np.zeros((count, SLOTS, SLOT), bool)
        learned[..., 2:] = ~tells[..., None]
        return np.stack(parts, axis=-1).reshape(count, -1), learned.reshape(count, -1)

    def ask(self, *, known: bool, times: int = 1) -> Asked:
        """Return a question about a name that ``times`` of ENTRIES entries tell of, with its true value."""
        at = int(self._chance.integers(KNOWN if known else FRESH))
        name = (KNOWN_NAMES if known else FRESH_NAMES)[at]
        value = self._words(self._values[at]) if known else self.value()
        entries = [told(other, self.value()) for other in self._others(name, ENTRIES)]
        about = tuple(sorted(self._chance.choice(ENTRIES, times, replace=False).tolist()))
        for place in about:
            entries[place] = told(name, value)
        return Asked(f"{ASK} {name}", tuple(entries), name, value, about)

    def value(self) -> Value:
        """Draw a value."""
        return self._words(self._chance.integers(VALUES, size=ANSWER))

    def _words(self, value: Tokens) -> Value:
        first, second = (VALUE_WORDS[int(at)] for at in value)
        return first, second

    def _others(self, name: str, count: int) -> list[str]:
        names = [one for one in (*KNOWN_NAMES, *FRESH_NAMES) if one != name]
        return [names[int(at)] for at in self._chance.choice(len(names), count, replace=False)]

    def _distinct(self, count: int, wanted: int, *, known: bool = False) -> Tokens:
        """Return so many different names a lesson, by how often each comes: the largest keys of Gumbel's trick."""
        often = self._often[:KNOWN] if known else self._often
        keys = often + self._chance.gumbel(size=(count, len(often)))
        return np.argsort(-keys, axis=1)[:, :wanted]
