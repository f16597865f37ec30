"""The forward pass of MiniLM-L6 (BERT, 6 layers, 12 heads of 32, d = 384) on packed tokens, in plain torch.

Why not ``transformers``: its BERT pads every text of a batch to the longest, and most of a small model's time is
overhead. Here the tokens of a batch lie one after the other as a (T, 384) matrix; all linear layers and norms run on
that, no text is padded to another's length, and attention runs once per run of equally long texts, so it needs no mask.

Batch mates change no bit of a vector in bfloat16 on a CPU with a matrix unit, and in float32 no more than its rounding
(cosine at least 0.999999). Every row of a matrix product is accumulated in one fixed order as long as the inner
dimension is not split by the kernel, which oneDNN does for bfloat16 above 384 depending on the number of rows; so there
the feed-forward layer is computed in slices of 384. In float32, whose kernels split it otherwise, slices would take
time and keep nothing. Float32 kernels differ below 16 rows; those are padded.
"""

from collections.abc import Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch import Tensor
from torch.nn import functional as F

from memsluice.encoder.batching import runs
from memsluice.encoder.kernels import Products

HIDDEN = 384
LAYERS = 6
HEADS = 12
HEAD = HIDDEN // HEADS
STATES_LAYER = 4
"""Whose states wording is read from: what a text says to do is clearer there than in the last, which was trained to
tell what it is about."""
NORM_EPSILON = 1e-12

SLICE = 384  # inner dimension up to which bfloat16's kernels keep one order of accumulation
ROWS_MIN = 16
EXACT_ROWS_MAX = 64  # a single short text: a row more is time
SHORT_TOKENS_MAX = 64  # up to here three plain batched products beat the fused attention kernel

Norm = tuple[Tensor, Tensor]


class _Layer:
    """The weights of one transformer layer, ready to apply."""

    def __init__(self, weights: dict[str, Tensor], prefix: str, kernel: Products) -> None:
        def pair(name: str) -> tuple[Tensor, Tensor]:
            return weights[f"{prefix}{name}.weight"].float(), weights[f"{prefix}{name}.bias"].float()

        query, key, value = (pair(f"attention.self.{name}") for name in ("query", "key", "value"))
        scale = HEAD**-0.5  # folded into the query's weights, so scores need no scaling
        self.qkv = kernel.linear(
            torch.cat([query[0] * scale, key[0], value[0]]), torch.cat([query[1] * scale, key[1], value[1]])
        )
        self.mix = kernel.linear(*pair("attention.output.dense"))
        self.mix_norm: Norm = pair("attention.output.LayerNorm")
        up, up_bias = pair("intermediate.dense")
        down, down_bias = pair("output.dense")
        size = SLICE if kernel.precision == "bf16" else up.shape[0]
        self.feed_forward = [
            (
                kernel.linear(up[at : at + size].contiguous(), up_bias[at : at + size].contiguous()),
                kernel.linear(down[:, at : at + size].contiguous(), down_bias if at == 0 else None),
            )
            for at in range(0, up.shape[0], size)
        ]
        self.norm: Norm = pair("output.LayerNorm")


class MiniLM:
    """Token ids to unit vectors. Immutable after construction: calls from several threads do not disturb each other."""

    def __init__(self, file: Path, kernel: Products) -> None:
        weights = load_file(file)
        self.dtype = kernel.dtype
        self._words = weights["embeddings.word_embeddings.weight"].float()
        # One segment only: its embedding is the same for every token and joins the positions'.
        self._positions = (
            weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0]
        ).float()
        norm = "embeddings.LayerNorm."
        self._norm: Norm = weights[f"{norm}weight"].float(), weights[f"{norm}bias"].float()
        self._layers = [_Layer(weights, f"encoder.layer.{number}.", kernel) for number in range(LAYERS)]

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
        # The residual stream stays in float32; products run in self.dtype.
        x = _normalised(self._words[tokens] + self._positions[positions], self._norm)
        attended = torch.zeros(x.shape, dtype=self.dtype)
        states = x
        for number, layer in enumerate(self._layers, 1):
            _attend(layer.qkv(x.to(self.dtype)), attended, groups)
            x = _normalised(x.add_(layer.mix(attended)), layer.mix_norm)
            inner = x.to(self.dtype, copy=True)  # x changes while it is still read
            for up, down in layer.feed_forward:
                x.add_(down(torch.ops.aten.gelu_(up(inner))))
            x = _normalised(x, layer.norm)
            if number == STATES_LAYER:
                states = x.clone()[:rows]
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


def _normalised(x: Tensor, norm: Norm) -> Tensor:
    return F.layer_norm(x, (HIDDEN,), norm[0], norm[1], NORM_EPSILON)


def _attend(qkv: Tensor, out: Tensor, groups: Sequence[tuple[int, int, int]]) -> None:
    """Write softmax(Q Kᵀ) V, heads side by side, of every text into its rows of ``out``.

    ``qkv`` is (T, 3 x 12 x 32) packed; the queries are scaled already.
    """
    for row, items, length in groups:
        last = row + items * length
        heads = qkv[row:last].view(items, length, 3, HEADS, HEAD).permute(2, 0, 3, 1, 4)
        if length <= SHORT_TOKENS_MAX:
            flat = heads.to(torch.float32, copy=True, memory_format=torch.contiguous_format)
            query, key, value = flat.view(3, items * HEADS, length, HEAD)
            weights = torch.softmax(torch.bmm(query, key.transpose(1, 2)), -1)
            result = torch.bmm(weights, value).view(items, HEADS, length, HEAD)
        else:
            query, key, value = heads
            result = F.scaled_dot_product_attention(query, key, value, scale=1.0)
        out[row:last].view(items, length, HEADS, HEAD).copy_(result.transpose(1, 2))
