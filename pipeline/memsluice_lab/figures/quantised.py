"""What int8 would keep of the encoder's vectors, and of its time: static, smooth quantisation of the linear layers.

Smoothing (SmoothQuant, Xiao et al. 2023, arXiv:2211.10438, equation 4) moves a part of each channel's range from the
activations to the weights: what activations are divided by, s_j = max|X_j|^alpha / max|W_j|^(1 - alpha), their weights
are multiplied with. Activations have one scale a layer, of what was seen on other texts; weights one a row.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from memsluice.encoder import load_encoder
from memsluice.encoder.base import read
from memsluice.encoder.kernels import Kernel, Linear
from memsluice.encoder.loop import MiniLMEncoder
from memsluice.encoder.minilm import LAYERS, MiniLM
from memsluice.encoder.weights import WEIGHTS_FILE, find_weights
from memsluice.runtimes.assembly import SEAL_BATCH
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
LEAST = 1e-5
"""Of a range: a channel that was always zero has one."""
_CPUINFO = Path("/proc/cpuinfo")


def levels() -> int:
    """Return the greatest level of an activation: 255, or 127 where two products may overflow 16 bits (no VNNI)."""
    return 255 if any(unit in _CPUINFO.read_text() for unit in ("avx512_vnni", "avx_vnni", "amx_int8")) else 127


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

    kernel: Kernel
    ranges: list[Ranges] = field(default_factory=list)
    dtype = torch.float32
    precision = "fp32"

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

    kernel: Kernel
    ranges: Sequence[Ranges]
    kinds: Sequence[str]
    alpha: float
    made: int = 0
    dtype = torch.float32
    precision = "fp32"

    def linear(self, weight: Tensor, bias: Tensor | None) -> Linear:
        """Return the product of the model's next layer."""
        number, self.made = self.made, self.made + 1
        if KINDS[number % len(KINDS)] not in self.kinds:
            return self.kernel.linear(weight, bias)
        return int8(weight, bias, self.ranges[number], self.alpha, levels())


def int8(weight: Tensor, bias: Tensor | None, ranges: Ranges, alpha: float, top: int) -> Linear:
    """Return x -> x Wᵀ + b, float32 to float32, by products of unsigned 8-bit activations and signed 8-bit weights."""
    widest = torch.maximum(ranges.least.abs(), ranges.most.abs()).clamp(min=LEAST)
    smooth = (widest**alpha / weight.abs().amax(0).clamp(min=LEAST) ** (1 - alpha)).clamp(min=LEAST)
    least, most = float((ranges.least / smooth).min().clamp(max=0)), float((ranges.most / smooth).max().clamp(min=0))
    scale = max(most - least, LEAST) / top
    zero = round(-least / scale)
    rows = (weight * smooth).abs().amax(1).clamp(min=LEAST) / WEIGHT_MAX
    whole = torch.round(weight * smooth / rows[:, None]).to(torch.int8)
    packed = torch.ops.onednn.qlinear_prepack(whole, [SEAL_BATCH, weight.shape[1]])
    zeros, steps = torch.zeros(len(rows), dtype=torch.int32), 1 / (smooth * scale)
    apply = torch.ops.onednn.qlinear_pointwise.default

    def linear(x: Tensor) -> Tensor:
        some = torch.clamp_(torch.round_(x * steps).add_(zero), 0, top).to(torch.uint8)
        out: Tensor = apply(some, scale, zero, packed, rows, zeros, bias, 1.0, 0, torch.float32, "none", [], "")
        return out

    return linear


def int8_cosine(setting: Setting) -> Measured:
    """Least cosine to float32 of the nearest int8 encoder that needs at most 0.9 of float32's time."""
    with streams(setting) as paths:
        texts = [str(line["text"]) for path in paths for line in read_stream(path) if line["kind"] == "write"]
    every = list(dict.fromkeys(texts))
    some = every[:: max(1, len(every) // TEXTS)][:TEXTS]
    usual, watching = Kernel("fp32", "torch"), Watching(Kernel("fp32", "torch"))
    read(_encoder(watching), some[::2])
    assert len(watching.ranges) == LAYERS * len(KINDS)
    plain = _encoder(usual)
    rows, best = list[tuple[str, str]](), 0.0
    for kinds in CHOICES:
        for alpha in ALPHAS:
            share, cosines, moved = _beside(
                plain, _encoder(Quantised(usual, watching.ranges, kinds, alpha)), some[1::2]
            )
            if share <= FASTER:
                best = max(best, float(cosines.min()))
            name, said = f"{', '.join(kinds)}; alpha {alpha}", f"{cosines.min():.4f}, {cosines.mean():.4f}"
            rows.append((name, f"{share:.2f}; {said}; {np.quantile(moved, 0.95):.2f}, {moved.max():.2f}"))
            setting.say(f"{name}: {rows[-1][1]}")
    return Measured(
        best, (("which products; time; cosine: least, mean; wording moved: 95 %, most", ""), *rows), (_NOTE,)
    )


_NOTE = (
    "Time: of reading the texts, over float32's, the median of three rounds that take turns. Wording moved: how far "
    "the log-odds of a text's worst unit are from float32's. Scales are of other texts than those compared."
)


def _encoder(kernel: Kernel | Watching | Quantised) -> MiniLMEncoder:
    """Return the encoder that ships, with a model whose products these are."""
    encoder = load_encoder(threads=1, precision="fp32")
    assert isinstance(encoder, MiniLMEncoder)
    encoder._model = MiniLM(find_weights() / WEIGHTS_FILE, kernel)  # type: ignore[arg-type]
    return encoder


def _beside(
    plain: MiniLMEncoder, other: MiniLMEncoder, texts: Sequence[str]
) -> tuple[float, NDArray[np.float32], NDArray[np.float32]]:
    """Return the other's share of the time, and by text the cosine and how far wording moved."""
    (vectors, shown), (others, others_shown) = read(plain, texts), read(other, texts)
    moved = [abs(a.logit - b.logit) for a, b in zip(shown, others_shown, strict=True) if a and b]
    times = [(_seconds(lambda: read(plain, texts)), _seconds(lambda: read(other, texts))) for _ in range(ROUNDS)]
    share = median(its / usual for usual, its in times)
    return share, (vectors * others).sum(1), np.array(moved, np.float32)


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
