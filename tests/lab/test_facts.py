"""What is measured on the world of facts: on a model made of rules, of which everybody knows what it does."""

import numpy as np
import pytest
import torch
from tests.lab.facts_model import Ruled

from memsluice.recall.contamination.paths import compare
from memsluice_lab.facts import influenced, learner
from memsluice_lab.facts import scored as scoring
from memsluice_lab.facts.models import Kept, Noisy, on_logits, on_probabilities
from memsluice_lab.facts.scored import scored, told
from memsluice_lab.facts.world import KNOWN_NAMES, TOLD, World, prompted

ASKED = {"clean": 40, "contaminated": 30, "paraphrased": 10}


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few draws for the intervals."""
    monkeypatch.setattr(scoring, "DRAWS", 30)


def memory(names=KNOWN_NAMES) -> dict[str, tuple[str, str]]:
    """Return a memory of some names."""
    return dict.fromkeys(names, ("value1", "value2"))


def test_what_an_answer_is_made_of_is_told_by_intervention() -> None:
    """A model with a memory answers known names from it and fresh ones from the context; one without, all from it."""
    found = scored(Ruled(memory()), World(1), **ASKED)
    assert [one.memory for one in found] == [False] * 40 + [True] * 40
    assert [one.reworded for one in found].count(True) == 10
    assert sum(one.known and one.agree for one in found) == 20
    assert not any(one.memory for one in scored(Ruled({}), World(1), **ASKED))


def test_an_answer_copied_from_the_wrong_entry_is_not_from_memory() -> None:
    """A model that says whatever the first entry says answers from its context, wrongly."""

    class First(Ruled):
        def _value(self, prompt):
            words = prompt.split()
            return (words[2], words[3]) if words[0] == TOLD else None

    assert not any(one.memory for one in scored(First({}), World(1), **ASKED))


def test_the_divergence_tells_memory_from_context_on_a_model_that_is_either() -> None:
    """All of memory score below all of context; on scores by chance the area is near a half."""
    found = scored(Ruled(memory()), World(2), **ASKED)
    sides = [[one.score for one in found if one.memory is from_memory] for from_memory in (True, False)]
    assert max(sides[0]) < min(sides[1])
    told_apart = told(*sides)
    assert (told_apart.auroc, told_apart.precision, told_apart.false_rate) == (1, 1, 0)
    chance = np.random.default_rng(3)
    guessed = told(chance.random(200).tolist(), chance.random(200).tolist())
    assert 0.4 < guessed.low < guessed.auroc < guessed.high < 0.6
    assert told(sides[1], sides[0]).auroc == 0


def test_metrics_by_hand() -> None:
    """Three contaminated, two clean, one clean below one contaminated: 5 of 6 pairs are in order."""
    found = told([0.1, 0.2, 0.6], [0.5, 0.9])
    assert found.auroc == pytest.approx(5 / 6)
    assert found.false_rate == 0.5


def test_a_prompt_is_asked_of_the_model_once() -> None:
    """What was asked before is remembered, and is the same."""
    model = Ruled({})
    kept, asked = Kept(model), World(4).ask(known=False)
    first = compare(kept, prompted, asked.question, asked.entries)
    assert compare(kept, prompted, asked.question, asked.entries) == first
    assert model.asked == 2


@pytest.mark.parametrize("noise", [on_logits, on_probabilities])
def test_noise_leaves_distributions_and_none_leaves_the_score(noise) -> None:
    """Rows add up to 1 under noise, the answer stays; of deviation 0 the score is that without noise."""
    model, asked = Ruled({}), World(5).ask(known=False)
    given = (prompted, asked.question, asked.entries)
    plain, quiet = compare(model, *given), compare(Noisy(model, noise(0), 1), *given)
    assert quiet.score == pytest.approx(plain.score)
    noisy = Noisy(model, noise(0.1), 1)
    assert np.allclose(np.exp(noisy.log_probabilities(prompted(*given[1:]), plain.answer)).sum(axis=1), 1)
    assert compare(noisy, *given).answer == plain.answer
    assert compare(noisy, *given).score != pytest.approx(plain.score)


def test_influence_is_counted_against_what_interventions_show() -> None:
    """Each told once: the entry that made the answer is found, and no other; from memory: none made it."""
    model, world = Ruled(memory()), World(6)
    tau = influenced.calibrated(model, world, 60, 0.05)
    counts = influenced.each(model, world, tau, [world.ask(known=known) for known in (True, False) for _ in range(10)])
    assert (counts[influenced.MADE], counts[influenced.NOT_MADE]) == (10, 70)
    assert (counts[influenced.MISSED], counts[influenced.KEPT]) == (0, 0)


def test_two_entries_that_say_the_same_hide_each_other_unless_both_are_doubted() -> None:
    """Left out one at a time neither moves the answer; left out together they do."""
    model, world = Ruled({}), World(7)
    tau = influenced.calibrated(model, world, 60, 0.05)
    found = influenced.twice(model, world, tau, 10)
    assert (found.made, found.missed_each, found.missed_together) == (10, 10, 0)


@pytest.mark.parametrize("name", list(learner.ARCHITECTURES))
def test_every_architecture_learns_and_answers(name: str) -> None:
    """A few steps lower the loss on lessons not seen before; an answer ends, and there is room for T = 64."""
    lessons = [torch.from_numpy(some) for some in World(8).lessons(32)]
    losses = []
    for steps in (1, 12):
        model = learner.trained(name, World(9), lambda _text: None, steps)
        losses.append(learner.loss(model, *lessons).item())
    assert losses[1] < losses[0] - 0.2
    asked = World(10).ask(known=True)
    assert len(learner.answers(learner.wrapped(model), asked)) <= 3
    logs = learner.wrapped(model).log_probabilities(prompted(asked.question, asked.entries), [0] * 64)
    assert len(logs) == 64
