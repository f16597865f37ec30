"""One seed of the paper's setting (Section 6.1): corpus, questions, poison, and their vectors, encoded once for all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder import Encoder
from memsluice_lab.attacks import corpus
from memsluice_lab.attacks.poison import BASE, TIMES, Attack, Poison, Victims, made
from memsluice_lab.attacks.retrieval import Hits, reached
from memsluice_lab.triggered import triggered

SIZE, ASKED, POOL_ENTRIES, POOL_QUESTIONS = 1_000, 100, 1_200, 200
BASE_MAX = 10
REFERENCE, HISTORY = 50, 20
"""N benign reference entries (Section 6.1), and m past questions (Table 14)."""
Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Case:
    """What one seed draws: an order of the corpus, victims' questions, and the poison that is aimed at them.

    Vectors are float32, one L2-normalised row a text. ``poison`` has BASE_MAX times what an attack writes for one of
    n_base: fewer are a prefix. ``triggered`` are the past questions with AgentPoison's trigger, which no defender has.
    """

    seed: int
    texts: Sequence[str]
    honest: Vectors
    poison: Mapping[Attack, Poison]
    written: Mapping[Attack, Vectors]
    asked: Mapping[Attack, Vectors]
    history: Vectors
    triggered: Vectors
    encoder: Encoder

    def hits(self, attack: Attack, *, size: int = SIZE, base: int = BASE) -> Hits:
        """Return what is reached in a corpus of ``size`` entries by ``base`` times the attack's entries."""
        return reached(self.honest[:size], self.entries(attack, base), self.asked[attack])

    def entries(self, attack: Attack, base: int = BASE) -> Vectors:
        """Return the vectors of an attack's first entries."""
        return self.written[attack][: TIMES[attack] * base]

    def texts_of(self, attack: Attack) -> tuple[str, ...]:
        """Return an attack's entries of the main evaluation."""
        return self.poison[attack].texts[: TIMES[attack] * BASE]


def cases(encoder: Encoder, seeds: Sequence[int]) -> Iterator[Case]:
    """Yield one case a seed. The pools are the same for all, what is drawn of them and the attacks are not."""
    texts, questions = corpus.entries(POOL_ENTRIES, 0), corpus.questions(POOL_QUESTIONS, 0)
    vectors, of_questions = encoder.encode(texts), encoder.encode(questions)
    for seed in seeds:
        chance = Random(seed)  # noqa: S311 - an experiment
        order = chance.sample(range(len(texts)), SIZE)
        places = chance.sample(range(len(questions)), ASKED + HISTORY)
        asked, past = places[:ASKED], places[ASKED:]
        victims = Victims(tuple(questions[at] for at in asked), of_questions[asked], encoder)
        poison = {attack: made(attack, victims, seed=seed, base=BASE_MAX) for attack in Attack}
        trigger = poison[Attack.AGENTPOISON].trigger
        yield Case(
            seed,
            [texts[at] for at in order],
            vectors[order],
            poison,
            {attack: encoder.encode(list(one.texts)) for attack, one in poison.items()},
            {
                attack: encoder.encode(one.asked(victims.questions)) if one.trigger else victims.vectors
                for attack, one in poison.items()
            },
            of_questions[past],
            encoder.encode(triggered([questions[at] for at in past], trigger)),
            encoder,
        )
