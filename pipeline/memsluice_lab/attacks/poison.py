"""What an attack writes, and how many entries: the three attacks of seed 000 behind one function."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder import Encoder
from memsluice.errors import ConfigError
from memsluice_lab.attacks import agentpoison, injecmem, minja
from memsluice_lab.triggered import triggered

BASE = 5
"""n_base of the paper's main evaluation (Section 6.1: 5, 10 and 15 entries)."""
Vectors = NDArray[np.float32]


class Attack(StrEnum):
    """The attack classes."""

    AGENTPOISON = "AgentPoison"
    MINJA = "MINJA"
    INJECMEM = "InjecMEM"


TIMES: Mapping[Attack, int] = {Attack.AGENTPOISON: 1, Attack.MINJA: 2, Attack.INJECMEM: 3}
"""Entries of an attack over n_base (seed 000, Table 1)."""


@dataclass(frozen=True, slots=True)
class Poison:
    """Entries in the order in which they are written, and the trigger that victims' questions carry ("": none).

    ``quiet`` are AgentPoison's passages with a falsehood in place of the action.
    """

    attack: Attack
    texts: tuple[str, ...]
    trigger: str = ""
    quiet: tuple[str, ...] = ()

    def asked(self, questions: Sequence[str]) -> list[str]:
        """Return victims' questions as this attack is measured on them: with the trigger, where there is one."""
        return triggered(questions, self.trigger) if self.trigger else list(questions)


@dataclass(frozen=True, slots=True)
class Victims:
    """The victims' questions, Q_v, their vectors (float32, one L2-normalised row a question), and their encoder."""

    questions: tuple[str, ...]
    vectors: Vectors
    encoder: Encoder

    @staticmethod
    def of(questions: Sequence[str], encoder: Encoder) -> "Victims":
        """Encode questions. Raises ConfigError where there are none."""
        if not questions:
            raise ConfigError("an attack needs victims' questions, and there are none")
        return Victims(tuple(questions), encoder.encode(list(questions)), encoder)


def made(attack: Attack, victims: Victims, *, seed: int, base: int = BASE) -> Poison:
    """Return the entries of an attack on these questions, ``base`` being n_base >= 1; the same seed gives the same.

    Raises ConfigError for a base below 1.
    """
    if base < 1:
        raise ConfigError(f"n_base is {base}: an attack writes at least one entry")
    chance = Random(f"{attack.value}-{seed}")  # noqa: S311 - an experiment
    return _MAKERS[attack](victims, TIMES[attack] * base, chance)


def _agentpoison(victims: Victims, count: int, chance: Random) -> Poison:
    texts, quiet, trigger = agentpoison.entries(victims.questions, victims.vectors, victims.encoder, count, chance)
    return Poison(Attack.AGENTPOISON, tuple(texts), trigger, tuple(quiet))


def _minja(victims: Victims, count: int, chance: Random) -> Poison:
    return Poison(Attack.MINJA, tuple(minja.entries(victims.questions, victims.vectors, count, chance)))


def _injecmem(victims: Victims, count: int, chance: Random) -> Poison:
    return Poison(Attack.INJECMEM, tuple(injecmem.entries(victims.questions, count, chance)))


_MAKERS: Mapping[Attack, Callable[[Victims, int, Random], Poison]] = {
    Attack.AGENTPOISON: _agentpoison,
    Attack.MINJA: _minja,
    Attack.INJECMEM: _injecmem,
}
