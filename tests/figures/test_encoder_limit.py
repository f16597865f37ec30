"""What the encoder is held against: the products that it computed, and what computes them on this machine."""

import pytest
import torch

from memsluice.errors import StateError
from memsluice_lab.figures import encoder_limit
from memsluice_lab.figures.encoder_limit import Product, multiplications, products_of


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
def test_every_multiplication_gives_the_product(dtype: torch.dtype) -> None:
    """One that skips a part would set a limit that nobody reaches."""
    computed = multiplications(Product(32, 384, 64), dtype)
    results = {name: multiply() for name, multiply in computed.items()}
    assert len(results) >= 2
    for name, result in results.items():
        assert isinstance(result, torch.Tensor), name
        assert result.shape == (32, 64), name
        torch.testing.assert_close(result.float(), results["mm"].float(), rtol=0.02, atol=0.5, msg=name)


def test_the_limit_is_the_least_for_each_shape_of_all_cores_at_one_and_a_core_each(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A limit that leaves a core idle, or one kernel for all shapes, would be easier to reach."""
    large, small = Product(64, 32, 16), Product(32, 16, 8)
    planted = {"joint": {large: {"mm": 3.0}, small: {"mm": 2.0}}, "apart": {large: {"mm": 4.0}, small: {"mm": 1.0}}}
    for name, times in planted.items():
        monkeypatch.setattr(encoder_limit, name, lambda product, dtype, cores, of=times: of[product])
    found = encoder_limit.limits({large: 10, small: 1}, torch.float32, 2)
    assert found == {"mm, all cores at one": 32.0, "mm, a core each": 41.0, encoder_limit.BEST: 31.0}


def test_a_product_of_each_core_takes_what_the_slowest_takes_over_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two cores that are through with a block of calls after 6 and after 9 s each product took 1.5."""
    monkeypatch.setattr(encoder_limit, "multiplications", lambda product, dtype: {"mm": lambda: None})
    took = iter([9.0, 6.0] * encoder_limit.BLOCKS)
    monkeypatch.setattr(encoder_limit, "timed", lambda work: next(took))
    assert encoder_limit.apart(Product(64, 32, 16), torch.float32, 2) == {"mm": 9.0 / encoder_limit.CALLS / 2}


def test_what_other_threads_use_stays_as_it_was() -> None:
    """The limit is measured between two readings of the texts, which are to run as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert set(encoder_limit.joint(Product(64, 32, 16), torch.float32, 1)) >= {"mm"}
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
