"""Small causal models of several architectures, trained on the world of facts until they answer it."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.nn.functional import cross_entropy
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
)

from memsluice.recall.contamination.transformers_model import TransformersModel
from memsluice_lab.facts.world import ANSWER, END, TOKEN, WORDS, Asked, World, encode, prompted

STEPS, BATCH, RATE, SEED = 1_600, 64, 3e-3, 1
WIDTH, LAYERS, HEADS = 64, 2, 4
LENGTH_MAX = 128
"""Positions: a prompt and the 64 tokens of the paper's T fit."""
DRILLED = 0.25
"""Share of the steps that are drills, before the lessons."""
BETAS, DECAY, CLIP, WARM, SAY_EVERY = (0.9, 0.98), 0.01, 1.0, 0.05, 250


def _gpt2() -> Any:
    config = GPT2Config(
        vocab_size=len(WORDS), n_positions=LENGTH_MAX, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, resid_pdrop=0,
        embd_pdrop=0, attn_pdrop=0, bos_token_id=TOKEN[END], eos_token_id=TOKEN[END],
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def _llama() -> Any:
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=WIDTH, intermediate_size=3 * WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=LENGTH_MAX, bos_token_id=TOKEN[END],
        eos_token_id=TOKEN[END],
    )  # fmt: skip
    return LlamaForCausalLM(config)


def _neox() -> Any:
    config = GPTNeoXConfig(
        vocab_size=len(WORDS), hidden_size=WIDTH, intermediate_size=4 * WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=LENGTH_MAX, bos_token_id=TOKEN[END],
        eos_token_id=TOKEN[END],
    )  # fmt: skip
    return GPTNeoXForCausalLM(config)


ARCHITECTURES: dict[str, Callable[[], Any]] = {"GPT-2": _gpt2, "Llama": _llama, "GPT-NeoX": _neox}


def trained(name: str, world: World, say: Callable[[str], None], steps: int = STEPS) -> Any:
    """Return a model of an architecture after so many batches of the world's drills and lessons, in evaluation mode."""
    torch.manual_seed(SEED)
    model = ARCHITECTURES[name]()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, betas=BETAS, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: _rate(step, steps))
    model.train()
    for step in range(steps):
        batch = world.drills(BATCH) if step < DRILLED * steps else world.lessons(BATCH)
        lost = loss(model, *map(torch.from_numpy, batch))
        optimiser.zero_grad()
        lost.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP)
        optimiser.step()
        schedule.step()
        if step % SAY_EVERY == SAY_EVERY - 1:
            say(f"{name}: step {step + 1:,} of {steps:,}, loss {lost.item():.3f}")
    return model.eval()


def _rate(step: int, steps: int) -> float:
    """Return the learning rate's share: it rises over the first WARM of the steps, and falls as a cosine does."""
    return min(1.0, (step + 1) / (WARM * steps)) * (1 + math.cos(math.pi * step / steps)) / 2


def loss(model: Any, tokens: torch.Tensor, learned: torch.Tensor) -> torch.Tensor:
    """Return the cross entropy of the tokens that are learned, each from those before it."""
    logits = model(input_ids=tokens).logits[:, :-1]
    return cross_entropy(logits[learned[:, 1:]], tokens[:, 1:][learned[:, 1:]])


def wrapped(model: Any, *, ends: bool = True) -> TransformersModel:
    """Return a trained model as the product takes it; one whose answers do not end for themselves, if asked for."""
    return TransformersModel(model, encode, TOKEN[END] if ends else None)


def answers(model: TransformersModel, asked: Asked) -> tuple[str, ...]:
    """Return the words of the answer to a question with its context."""
    return tuple(WORDS[token] for token in model.answer(prompted(asked.question, asked.entries), ANSWER + 1))


def right(model: TransformersModel, questions: Sequence[Asked]) -> float:
    """Return the share of questions that are answered by their value."""
    return sum(answers(model, one) == one.value for one in questions) / len(questions)
