"""Fits the head: a text is hostile where its worst unit is, so the loss is of the greatest log-odds of its units."""

from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from memsluice_lab.wording.features import Features

EPOCHS, BATCH, RATE, DECAY = 6, 256, 2e-3, 1e-2
DROPOUT, SMOOTHING = 0.2, 0.01
LEVELS = 127


@dataclass(frozen=True, slots=True)
class Batch:
    """Some texts' states, their units' tokens and how many each has, and the text of each unit."""

    states: Tensor
    tokens: Tensor
    sizes: Tensor
    owners: Tensor


class Model(nn.Module):
    """The head in training; :mod:`memsluice.encoder.wording` is what runs."""

    def __init__(self) -> None:
        super().__init__()
        self.project, self.first, self.second = nn.Linear(384, 128), nn.Linear(256, 32), nn.Linear(32, 1)
        self.drop = nn.Dropout(DROPOUT)

    def forward(self, batch: Batch, texts: int) -> Tensor:
        """Return the log-odds of each text, shape (texts,)."""
        some = nn.functional.gelu(self.project(batch.states))[batch.tokens]
        most = torch.segment_reduce(some, "max", lengths=batch.sizes, axis=0)
        mean = torch.segment_reduce(some, "mean", lengths=batch.sizes, axis=0)
        inner = nn.functional.gelu(self.first(self.drop(torch.cat((most, mean), 1))))
        units = self.second(self.drop(inner))[:, 0]
        return torch.full((texts,), -20.0).scatter_reduce(0, batch.owners, units, "amax")


def batch_of(some: Features, chosen: NDArray[np.int64]) -> Batch:
    """Return the batch of these texts."""
    states, tokens, sizes, owners, rows = [], [], [], [], 0
    for place, text in enumerate(chosen):
        first, end = (some.ends[text - 1] if text else 0), some.ends[text]
        unit, last = (some.text_units[text - 1] if text else 0), some.text_units[text]
        token = some.unit_ends[unit - 1] if unit else 0
        ends = some.unit_ends[unit:last]
        states.append(some.states[first:end])
        if len(ends):
            tokens.append(some.tokens[token : ends[-1]] + rows)
            sizes.append(np.diff(ends, prepend=token))
            owners.append(np.full(last - unit, place))
        rows += end - first
    return Batch(
        torch.from_numpy(np.concatenate(states).astype(np.float32)),
        *(torch.from_numpy(np.concatenate(each)) for each in (tokens, sizes, owners)),
    )


def fit(some: Features, labels: NDArray[np.float32], weights: NDArray[np.float32], chosen: NDArray[np.int64]) -> Model:
    """Return the head fitted on the chosen texts: the same for the same texts on one machine."""
    torch.manual_seed(1)
    order = np.random.default_rng(1)
    model = Model()
    steps = EPOCHS * -(-len(chosen) // BATCH)
    optimiser = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=DECAY)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps, pct_start=0.1)
    for epoch in range(EPOCHS):
        lost = 0.0
        for places in _batches(some, order.permutation(chosen)):
            wanted = torch.from_numpy(labels[places]) * (1 - 2 * SMOOTHING) + SMOOTHING
            said = model(batch_of(some, places), len(places))
            loss = nn.functional.binary_cross_entropy_with_logits(said, wanted, torch.from_numpy(weights[places]))
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]  # torch has no type for it
            optimiser.step()
            schedule.step()
            lost += loss.item()
        print(f"head: epoch {epoch + 1} of {EPOCHS}, loss {lost * BATCH / len(chosen):.4f}", flush=True)
    return model.eval()


def _batches(some: Features, order: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    for at in range(0, len(order), BATCH):
        yield order[at : at + BATCH]


@torch.inference_mode()
def logits(model: Model, some: Features, chosen: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return the log-odds of the chosen texts."""
    found = [model(batch_of(some, places), len(places)).numpy() for places in _batches(some, chosen)]
    return np.concatenate(found).astype(np.float64)


def packed(model: Model) -> bytes:
    """Return the file: int8 levels of each matrix, (inputs, outputs), with a scale a column."""
    arrays = dict[str, NDArray[Any]]()
    for name in ("project", "first", "second"):
        layer = getattr(model, name)
        weight = layer.weight.detach().numpy().T
        scale = (np.abs(weight).max(0) / LEVELS).astype(np.float32)
        arrays |= {name: np.round(weight / scale).astype(np.int8), f"{name}_scale": scale}
        arrays[f"{name}_bias"] = layer.bias.detach().numpy()
    out = BytesIO()
    np.savez_compressed(out, allow_pickle=False, **arrays)
    return out.getvalue()


def rounded(model: Model) -> Model:
    """Return the model with the weights that its file has: what is measured is what ships."""
    with torch.no_grad():
        for name in ("project", "first", "second"):
            weight = getattr(model, name).weight
            scale = weight.abs().amax(1, keepdim=True) / LEVELS
            weight.copy_((weight / scale).round() * scale)
    return model
