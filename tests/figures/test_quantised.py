"""The int8 encoder that float32 is held against: it computes the product, as near as int8 can, and only where told."""

import numpy as np
import pytest
import torch

from memsluice.encoder.kernels import SHAPES, Kernel, Linear
from memsluice.encoder.minilm import LAYERS, MiniLM
from memsluice.encoder.weights import WEIGHTS_FILE, find_weights
from memsluice.errors import StateError
from memsluice.stages.seal import RECALL_COSINE_MIN
from memsluice_lab.figures.quantised import KINDS, Beside, Quantised, Ranges, Watching, int8, nearest
from memsluice_lab.figures.registry import get

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
    assert (found - exact).norm() < (plain - exact).norm(), "what is moved to the weights is nearer"


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


def test_the_kinds_are_in_the_models_order() -> None:
    """Which product is int8 goes by its place: in another order a row would speak of another product."""
    assert dict(zip(KINDS, SHAPES, strict=True))["down"] == (384, 1536)

    class Noting(Kernel):
        def linear(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
            shapes.append(tuple(weight.shape))
            return super().linear(weight, bias)

    shapes = list[tuple[int, ...]]()
    MiniLM(find_weights() / WEIGHTS_FILE, Noting("fp32", "torch"))
    assert shapes == [*SHAPES] * LAYERS


def _beside(share: float, *cosines: float) -> Beside:
    return Beside(share, np.array(cosines, np.float32), np.zeros(2, np.float32))


def test_the_figure_is_the_nearest_of_what_is_fast_enough() -> None:
    """Its worst text counts; what saves no time says nothing; and a product that is wrong is no proof against int8."""
    near, slow = _beside(0.8, 0.996, 1.0), _beside(0.95, 0.9999)
    assert nearest([near, slow, _beside(0.5, 0.8, 1.0)]) == pytest.approx(0.996)
    assert nearest([slow]) == 0.0
    for wrong in ([_beside(0.5, 0.1)], [near, _beside(0.5, float("nan"))]):
        with pytest.raises(StateError, match="products are wrong"):
            nearest(wrong)


def test_the_goal_is_what_seal_asks_of_a_recall() -> None:
    """Whoever moves that check is told that the choice against int8 rests on it."""
    assert get("int8_cosine").goal == RECALL_COSINE_MIN
