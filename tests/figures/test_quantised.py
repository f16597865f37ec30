"""The int8 encoder that float32 is held against: it computes the product, as near as int8 can, and only where told."""

import pytest
import torch

from memsluice.encoder.kernels import Kernel
from memsluice_lab.figures.quantised import KINDS, Quantised, Ranges, Watching, int8

USUAL = Kernel("fp32", "torch")


def _layer(seed: int = 1) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return an input of which one channel is wide, as a transformer's are, a weight and a bias."""
    generator = torch.Generator().manual_seed(seed)
    x, weight, bias = (torch.randn(*shape, generator=generator) for shape in ((64, 384), (48, 384), (48,)))
    x[:, 7] *= 30
    return x, weight, bias


def _ranges(x: torch.Tensor) -> Ranges:
    return Ranges(x.amin(0), x.amax(0))


@pytest.mark.parametrize("alpha", [0.5, 0.7])
def test_int8_gives_nearly_the_product(alpha: float) -> None:
    """A straw man that computes something else would show that int8 does not pay, whatever it can."""
    x, weight, bias = _layer()
    found = int8(weight, bias, _ranges(x), alpha, 127)(x)
    exact = x @ weight.T + bias
    assert torch.cosine_similarity(found, exact).min() > 0.995
    plain = int8(weight, bias, _ranges(x), 0.0, 127)(x)
    assert (found - exact).norm() < (plain - exact).norm(), "smoothing helps where a channel is wide"


def test_only_the_kinds_that_were_named_are_int8() -> None:
    """What a row of the figure says of a kind is of that kind alone."""
    x, weight, bias = _layer()
    kernel = Quantised(USUAL, [_ranges(x)] * len(KINDS), ("up",), 0.5)
    exact = USUAL.linear(weight, bias)(x)
    assert [torch.equal(kernel.linear(weight, bias)(x), exact) for _ in KINDS] == [kind != "up" for kind in KINDS]


def test_ranges_are_of_all_that_was_seen() -> None:
    """A scale of the last batch alone would cut what came before."""
    x, weight, bias = _layer()
    kernel = Watching(USUAL)
    linear = kernel.linear(weight, bias)
    assert torch.equal(linear(x), USUAL.linear(weight, bias)(x))
    linear(x / 2)
    (seen,) = kernel.ranges
    assert torch.equal(seen.most, x.amax(0).clamp(min=0))
    assert torch.equal(seen.least, x.amin(0).clamp(max=0))
