"""One layer of a BERT of 384 dimensions and 12 heads, on packed tokens: in bfloat16, or in float32.

The stream of what the layers add to stays in float32 in both. A layer may want something constant added to what it is
given (``entering``): whoever normalises the stream before it adds that to the norm's bias, where it costs nothing.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

HIDDEN = 384
HEADS = 12
HEAD = HIDDEN // HEADS
NORM_EPSILON = 1e-12
SLICE = 384
"""Inner dimension up to which kernels keep one order of accumulation; and what a slice gives stays in the caches."""
SHORT_TOKENS_MAX = 64
"""Up to here three plain batched products beat the fused attention kernel."""

Weights = dict[str, Tensor]
Pair = tuple[Tensor, Tensor]
Linear = Callable[[Tensor], Tensor]
Groups = Sequence[tuple[int, int, int]]


class Layer(Protocol):
    """A layer, ready to apply. ``entering``, shape (384,), is added to the stream before it."""

    entering: Tensor
    norm: Pair

    def __call__(self, x: Tensor, attended: Tensor, groups: Groups) -> Tensor:
        """Return the stream behind the layer, not normalised yet, (T, 384), float32; ``x`` is changed.

        ``attended``, (T, 384), is written over; ``groups`` are the runs of equally long texts.
        """


def layer(weights: Weights, prefix: str, dtype: torch.dtype) -> Layer:
    """Return a layer of some weights that computes its products in ``dtype``."""
    return _Exact(weights, prefix) if dtype is torch.float32 else _Narrow(weights, prefix, dtype)


def normalised(x: Tensor, norm: Pair) -> Tensor:
    """Return LayerNorm(x)."""
    return F.layer_norm(x, (HIDDEN,), *norm, NORM_EPSILON)


class _Exact:
    """In float32: what a product is added to is its own accumulator, so that no sum is a pass of its own.

    For that the biases of the products that are added to the stream are in the stream before: ``x + (a Wᵀ + b)`` is
    ``(x + b) + a Wᵀ``, and what reads the stream meanwhile takes them off again in its own bias.
    """

    def __init__(self, weights: Weights, prefix: str) -> None:
        qkv, mix, up, down, mix_norm = _read(weights, prefix)
        self.norm = _pair(weights, f"{prefix}output.LayerNorm")
        self.entering = mix[1]
        self._qkv = qkv[0].t(), _less(qkv, mix[1])
        self._mix = mix[0].t()
        self._mix_norm = mix_norm[0], mix_norm[1] + down[1]
        up_bias = _less(up, down[1])
        self._feed_forward = [
            (up[0][at : at + SLICE].t(), up_bias[at : at + SLICE].contiguous(), down[0][:, at : at + SLICE].t())
            for at in range(0, len(up[0]), SLICE)
        ]

    def __call__(self, x: Tensor, attended: Tensor, groups: Groups) -> Tensor:
        """Return the stream behind the layer."""
        weight, bias = self._qkv
        attend(_product(x, weight, bias), attended, groups)
        x = normalised(_product(attended, self._mix, x, out=x), self._mix_norm)
        out: Tensor | None = None
        for up, up_bias, down in self._feed_forward:
            inner = torch.ops.aten.gelu_(_product(x, up, up_bias))
            out = _product(inner, down, x if out is None else out, out=out)
        assert out is not None
        return out


class _Narrow:
    """In bfloat16, by the machine's matrix unit."""

    def __init__(self, weights: Weights, prefix: str, dtype: torch.dtype) -> None:
        qkv, mix, up, down, self._mix_norm = _read(weights, prefix)
        self.norm = _pair(weights, f"{prefix}output.LayerNorm")
        self.entering = torch.zeros(HIDDEN)
        self._dtype = dtype
        self._qkv, self._mix = _linear(*qkv, dtype), _linear(*mix, dtype)
        self._feed_forward = [
            (
                _linear(up[0][at : at + SLICE].contiguous(), up[1][at : at + SLICE].contiguous(), dtype),
                _linear(down[0][:, at : at + SLICE].contiguous(), down[1] if at == 0 else None, dtype),
            )
            for at in range(0, len(up[0]), SLICE)
        ]

    def __call__(self, x: Tensor, attended: Tensor, groups: Groups) -> Tensor:
        """Return the stream behind the layer."""
        attend(self._qkv(x.to(self._dtype)), attended, groups)
        x = normalised(x.add_(self._mix(attended)), self._mix_norm)
        inner = x.to(self._dtype)
        for up, down in self._feed_forward:
            x.add_(down(torch.ops.aten.gelu_(up(inner))))
        return x


def attend(qkv: Tensor, out: Tensor, groups: Groups) -> None:
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


def _read(weights: Weights, prefix: str) -> tuple[Pair, Pair, Pair, Pair, Pair]:
    """Return weight and bias of queries, keys and values at once, of the mix, up, down, and the norm behind the mix."""
    query, key, value = (_pair(weights, f"{prefix}attention.self.{name}") for name in ("query", "key", "value"))
    scale = HEAD**-0.5  # folded into the query's weights, so scores need no scaling
    qkv = torch.cat([query[0] * scale, key[0], value[0]]), torch.cat([query[1] * scale, key[1], value[1]])
    names = ("attention.output.dense", "intermediate.dense", "output.dense", "attention.output.LayerNorm")
    mix, up, down, mix_norm = (_pair(weights, f"{prefix}{name}") for name in names)
    return qkv, mix, up, down, mix_norm


def _pair(weights: Weights, name: str) -> Pair:
    return weights[f"{name}.weight"].float(), weights[f"{name}.bias"].float()


def _product(x: Tensor, weight: Tensor, added: Tensor, out: Tensor | None = None) -> Tensor:
    """Return ``x @ weight + added``, in ``out`` where that is given."""
    return torch.addmm(added, x, weight, out=out)


def _less(product: Pair, given: Tensor) -> Tensor:
    """Return the bias with which a product of what has ``given`` added is the product without it."""
    weight, bias = product
    return (bias.double() - weight.double() @ given.double()).float()


def _linear(weight: Tensor, bias: Tensor | None, dtype: torch.dtype) -> Linear:
    """Return x -> x Wᵀ + b in ``dtype``, with the weight laid out once for the matrix unit where torch can do that.

    Without the re-layout oneDNN repeats it at each call, a third of the time of a single short text. The two
    operators are torch-internal (its compiler emits them), hence the check and the plain fallback.
    """
    weight = weight.to(dtype)
    bias = None if bias is None else bias.to(dtype)
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, 1024)
        apply = torch.ops.mkldnn._linear_pointwise
        apply(torch.zeros(2, weight.shape[1], dtype=dtype), packed, bias, "none", [], "")
    except (AttributeError, RuntimeError, NotImplementedError):
        return lambda x: F.linear(x, weight, bias)
    return lambda x: apply(x, packed, bias, "none", [], "")
