"""The forward pass of MiniLM-L6 (BERT, 6 layers, 12 heads of 32, d = 384) on packed tokens, in plain torch.

Why not ``transformers``: its BERT pads every text of a batch to the longest, and most of a small model's time is
overhead. Here the tokens of a batch lie one after the other as a (T, 384) matrix; all linear layers and norms run on
that, no padding is ever computed, and attention runs once per run of equally long texts, so it needs no mask.

Batch mates do not change a vector. Every row of a matrix product is accumulated in one fixed order as long as the
inner dimension is not split by the kernel, which oneDNN does for bfloat16 above 384 depending on the number of rows;
so the feed-forward layer is computed in slices of 384. Float32 kernels differ below 16 rows; those are padded.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

from memsluice.encoder.batching import runs
from memsluice.encoder.layers import HIDDEN, layer, normalised

LAYERS = 6
STATES_LAYER = 4
"""Whose states wording is read from: what a text says to do is clearer there than in the last, which was trained to
tell what it is about."""
TOKENS_MAX = 256  # sentence_bert_config.json: longer texts are cut
ROWS_MIN = 16
EXACT_ROWS_MAX = 64  # a single short text: a row more is time


class MiniLM:
    """Token ids to unit vectors. Immutable after construction: calls from several threads do not disturb each other."""

    def __init__(self, file: Path, dtype: torch.dtype) -> None:
        weights = load_file(file)
        self.dtype = dtype
        self._words = weights["embeddings.word_embeddings.weight"].float()
        # One segment only: its embedding is the same for every token and joins the positions'.
        self._positions = (
            weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        ).float()
        self._layers = [layer(weights, f"encoder.layer.{number}.", dtype) for number in range(LAYERS)]
        norm = "embeddings.LayerNorm."
        norms = [(weights[f"{norm}weight"].float(), weights[f"{norm}bias"].float())]
        norms += [one.norm for one in self._layers]
        wanted = [*(one.entering for one in self._layers), torch.zeros(HIDDEN)]
        self._norms = [(weight, bias + more) for (weight, bias), more in zip(norms, wanted, strict=True)]
        self._behind_states = wanted[STATES_LAYER]

    @torch.inference_mode()
    def read(self, ids: Sequence[Sequence[int]], *, pool: bool = True) -> tuple[Tensor, Tensor]:
        """Return vectors, (len(ids), 384), and the states of all tokens behind layer 4, (T, 384); float32.

        A vector is the mean over its text's tokens of the last layer, L2-normalised; without ``pool`` the last layers
        are not computed and there are none. ``ids`` are token ids with [CLS] and [SEP], sorted by length, 2 to 256
        each; states are one text's behind the other's.
        """
        lengths = [len(text) for text in ids]
        tokens = torch.tensor([token for text in ids for token in text])
        positions = torch.cat([torch.arange(length) for length in lengths])
        groups = runs(lengths)
        rows = len(tokens)
        spare = rows_of(rows) - rows
        if spare:
            tokens = F.pad(tokens, (0, spare))
            positions = F.pad(positions, (0, spare))
        x = normalised(self._words[tokens] + self._positions[positions], self._norms[0])
        attended = torch.zeros(x.shape, dtype=self.dtype)
        states = x
        for number, apply in enumerate(self._layers, 1):
            x = normalised(apply(x, attended, groups), self._norms[number])
            if number == STATES_LAYER:
                states = x[:rows] - self._behind_states
                if not pool:
                    return torch.empty(0, HIDDEN), states
        pooled = [x[row : row + items * length].view(items, length, HIDDEN).mean(1) for row, items, length in groups]
        return F.normalize(torch.cat(pooled), dim=1), states


def rows_of(tokens: int) -> int:
    """Return how many rows are computed for so many tokens: of many, up to an eighth more, so that there are few sizes.

    oneDNN keeps a compiled kernel a layer for each size it has seen: hundreds of MB in a worker whose batches vary.
    """
    step = 1 if tokens <= EXACT_ROWS_MAX else 1 << (tokens.bit_length() - 4)
    return max(ROWS_MIN, -(-tokens // step) * step)
