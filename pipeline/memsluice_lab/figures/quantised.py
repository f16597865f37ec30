"""What int8 would keep of the encoder's vectors, and of its time: static, smooth quantisation of the linear layers.

Smoothing (SmoothQuant, Xiao et al. 2023, arXiv:2211.10438, equation 4) moves a part of each channel's range from the
activations to the weights: what activations are divided by, s_j = max|X_j|^alpha / max|W_j|^(1 - alpha), their weights
are multiplied with. Activations have one scale a layer, of what was seen on other texts; weights one a row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from statistics import median
from typing import Final, Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from memsluice.encoder.base import read
from memsluice.encoder.kernels import Kernel, Linear, Products, fastest_kernel, has_unit
from memsluice.encoder.loop import BATCH_TOKENS_MAX, MiniLMEncoder
from memsluice.encoder.weights import find_weights
from memsluice.envelope.seals import Wording
from memsluice.errors import StateError
from memsluice_lab.figures.encoder_limit import timed
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import read_stream

TEXTS = 512
"""Half of them are what scales are taken from, the others what is compared."""
ROUNDS = 3
FASTER = 0.9
"""Of float32's time at most, or int8 is not worth its trouble."""
ALPHAS = (0.5, 0.7)
KINDS = ("qkv", "mix", "up", "down")
"""A layer's products, in the order in which the model makes them."""
CHOICES = (KINDS, ("qkv", "mix", "up"), ("qkv", "up"), ("up",))
WEIGHT_MAX = 127
NEAR = 0.99
"""What the nearest has at least, or the products are wrong."""
USUAL = Kernel("fp32", "torch")
LEAST = 1e-5
"""Of a range: a channel that was always zero has one."""


def level_max() -> int:
    """Return the greatest level of an activation: 255, or 127 where two products may overflow 16 bits (no VNNI)."""
    return 255 if has_unit("avx512_vnni", "avx_vnni", "amx_int8") else 127


@dataclass(slots=True)
class Ranges:
    """The least and the greatest that each channel of a layer's input has been, (inner,) each."""

    least: Tensor
    most: Tensor

    def seen(self, x: Tensor) -> None:
        """Widen them by a batch, (rows, inner)."""
        self.least, self.most = torch.minimum(self.least, x.amin(0)), torch.maximum(self.most, x.amax(0))


@dataclass(slots=True)
class Watching:
    """Stands for a kernel while the model is made: float32, and keeps the range of every layer's input."""

    kernel: Products
    ranges: list[Ranges] = field(default_factory=list)
    dtype: Final[torch.dtype] = torch.float32
    precision: Final[Literal["fp32"]] = "fp32"

    def linear(self, weight: Tensor, bias: Tensor | None) -> Linear:
        """Return the kernel's own product, which notes what it is given."""
        multiply, one = self.kernel.linear(weight, bias), Ranges(*torch.zeros(2, weight.shape[1]))
        self.ranges.append(one)

        def watched(x: Tensor) -> Tensor:
            one.seen(x)
            return multiply(x)

        return watched


@dataclass(slots=True)
class Quantised:
    """Stands for a kernel while the model is made: int8 for some kinds of products, float32 for the others."""

    kernel: Products
    ranges: Sequence[Ranges]
    kinds: Sequence[str]
    alpha: float
    made: int = 0
    dtype: Final[torch.dtype] = torch.float32
    precision: Final[Literal["fp32"]] = "fp32"

    def linear(self, weight: Tensor, bias: Tensor | None) -> Linear:
        """Return the product of the model's next layer."""
        number, self.made = self.made, self.made + 1
        if KINDS[number % len(KINDS)] not in self.kinds:
            return self.kernel.linear(weight, bias)
        return int8(weight, bias, self.ranges[number], self.alpha, level_max())


def int8(weight: Tensor, bias: Tensor | None, ranges: Ranges, alpha: float, highest: int) -> Linear:
    """Return x -> x Wᵀ + b, float32 to float32, by products of unsigned 8-bit activations and signed 8-bit weights."""
    widest = torch.maximum(ranges.least.abs(), ranges.most.abs()).clamp(min=LEAST)
    smooth = (widest**alpha / weight.abs().amax(0).clamp(min=LEAST) ** (1 - alpha)).clamp(min=LEAST)
    least, most = float((ranges.least / smooth).min().clamp(max=0)), float((ranges.most / smooth).max().clamp(min=0))
    scale = max(most - least, LEAST) / highest
    zero = round(-least / scale)
    scales = (weight * smooth).abs().amax(1).clamp(min=LEAST) / WEIGHT_MAX
    whole = torch.round(weight * smooth / scales[:, None]).to(torch.int8)
    packed = torch.ops.onednn.qlinear_prepack(whole, [BATCH_TOKENS_MAX, weight.shape[1]])
    zeros, steps = torch.zeros(len(scales), dtype=torch.int32), 1 / (smooth * scale)
    apply = torch.ops.onednn.qlinear_pointwise.default

    def linear(x: Tensor) -> Tensor:
        some = torch.clamp_(torch.round_(x * steps).add_(zero), 0, highest).to(torch.uint8)
        out: Tensor = apply(some, scale, zero, packed, scales, zeros, bias, 1.0, 0, torch.float32, "none", [], "")
        return out

    return linear


def int8_cosine(setting: Setting) -> Measured:
    """Least cosine to float32 of the nearest of some int8 encoders that need at most 0.9 of the time of the one in use.

    Raises StateError where not even one layer's int8 is near: then the product is wrong, not int8.
    """
    with streams(setting) as paths:
        texts = [str(line["text"]) for path in paths for line in read_stream(path) if line["kind"] == "write"]
    every = list(dict.fromkeys(texts))
    sample = every[:: max(1, len(every) // TEXTS)][:TEXTS]
    watching, inuse = Watching(USUAL), fastest_kernel("auto")
    read(_encoder(watching), sample[::2])
    plain, shipped = read(_encoder(USUAL), sample[1::2]), _encoder(inuse)
    found = dict[str, Beside]()
    for kinds, alpha in product(CHOICES, ALPHAS):
        other = _encoder(Quantised(USUAL, watching.ranges, kinds, alpha))
        found[f"{', '.join(kinds)}; alpha {alpha}"] = one = beside(plain, shipped, other, sample[1::2])
        setting.say(f"{', '.join(kinds)}; alpha {alpha}: {one}")
    rows = (
        ("the kernel in use", str(inuse)),
        ("products in int8: time; cosine: least, mean; wording moved: 95 %, most", ""),
        *((name, str(one)) for name, one in found.items()),
    )
    return Measured(nearest(list(found.values())), rows, (_NOTE,))


class Beside(NamedTuple):
    """An encoder beside the one in use: its share of the time, and by text the cosine to float32's vector and how far
    wording is from float32's."""

    share: float
    cosines: NDArray[np.float32]
    moved: NDArray[np.float32]

    def __str__(self) -> str:
        cosines = f"{self.cosines.min():.4f}, {self.cosines.mean():.4f}"
        return f"{self.share:.2f}; {cosines}; {np.quantile(self.moved, 0.95):.2f}, {self.moved.max():.2f}"


def nearest(found: Sequence[Beside]) -> float:
    """Return the greatest of the least cosines of what is fast enough; 0 where nothing is. Raises StateError."""
    if not max(float(one.cosines.min()) for one in found) > NEAR or any(np.isnan(one.cosines).any() for one in found):
        raise StateError(f"no int8 encoder has a cosine of {NEAR} to float32: its products are wrong")
    return max((float(one.cosines.min()) for one in found if one.share <= FASTER), default=0.0)


_NOTE = (
    "Time: of reading the texts, over that of the kernel in use, the median of three rounds that take turns; "
    "activations are quantised by torch, not within the product before. Wording moved: how far the log-odds of a "
    "text's worst unit are from float32's. Scales are of other texts than those compared."
)


def _encoder(kernel: Products) -> MiniLMEncoder:
    return MiniLMEncoder(find_weights(), threads=1, kernel=kernel)


def beside(
    plain: tuple[NDArray[np.float32], list[Wording | None]],
    shipped: MiniLMEncoder,
    other: MiniLMEncoder,
    texts: Sequence[str],
) -> Beside:
    """Compare an encoder with what float32 gives for the texts, and with the time of the encoder in use."""
    vectors, shown = read(other, texts)
    moved = [abs(a.logit - b.logit) for a, b in zip(plain[1], shown, strict=True) if a and b]
    times = [(timed(lambda: read(shipped, texts)), timed(lambda: read(other, texts))) for _ in range(ROUNDS)]
    share = median(its / usual for usual, its in times)
    return Beside(share, (vectors * plain[0]).sum(1), np.array(moved, np.float32))
