"""How poison spreads among agents that share a memory (seed 000, Appendix G, Table 10): equations and simulation.

Of the SIR model: ``R_0 = beta / gamma``, the final size r solves ``1 - r = exp(-R_0 r)``, and the paper gives a
detector ``gamma_eff = gamma + TPR beta``. With TPR = 1 then R_0 = beta / (gamma + beta), which is below 1 for every
gamma > 0 and every beta: "TPR = 1 drops R_0 below 1" holds whatever is measured, and says nothing about a detector. The
paper's own Table 10 has MEMSAD, of which that is said, at a final spread of 1.00.

And its simulation is of another kind: nobody recovers in it, so an entry that stays in the shared memory is asked for
until everybody has met it. There, what decides is whether any first entry is let in.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from memsluice.errors import ConfigError
from memsluice_lab.attacks.retrieval import RETURNED

AGENTS, STORED, STEPS = 20, 0.30, 30
"""N, p_re-store and T of Table 10."""
INITIAL, CORPUS = 5, 200
"""Initial poison entries, and entries of the corpus."""
TOLERANCE, ROUNDS_MAX = 1e-12, 10_000
Vectors = NDArray[np.float32]


def reproduction(beta: float, gamma: float, found: float = 0.0) -> float:
    """Return R_0 = beta / (gamma + TPR beta), ``found`` being TPR. Raises ConfigError where nothing ever recovers."""
    effective = gamma + found * beta
    if effective <= 0:
        raise ConfigError("R_0 needs a rate of recovery, or a detector that finds something")
    return beta / effective


def final_size(ratio: float) -> float:
    """Return the r in [0, 1] that solves 1 - r = exp(-R_0 r): the greatest; 0 where R_0 <= 1."""
    if ratio <= 1:
        return 0.0
    size = 1.0
    for _ in range(ROUNDS_MAX):  # from above the iteration falls to the greatest root
        following = 1 - math.exp(-ratio * size)
        if abs(following - size) < TOLERANCE:
            break
        size = following
    return size


def epidemic(beta: float, gamma: float, agents: int, seed: int, *, infected: int = 1) -> float:
    """Return the final share of one chance epidemic: Definition 23 step by step, whole agents drawn one by one.

    ``beta`` and ``gamma`` are chances a step, in (0, 1].
    """
    chance = Random(seed)  # noqa: S311 - an experiment
    well, ill, over = agents - infected, infected, 0
    while ill:
        caught = sum(chance.random() < 1 - (1 - beta / agents) ** ill for _ in range(well))
        healed = sum(chance.random() < gamma for _ in range(ill))
        well, ill, over = well - caught, ill + caught - healed, over + healed
    return over / agents


@dataclass(frozen=True, slots=True)
class Spread:
    """What Table 10 tells of a condition; steps are STEPS + 1 where it did not come that far."""

    final: float
    half: int
    ninety: int
    secondary: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class Memory:
    """Vectors of the honest entries, of the first poison, and of the questions that agents ask."""

    honest: Vectors
    poison: Vectors
    questions: Vectors


def spread(memory: Memory, flagged: Callable[[Vectors], bool], seed: int) -> Spread:
    """Play Table 10's setting once: agents ask the shared memory; who is given poison may store the like of it again.

    ``flagged`` says of an entry's vector whether it is quarantined. What is stored again is the poison that was given.
    """
    chance, quarantined = Random(seed), 0  # noqa: S311 - an experiment
    shared = list[Vectors]()
    for vector in memory.poison:
        held = flagged(vector)
        quarantined += held
        shared += [] if held else [vector]
    exposed, sizes, secondary = set[int](), list[float](), 0
    for _ in range(STEPS):
        for agent in range(AGENTS):
            given = _given(memory, shared, memory.questions[chance.randrange(len(memory.questions))])
            if given is None:
                continue
            exposed.add(agent)
            if chance.random() < STORED:
                if flagged(given):
                    quarantined += 1
                else:
                    shared.append(given)
                    secondary += 1
        sizes.append(len(exposed) / AGENTS)
    return Spread(sizes[-1], _step(sizes, 0.5), _step(sizes, 0.9), secondary, quarantined)


def _given(memory: Memory, shared: Sequence[Vectors], question: Vectors) -> Vectors | None:
    """Return the nearest poison, where it is among the k nearest of all, else None."""
    if not shared:
        return None
    mine = np.stack(shared) @ question
    best = int(np.argmax(mine))
    nearer = int((memory.honest @ question > mine[best]).sum())
    return shared[best] if nearer < RETURNED else None


def _step(sizes: Sequence[float], share: float) -> int:
    return next((at for at, size in enumerate(sizes, 1) if size >= share), STEPS + 1)
