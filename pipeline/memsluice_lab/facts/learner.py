"""Small causal models of several architectures, trained on the world of facts until they answer it."""

from collections.abc import Callable
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

from memsluice_lab.facts.world import LENGTH_MAX, PAD, VOCABULARY, World

STEPS, BATCH, RATE, SEED = 2_500, 64, 2e-3, 1
WIDTH, LAYERS, HEADS = 96, 3, 4
SAY_EVERY = 500


def _gpt2() -> Any:
    config = GPT2Config(
        vocab_size=VOCABULARY, n_positions=LENGTH_MAX, n_embd=WIDTH, n_layer=LAYERS, n_head=HEADS, resid_pdrop=0,
        embd_pdrop=0, attn_pdrop=0,
    )  # fmt: skip
    return GPT2LMHeadModel(config)


def _llama() -> Any:
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=2 * WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=LENGTH_MAX,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def _neox() -> Any:
    config = GPTNeoXConfig(
        vocab_size=VOCABULARY, hidden_size=WIDTH, intermediate_size=4 * WIDTH, num_hidden_layers=LAYERS,
        num_attention_heads=HEADS, max_position_embeddings=LENGTH_MAX,
    )  # fmt: skip
    return GPTNeoXForCausalLM(config)


ARCHITECTURES: dict[str, Callable[[], Any]] = {"GPT-2": _gpt2, "Llama": _llama, "GPT-NeoX": _neox}


def trained(name: str, world: World, say: Callable[[str], None], steps: int = STEPS) -> Any:
    """Return a model of an architecture that learned the world's lessons, answers alone, in evaluation mode."""
    torch.manual_seed(SEED)
    model = ARCHITECTURES[name]()
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps)
    model.train()
    for step in range(steps):
        loss = _loss(model, *world.lessons(BATCH))
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % SAY_EVERY == SAY_EVERY - 1:
            say(f"{name}: step {step + 1:,} of {steps:,}, loss {float(loss):.3f}")
    return model.eval()


def _loss(model: Any, lessons: Any, begins: Any) -> torch.Tensor:
    longest = max(map(len, lessons))
    tokens = torch.full((len(lessons), longest), PAD)
    wanted = torch.full((len(lessons), longest), -100)
    for at, (lesson, begin) in enumerate(zip(lessons, begins, strict=True)):
        row = torch.tensor(lesson)
        tokens[at, : len(row)] = row
        wanted[at, begin - 1 : len(row) - 1] = row[begin:]
    logits = model(input_ids=tokens).logits
    return cross_entropy(logits.flatten(0, 1), wanted.flatten(), ignore_index=-100)
