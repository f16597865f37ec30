"""The two paths on a real causal model, small and untrained: what its context moves, and what each entry does."""

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel

from memsluice.recall.contamination.paths import compare, influences
from memsluice.recall.contamination.transformers_model import TransformersModel

VOCABULARY = 64


def encode(text: str) -> list[int]:
    """Return a token a character; there is always one."""
    return [1, *(ord(letter) % VOCABULARY for letter in text)]


def prompted(question: str, entries) -> str:
    """Put entries before a question."""
    return "".join(f"{entry}\n" for entry in entries) + question


@pytest.fixture(scope="module")
def model() -> TransformersModel:
    """A model with random weights, large enough that its context matters."""
    torch.manual_seed(1)
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=256, n_embd=32, n_layer=2, n_head=2, initializer_range=0.5)
    return TransformersModel(GPT2LMHeadModel(config).eval(), encode)


def test_a_context_that_is_there_moves_the_answer_and_one_that_is_not_does_not(model) -> None:
    """Without entries both paths are one prompt: 0 nats; with entries the distributions differ."""
    assert compare(model, prompted, "Where?", [], length=8).score == 0
    assert compare(model, prompted, "Where?", ["Berlin, as always."], length=8).score > 0


def test_the_answer_is_the_likeliest_along_the_path_with_context(model) -> None:
    """Each token of the answer has the largest probability at its position."""
    found = compare(model, prompted, "Where?", ["Berlin."], length=8)
    along = model.log_probabilities(prompted("Where?", ["Berlin."]), found.answer)
    assert along.shape == (8, VOCABULARY)
    assert np.allclose(np.exp(along).sum(axis=1), 1)
    assert tuple(along.argmax(axis=1)) == found.answer


def test_an_entry_that_is_there_twice_and_one_that_says_something_count_for_what_they_do(model) -> None:
    """One number an entry; leaving out the only one is the same as asking without context."""
    question, answer = "Where?", compare(model, prompted, "Where?", ["Berlin."], length=8).answer
    (alone,) = influences(model, prompted, question, ["Berlin."], answer)
    whole = model.log_probabilities(prompted(question, ["Berlin."]), answer)
    without = model.log_probabilities(question, answer)
    assert alone == pytest.approx(float((np.exp(whole) * (whole - without)).sum()))
    assert len(influences(model, prompted, question, ["Berlin.", "Rome.", "Oslo."], answer)) == 3


def test_an_answer_ends_at_the_end_token(model) -> None:
    """The token that ends an answer is no part of it, and nothing comes behind it."""
    free = model.answer("Where?", 8)
    ends = TransformersModel(model._model, encode, end=free[2])
    assert ends.answer("Where?", 8) == free[: free.index(free[2])]
