"""Compound exposure over sessions (seed 000, Appendix S, Table 19): what single hits come to while a memory is used.

``P(compromise in N sessions) = 1 - (1 - ASR-R)^(N q)`` takes questions for independent draws. Measured here is an agent
that asks q different ones of the victims' questions a session, whose hits are what they are.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from memsluice.errors import ConfigError

QUESTIONS = 5
"""q, questions a session."""
RUNS, SESSIONS_MAX = 2_000, 10_000


@dataclass(frozen=True, slots=True)
class Exposure:
    """Sessions to a compromise probability of .5, .9, .95, and the expected ones to the first; infinite for never."""

    half: float
    ninety: float
    ninety_five: float
    expected: float

    def told(self) -> str:
        """Return the four, as Table 19 has them."""
        if math.isinf(self.half):
            return "never"
        return f"{self.half:.0f} · {self.ninety:.0f} · {self.ninety_five:.0f} · {self.expected:.1f}"


def probability(rate: float, sessions: int, questions: int = QUESTIONS) -> float:
    """Return 1 - (1 - ASR-R)^(N q) for an ASR-R of 0 to 1."""
    return 1 - (1 - rate) ** (sessions * questions)


def by_formula(rate: float, questions: int = QUESTIONS) -> Exposure:
    """Return what the formula gives. Raises ConfigError for a rate outside of 0 to 1."""
    if not 0 <= rate <= 1:
        raise ConfigError(f"ASR-R is {rate}; it lies between 0 and 1")
    if rate == 0:
        return Exposure(*(math.inf,) * 4)
    first = probability(rate, 1, questions)

    def sessions(wanted: float) -> float:
        return 1.0 if rate == 1 else float(math.ceil(round(math.log(1 - wanted) / math.log(1 - first), 9)))

    return Exposure(sessions(0.5), sessions(0.9), sessions(0.95), 1 / first)


def measured(hits: Sequence[bool], seed: int, questions: int = QUESTIONS) -> Exposure:
    """Return what RUNS agents meet that draw ``questions`` different ones of the victims' questions a session."""
    if not any(hits):
        return Exposure(*(math.inf,) * 4)
    chance = Random(seed)  # noqa: S311 - an experiment
    first = sorted(_first(hits, chance, questions) for _ in range(RUNS))

    def sessions(wanted: float) -> float:
        return float(first[math.ceil(wanted * RUNS) - 1])

    return Exposure(sessions(0.5), sessions(0.9), sessions(0.95), sum(first) / RUNS)


def _first(hits: Sequence[bool], chance: Random, questions: int) -> int:
    for session in range(1, SESSIONS_MAX + 1):
        if any(chance.sample(hits, min(questions, len(hits)))):
            return session
    return SESSIONS_MAX
