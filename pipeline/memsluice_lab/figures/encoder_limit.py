"""How near the encoder comes to what the machine's matrix products allow: beside the same products by themselves."""

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile

from memsluice.encoder import load_encoder
from memsluice.encoder.base import read
from memsluice.errors import StateError
from memsluice_lab.baselines import OWN_BATCHES
from memsluice_lab.figures.records import streams
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.streams import read_stream

TEXTS = 512
BATCH = max(OWN_BATCHES)
ROUNDS = 5
CALLS = 3
"""Of each kernel, of which the fastest counts."""
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


Kernel = Callable[[], object]


def encoder_of_limit(setting: Setting) -> Measured:
    """The time that the linear layers' products take by the machine's best kernel, over that of reading the texts."""
    with streams(setting) as paths:
        texts = [str(line["text"]) for path in paths for line in read_stream(path) if line["kind"] == "write"]
    chosen, encoder = texts[:: max(1, len(texts) // TEXTS)][:TEXTS], load_encoder()

    def whole() -> None:
        for at in range(0, len(chosen), BATCH):
            read(encoder, chosen[at : at + BATCH])

    whole()  # the first call pays for kernels prepared on first use
    with profile(activities=[ProfilerActivity.CPU], record_shapes=True) as recorded:
        whole()
    products = products_of((event.name, event.input_shapes) for event in recorded.events() or ())
    dtype = torch.bfloat16 if getattr(encoder, "precision", "") == "bf16" else torch.float32
    taken, best = list[float](), list[dict[str, float]]()
    for number in range(ROUNDS):
        taken.append(_timed(whole))
        best.append(_limits(products, dtype))
        setting.say(f"round {number + 1} of {ROUNDS}: {taken[-1]:.2f} s, products alone {best[-1][BEST]:.2f} s")
    return _measured(products, dtype, taken, best)


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


def kernels(product: Product, dtype: torch.dtype) -> dict[str, Kernel]:
    """Return what may compute a product on this machine, by name; a kernel that it lacks is left out."""
    left = torch.randn(product.rows, product.inner).to(dtype)
    weight = torch.randn(product.columns, product.inner).to(dtype)
    right, out = weight.t().contiguous(), torch.empty(product.rows, product.columns, dtype=dtype)
    found: dict[str, Kernel] = {
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


@torch.inference_mode()
def _limits(products: Mapping[Product, int], dtype: torch.dtype) -> dict[str, float]:
    """Return the seconds that all products take, by kernel, and by the best one for each shape."""
    spent = defaultdict[str, float](float)
    for product, count in products.items():
        seconds = {name: min(_timed(kernel) for _ in range(CALLS)) for name, kernel in kernels(product, dtype).items()}
        for name, one in {**seconds, BEST: min(seconds.values())}.items():
            spent[name] += count * one
    return dict(spent)


def _timed(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _measured(
    products: Mapping[Product, int], dtype: torch.dtype, taken: Sequence[float], best: Sequence[Mapping[str, float]]
) -> Measured:
    operations = sum(count * product.operations for product, count in products.items())
    shares = [limits[BEST] / spent for spent, limits in zip(taken, best, strict=True)]
    rows = [
        ("texts", f"{TEXTS}, {BATCH} at a time, with their wording; {torch.get_num_threads()} threads, {dtype}"),
        ("products", f"{sum(products.values()):,} of {len(products)} shapes, {operations / 1e9:,.0f} GFLOP"),
        ("the encoder", f"{operations / 1e9 / median(taken):.0f} GFLOP/s, {1_000 * median(taken):.0f} ms"),
    ]
    for name in best[0]:
        middle = median(limits[name] for limits in best)
        rows.append((f"products alone, {name}", f"{operations / 1e9 / middle:.0f} GFLOP/s"))
    rows.append(("rounds", ", ".join(f"{share:.3f}" for share in shares)))
    return Measured(median(shares), tuple(rows))
