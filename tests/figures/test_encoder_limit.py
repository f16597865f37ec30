"""What the encoder is held against: the products that it computed, and what computes them on this machine."""

import pytest
import torch

from memsluice.errors import StateError
from memsluice_lab.figures.encoder_limit import BEST, Product, kernels, limits, products_of


def test_products_are_counted_by_their_shapes() -> None:
    """A product by its operator, whichever way round its weight lies; a row by itself and other operators are none."""
    found = products_of(
        [
            ("aten::addmm", [[1152], [64, 384], [384, 1152], [], []]),
            ("aten::mm", [[64, 384], [384, 384]]),
            ("aten::mm", [[64, 384], [384, 384]]),
            ("mkldnn::_linear_pointwise", [[32, 384], [1152, 384], [1152], [], [], []]),
            ("aten::mm", [[1, 384], [384, 384]]),
            ("aten::bmm", [[12, 7, 32], [12, 32, 7]]),
        ]
    )
    assert found == {Product(64, 384, 1152): 1, Product(64, 384, 384): 2, Product(32, 384, 1152): 1}
    assert Product(64, 384, 1152).operations == 2 * 64 * 384 * 1152


def test_a_torch_that_names_its_operators_otherwise_is_no_limit_of_zero() -> None:
    """An encoder that computed nothing would be at its limit, or infinitely far from it."""
    with pytest.raises(StateError, match="recorded none of"):
        products_of([("aten::gelu_", [[64, 384]])])


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_every_kernel_computes_the_product(dtype: torch.dtype) -> None:
    """A kernel that skips a part would set a limit that nobody reaches."""
    computed = kernels(Product(32, 384, 64), dtype)
    results = {name: kernel() for name, kernel in computed.items()}
    assert len(results) >= 2
    for name, result in results.items():
        assert isinstance(result, torch.Tensor), name
        assert result.shape == (32, 64), name
        torch.testing.assert_close(result.float(), results["mm"].float(), rtol=0.02, atol=0.5, msg=name)


def test_the_limit_is_the_least_of_what_every_kernel_takes_on_all_cores() -> None:
    """A limit that leaves a core idle would be easy to reach: each kernel is tried with all cores at one product, and
    with one for each; what other threads use stays as it was."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        found = limits({Product(64, 32, 16): 3, Product(32, 16, 8): 1}, torch.float32, 2)
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
    best = found.pop(BEST)
    assert {name.split(", ")[-1] for name in found} == {"all cores at one", "a core each"}
    assert 0 < best <= min(found.values())
