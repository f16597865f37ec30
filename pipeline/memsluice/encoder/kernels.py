"""Which of torch's kernels computes the linear layers: the fastest on this machine, measured once and remembered.

All give the same product but for rounding. What was chosen is kept in ``$XDG_CACHE_HOME/memsluice/kernels.json``
(``~/.cache`` by default), by processor, version of torch and what there was to choose from, so that the processes of a
machine, and the next start of each, compute in the same numbers. Where it cannot be kept, each start measures.
"""

import json
import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import torch
from torch import Tensor
from torch.nn import functional as F

from memsluice.encoder.base import Precision
from memsluice.errors import ConfigError
from memsluice.log import get_logger

LOG = get_logger(__name__)
Linear = Callable[[Tensor], Tensor]
SHAPES: Final = ((1152, 384), (384, 384), (1536, 384), (384, 1536))
"""(columns, inner) of a layer's weights."""
ROWS: Final = (24, 128, 1024)
"""Tokens of a single short text, of a page, and of a full batch."""
ROUNDS: Final = 4
MARGIN: Final = 0.95
"""A kernel is taken before one that is named earlier where it needs at most so much of its time: a tie is no change."""
FILE: Final = "kernels.json"
_CPUINFO: Final = Path("/proc/cpuinfo")


class Kernel(NamedTuple):
    """A way to compute x Wᵀ + b. ``library``: "torch" is torch's own call, "onednn" has the weights laid out once."""

    precision: Literal["bf16", "fp32"]
    library: Literal["torch", "onednn"]

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


def chosen(precision: Precision) -> Kernel:
    """Return the fastest kernel, as it is remembered, or measured now: a second of one core at most."""
    some = kernels(precision)
    if len(some) == 1:
        return some[0]
    names = {f"{one.precision}/{one.library}": one for one in some}
    asked = f"{_processor()}, torch {torch.__version__}, {' '.join(names)}"
    file = _file()
    known = _known(file)
    if known.get(asked) in names:
        return names[known[asked]]
    took = measured(some)
    best = fastest(took)
    told = {name: round(1_000 * took[one], 2) for name, one in names.items()}
    LOG.debug("the encoder's kernel was chosen", kernel=f"{best.precision}/{best.library}", milliseconds=told)
    _remember(file, {**known, asked: f"{best.precision}/{best.library}"})
    return best


def fastest(took: Mapping[Kernel, float]) -> Kernel:
    """Return the first kernel, or the fastest if that is faster by more than the margin."""
    first = next(iter(took))
    best = min(took, key=took.__getitem__)
    return best if took[best] <= MARGIN * took[first] else first


@torch.inference_mode()
def measured(some: Sequence[Kernel]) -> dict[Kernel, float]:
    """Return the seconds of each kernel for the shapes of a layer, the least of some rounds that take turns."""
    found = dict.fromkeys(some, 0.0)
    for columns, inner in SHAPES:
        weight, bias = torch.randn(columns, inner), torch.randn(columns)
        layers = [one.linear(weight, bias) for one in some]
        for rows in ROWS:
            inputs = [torch.randn(rows, inner).to(one.dtype) for one in some]
            least = [float("inf")] * len(some)
            for _ in range(1 + ROUNDS):  # the first prepares the kernel
                for at, (layer, x) in enumerate(zip(layers, inputs, strict=True)):
                    began = time.perf_counter()
                    layer(x)
                    least[at] = min(least[at], time.perf_counter() - began)
            for one, seconds in zip(some, least, strict=True):
                found[one] += seconds * ROWS[-1] / rows
    return found


def _file() -> Path | None:
    if cache := os.environ.get("XDG_CACHE_HOME"):
        return Path(cache, "memsluice", FILE)
    try:
        return Path.home() / ".cache" / "memsluice" / FILE
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


def _remember(file: Path | None, known: Mapping[str, str]) -> None:
    """Keep the choices for the next start; a process that writes at the same time has as good ones."""
    if file is None:
        return
    draft = file.with_suffix(f".{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
        draft.replace(file)
    except OSError as error:
        LOG.info("the encoder's kernel is not remembered, and is measured at each start", why=str(error))


def _processor() -> str:
    """Return the processor's name, as Linux says it."""
    names = [line for line in _lines(_CPUINFO) if line.startswith("model name")]
    return names[0].partition(":")[2].strip() if names else platform.processor() or platform.machine()


def _multiplies_bf16(cpuinfo: Path) -> bool:
    """Say whether the CPU has a bfloat16 matrix or dot-product unit (AMX, AVX-512 BF16)."""
    flags = " ".join(line for line in _lines(cpuinfo) if line.startswith("flags"))
    return "amx_bf16" in flags or "avx512_bf16" in flags


def _lines(file: Path) -> list[str]:
    try:
        return file.read_text("ascii", "replace").splitlines()
    except OSError:
        return []
