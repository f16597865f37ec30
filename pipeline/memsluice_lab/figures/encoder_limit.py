"""How near the encoder comes to what the machine's matrix products allow: beside the same products by themselves."""

import os
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from statistics import median
from threading import Barrier
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from memsluice.encoder import load_encoder
from memsluice.encoder.base import read
from memsluice.encoder.loop import MiniLMEncoder
from memsluice.errors import StateError
from memsluice.runtimes.assembly import SEAL_BATCH, seal_threads
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import read_stream

TEXTS = 1_024
ROUNDS = 5
CALLS = 3
"""Of each kernel: of all cores at one the fastest counts …"""
BLOCKS = 3
"""… of a core each the fastest of so many times as many, until the last core is through."""
BEGIN_S_MAX = 60
ROWS_MIN = 2
BEST = "the best for each shape"
OPERANDS = {"aten::addmm": 1, "aten::mm": 0, "mkldnn::_linear_pointwise": 0}
"""torch's products of two matrices, and which of their inputs is the left one; the right one comes behind it."""


class Product(NamedTuple):
    """A product of a (rows, inner) and an (inner, columns) matrix."""

    rows: int
    inner: int
    columns: int

    @property
    def operations(self) -> int:
        """Multiplications and additions."""
        return 2 * self.rows * self.inner * self.columns


Multiply = Callable[[], object]


def encoder_of_limit(setting: Setting) -> Measured:
    """The time that the linear layers' products take by the machine's best kernel, over that of reading the texts.

    They are read as *seal* reads them: a batch in each of its threads, of one core each.
    """
    with streams(setting) as paths:
        texts = [str(line["text"]) for path in paths for line in read_stream(path) if line["kind"] == "write"]
    chosen, cores = texts[:: max(1, len(texts) // TEXTS)][:TEXTS], min(seal_threads(), len(os.sched_getaffinity(0)))
    encoder, batches = load_encoder(threads=1), [chosen[at : at + SEAL_BATCH] for at in range(0, TEXTS, SEAL_BATCH)]

    def whole() -> None:
        with ThreadPoolExecutor(cores) as threads:
            list(threads.map(lambda batch: read(encoder, batch), batches))

    whole()  # the first call pays for kernels prepared on first use
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        for batch in batches:
            read(encoder, batch)
    products = products_of((event.name, event.input_shapes) for event in recorded.events() or ())
    dtype = encoder.kernel.dtype if isinstance(encoder, MiniLMEncoder) else torch.float32
    taken, best = list[float](), list[dict[str, float]]()
    for number in range(ROUNDS):
        taken.append(timed(whole))
        best.append(limits(products, dtype, cores))
        setting.say(f"round {number + 1} of {ROUNDS}: {taken[-1]:.2f} s, products alone {best[-1][BEST]:.2f} s")
    return _measured(products, dtype, taken, best, cores)


def products_of(events: Iterable[tuple[str, Sequence[Sequence[int]]]]) -> Counter[Product]:
    """Return which products were computed, by torch's record of operators and their inputs' shapes.

    Raises StateError where there is none: the operators have other names in this version of torch.
    """
    found = Counter[Product]()
    for name, shapes in events:
        at = OPERANDS.get(name)
        if at is None or len(shapes[at]) != 2 or shapes[at][0] < ROWS_MIN:
            continue
        rows, inner = shapes[at]
        right = shapes[at + 1]
        found[Product(rows, inner, right[1] if right[0] == inner and name.startswith("aten") else right[0])] += 1
    if not found:
        raise StateError(f"torch {torch.__version__} recorded none of {', '.join(OPERANDS)}")
    return found


def multiplications(product: Product, dtype: torch.dtype) -> dict[str, Multiply]:
    """Return what may compute a product on this machine, by name; one that it lacks is left out."""
    left = torch.randn(product.rows, product.inner).to(dtype)
    weight = torch.randn(product.columns, product.inner).to(dtype)
    right, out = weight.t().contiguous(), torch.empty(product.rows, product.columns, dtype=dtype)
    found: dict[str, Multiply] = {
        "mm": lambda: torch.mm(left, right, out=out),
        "mm, right side transposed": lambda: torch.mm(left, weight.t(), out=out),
    }
    try:
        packed = torch.ops.mkldnn._reorder_linear_weight(weight, product.rows)
        linear = torch.ops.mkldnn._linear_pointwise
        linear(left, packed, None, "none", [], "")
    except (AttributeError, RuntimeError, NotImplementedError):
        return found
    return {**found, "oneDNN, packed": lambda: linear(left, packed, None, "none", [], "")}


def limits(products: Mapping[Product, int], dtype: torch.dtype, cores: int) -> dict[str, float]:
    """Return the seconds that all products take, by kernel, and by the best one for each shape: all cores at one
    product, or each at one of its own, whichever takes less."""
    spent = defaultdict[str, float](float)
    for product, count in products.items():
        seconds = {f"{name}, all cores at one": one for name, one in joint(product, dtype, cores).items()}
        seconds |= {f"{name}, a core each": one for name, one in apart(product, dtype, cores).items()}
        for name, one in {**seconds, BEST: min(seconds.values())}.items():
            spent[name] += count * one
    return dict(spent)


@torch.inference_mode()
def joint(product: Product, dtype: torch.dtype, cores: int) -> dict[str, float]:
    """Return the seconds of a product by each kernel, all cores at it."""
    before = torch.get_num_threads()
    torch.set_num_threads(cores)
    try:
        return {name: min(timed(one) for _ in range(CALLS)) for name, one in multiplications(product, dtype).items()}
    finally:
        torch.set_num_threads(before)


def apart(product: Product, dtype: torch.dtype, cores: int) -> dict[str, float]:
    """Return the seconds of a product by each kernel, while each core computes one of its own."""
    begin = Barrier(cores)

    @torch.inference_mode()
    def blocks(_: int) -> dict[str, list[float]]:
        found = defaultdict[str, list[float]](list)
        for name, multiply in multiplications(product, dtype).items():
            for _ in range(BLOCKS):
                begin.wait(BEGIN_S_MAX)
                found[name].append(timed(partial(_called, multiply)))
        return found

    with ThreadPoolExecutor(cores) as threads:
        each = list(threads.map(blocks, range(cores)))
    return {
        name: min(max(block) for block in zip(*(of[name] for of in each), strict=True)) / CALLS / cores
        for name in each[0]
    }


def _called(multiply: Multiply) -> None:
    for _ in range(CALLS):
        multiply()


def timed(work: Callable[[], Any]) -> float:
    """Return the seconds that some work takes."""
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _measured(
    products: Mapping[Product, int],
    dtype: torch.dtype,
    taken: Sequence[float],
    best: Sequence[Mapping[str, float]],
    cores: int,
) -> Measured:
    operations = sum(count * product.operations for product, count in products.items())
    shares = [of[BEST] / spent for spent, of in zip(taken, best, strict=True)]
    rows = [
        (
            "texts",
            f"{TEXTS:,}, {SEAL_BATCH} a batch, their wording read; {cores} batches at once, a core each; {dtype}",
        ),
        ("products", f"{sum(products.values()):,} of {len(products)} shapes, {operations / 1e9:,.0f} GFLOP"),
        ("the encoder", f"{operations / 1e9 / median(taken):.0f} GFLOP/s, {1_000 * median(taken):.0f} ms"),
    ]
    for name in best[0]:
        middle = median(of[name] for of in best)
        rows.append((f"products alone, {name}", f"{operations / 1e9 / middle:.0f} GFLOP/s"))
    rows.append(("rounds", ", ".join(f"{share:.3f}" for share in shares)))
    return Measured(median(shares), tuple(rows))
