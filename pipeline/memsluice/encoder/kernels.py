"""Which of torch's kernels computes the linear layers: the fastest on this machine, measured once and remembered.

All give the same product but for rounding. What was chosen is kept in ``kernels.json`` in the cache's folder
(``MEMSLUICE_CACHE``, ``~/.cache/memsluice`` by default), by processor, version of torch and what there was to choose
from, so that the processes of a machine, and the next start of each, compute in the same numbers. Where it cannot be
kept, each start measures.
"""

import json
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import Final, Literal, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn import functional as F

from memsluice.deployment.paths import cache_dir, write_private
from memsluice.encoder.base import Precision
from memsluice.errors import ConfigError
from memsluice.log import get_logger

LOG = get_logger(__name__)
Linear = Callable[[Tensor], Tensor]
SHAPES: Final = ((1152, 384), (384, 384), (1536, 384), (384, 1536))
"""(columns, inner) of a layer's weights."""
ROWS: Final = (24, 128, 1024)
"""Tokens of a single short text, of a long one, and of a full batch."""
ROUNDS: Final = 4
CALLS: Final = 3
"""Of a round, of each shape and size: the fastest counts, or a hiccup in a short one would be a round's."""
MARGIN: Final = 0.95
"""Another kernel is taken before the usual one where it needs at most so much of its time in every round: neither a
tie nor what else the machine does is a change."""
FILE: Final = "kernels.json"
_CPUINFO: Final = Path("/proc/cpuinfo")
_MEASURING: Final = Lock()
"""Held while one thread measures: it holds torch to one core meanwhile."""


class Products(Protocol):
    """What a model's products are computed by; :class:`Kernel` is one."""

    @property
    def precision(self) -> Literal["bf16", "fp32"]:
        """As whose rounding the products are."""

    @property
    def dtype(self) -> torch.dtype:
        """What is multiplied."""

    def linear(self, weight: Tensor, bias: Tensor | None) -> Linear:
        """Return x -> x Wᵀ + b for a weight of (columns, inner)."""


class Kernel(NamedTuple):
    """A way to compute x Wᵀ + b. ``library``: "torch" is torch's own call, "onednn" has the weights laid out once."""

    precision: Literal["bf16", "fp32"]
    library: Literal["torch", "onednn"]

    def __str__(self) -> str:
        return f"{self.precision}/{self.library}"

    @property
    def dtype(self) -> torch.dtype:
        """The numbers that products are computed in."""
        return torch.bfloat16 if self.precision == "bf16" else torch.float32

    def linear(self, weight: Tensor, bias: Tensor | None) -> Linear:
        """Return x -> x Wᵀ + b for a weight of (columns, inner); x is of :attr:`dtype`."""
        weight = weight.to(self.dtype)
        bias = None if bias is None else bias.to(self.dtype)
        if self.library == "torch":
            return lambda x: F.linear(x, weight, bias)
        # Without the layout oneDNN repeats it at each call, a third of the time of a single short text in bfloat16.
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, 1024)
        apply = torch.ops.mkldnn._linear_pointwise
        return lambda x: apply(x, packed, bias, "none", [], "")

    def exists(self) -> bool:
        """Tell whether this torch has it: oneDNN's operators are torch's own, which its compiler emits."""
        try:
            self.linear(torch.zeros(2, 2), None)(torch.zeros(2, 2, dtype=self.dtype))
        except (AttributeError, RuntimeError, NotImplementedError):
            return False
        return True


def kernels(precision: Precision, cpuinfo: Path = _CPUINFO) -> list[Kernel]:
    """Return what may compute in a precision on this machine, the usual one first; "auto": in any that the CPU has a
    unit for. Raises ConfigError for a precision that there is not."""
    if precision not in ("auto", "bf16", "fp32"):
        raise ConfigError(f"encoder precision {precision!r} is not one of auto, bf16, fp32")
    found = [Kernel("bf16", "onednn"), Kernel("bf16", "torch")]
    if precision == "fp32" or (precision == "auto" and not _multiplies_bf16(cpuinfo)):
        found = []
    if precision != "bf16":
        found += [Kernel("fp32", "torch"), Kernel("fp32", "onednn")]
    return [one for one in found if one.exists()]


def fastest_kernel(precision: Precision) -> Kernel:
    """Return the fastest kernel, as it is remembered, or measured now, which takes one core a second or two.

    bfloat16 that was asked for on a processor without a unit for it is not measured: that would take minutes.
    """
    some = kernels(precision)
    if len(some) == 1 or (precision == "bf16" and not _multiplies_bf16(_CPUINFO)):
        return some[0]
    names = {str(one): one for one in some}
    asked, file = f"{_processor()}, torch {torch.__version__}, {' '.join(names)}", _file()
    with _MEASURING:
        if (known := _known(file).get(asked)) in names:
            return names[known]
        took = measured(some)
        if (known := _known(file).get(asked)) in names:  # another process was faster: all compute by one
            return names[known]
        best = fastest(took)
        told = {name: round(1_000 * min(took[one]), 2) for name, one in names.items()}
        LOG.info("the encoder's kernel was chosen", kernel=str(best), milliseconds=told)
        _remember(file, asked, str(best))
    return best


def fastest(took: Mapping[Kernel, Sequence[float]]) -> Kernel:
    """Return the fastest of those that are faster than the first, by more than the margin, in every round; or the
    first."""
    first = next(iter(took))
    limits = [MARGIN * seconds for seconds in took[first]]
    faster = [one for one in took if all(its <= limit for its, limit in zip(took[one], limits, strict=True))]
    return min(faster, key=lambda one: sum(took[one]), default=first)


def measured(some: Sequence[Kernel]) -> dict[Kernel, list[float]]:
    """Return the seconds of each kernel for a full batch's tokens in each shape of a layer, in batches of each size.

    On one core, whichever process starts first: *seal* reads a batch on each. In each of some rounds that take turns.
    """
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        return _measured(some)
    finally:
        torch.set_num_threads(before)


@torch.inference_mode()
def _measured(some: Sequence[Kernel]) -> dict[Kernel, list[float]]:
    found = {one: [0.0] * ROUNDS for one in some}
    for columns, inner in SHAPES:
        weight, bias = torch.randn(columns, inner), torch.randn(columns)
        layers = [one.linear(weight, bias) for one in some]
        for rows in ROWS:
            inputs = [torch.randn(rows, inner).to(one.dtype) for one in some]
            for layer, x in zip(layers, inputs, strict=True):
                layer(x)  # the first call prepares the kernel
            for number in range(ROUNDS):
                for one, layer, x in zip(some, layers, inputs, strict=True):
                    found[one][number] += min(_seconds(layer, x) for _ in range(CALLS)) * ROWS[-1] / rows
    return found


def _seconds(layer: Linear, x: Tensor) -> float:
    began = time.perf_counter()
    layer(x)
    return time.perf_counter() - began


def _file() -> Path | None:
    try:
        return cache_dir() / FILE
    except RuntimeError:  # an account without a home
        return None


def _known(file: Path | None) -> dict[str, str]:
    """Return what is remembered; nothing where the file is not there, cannot be read, or is none of ours."""
    try:
        found = json.loads(file.read_text("utf-8")) if file is not None else {}
    except (OSError, ValueError):
        return {}
    said = found if isinstance(found, dict) else {}
    return {str(name): str(kernel) for name, kernel in said.items()}


def _remember(file: Path | None, asked: str, kernel: str) -> None:
    """Keep a choice for the next start, beside what was chosen for others."""
    if file is None:
        return
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        write_private(file, json.dumps({**_known(file), asked: kernel}, indent=1) + "\n")
    except OSError as error:
        LOG.info("the encoder's kernel is not remembered, and is measured at each start", why=str(error))


def _processor() -> str:
    """Return the processor's name, as Linux says it."""
    names = [line for line in _lines(_CPUINFO) if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.processor() or platform.machine()


def _multiplies_bf16(cpuinfo: Path) -> bool:
    """Say whether the CPU has a bfloat16 matrix or dot-product unit (AMX, AVX-512 BF16)."""
    return has_unit("amx_bf16", "avx512_bf16", cpuinfo=cpuinfo)


def has_unit(*names: str, cpuinfo: Path = _CPUINFO) -> bool:
    """Tell whether the processor has one of these, by Linux' names of its flags."""
    flags = {flag for line in _lines(cpuinfo) if line.startswith("flags") for flag in line.split()}
    return not flags.isdisjoint(names)


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text("ascii", "replace").splitlines()
    except OSError:
        return []
