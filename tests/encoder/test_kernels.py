"""Which kernel computes the encoder's products: each gives the same, the fastest is taken, and it stays the same."""

import json
import time
from pathlib import Path
from threading import Lock

import numpy as np
import pytest
import torch

from memsluice.encoder import Encoder, kernels, load_encoder
from memsluice.encoder.kernels import FILE, Kernel, Linear
from memsluice.errors import ConfigError

from .texts import MIXED

EVERY = [*kernels.kernels("bf16"), *kernels.kernels("fp32")]
TORCH, ONEDNN = Kernel("fp32", "torch"), Kernel("fp32", "onednn")


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where choices are remembered: nothing is there yet."""
    monkeypatch.setenv("MEMSLUICE_CACHE", str(tmp_path / "memsluice"))
    return tmp_path / "memsluice" / FILE


def took(monkeypatch: pytest.MonkeyPatch, **seconds: float) -> list[int]:
    """Let measuring find these seconds; return a list that grows with each time that is measured."""
    times = list[int]()

    def measured(some: list[Kernel]) -> dict[Kernel, list[float]]:
        times.append(1)
        return {one: [seconds[one.library]] for one in some}

    monkeypatch.setattr(kernels, "measured", measured)
    return times


@pytest.mark.parametrize("kernel", EVERY)
@pytest.mark.parametrize("rows", [16, 17, 300])
def test_each_kernel_gives_the_product(kernel: Kernel, rows: int) -> None:
    """x Wᵀ + b, to float32's rounding or to bfloat16's, however many rows, with a bias and without."""
    generator = torch.Generator().manual_seed(rows)
    x, weight, bias = (torch.randn(*shape, generator=generator) for shape in ((rows, 384), (64, 384), (64,)))
    exact = x.double() @ weight.double().T
    near = 2e-6 if kernel.precision == "fp32" else 2e-2
    for given, expected in ((bias, exact + bias), (None, exact)):
        found = kernel.linear(weight, given)(x.to(kernel.dtype)).double()
        assert float((found - expected).abs().max() / expected.abs().max()) < near


def encoder_by(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> Encoder:
    """Return an encoder that was made to compute by a kernel."""
    monkeypatch.setattr(kernels, "measured", lambda some: {one: [1.0 - (one == kernel) / 2] for one in some})
    monkeypatch.setenv("MEMSLUICE_CACHE", "/dev/null")
    encoder = load_encoder(precision=kernel.precision)
    assert encoder.kernel == kernel  # type: ignore[attr-defined]
    return encoder


@pytest.mark.parametrize("kernel", kernels.kernels("auto"), ids=str)
def test_the_encoder_agrees_with_itself_by_any_kernel(kernel: Kernel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Vectors of two kernels are one model's: their cosine is 0.999999 at least in float32, 0.9999 in bfloat16, for a
    text among others and for one alone."""
    expected = encoder_by(TORCH, monkeypatch).encode(MIXED[:12])
    encoder = encoder_by(kernel, monkeypatch)
    alone = np.concatenate([encoder.encode([text]) for text in MIXED[:12]])
    for found in (encoder.encode(MIXED[:12]), alone):
        assert (found * expected).sum(axis=1).min() > (0.999999 if kernel.precision == "fp32" else 0.9999)


def test_the_fastest_is_taken_and_remembered(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A start measures once; the next one computes by what was chosen then, though it would measure otherwise."""
    times = took(monkeypatch, torch=1.0, onednn=0.8)
    assert kernels.fastest_kernel("fp32") == ONEDNN
    took(monkeypatch, torch=0.5, onednn=0.8)
    assert kernels.fastest_kernel("fp32") == ONEDNN
    assert len(times) == 1
    assert list(json.loads(cache.read_text()).values()) == ["fp32/onednn"]


def test_of_two_that_start_at_once_both_compute_by_one_kernel(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each measures under the load of the other, and may find another kernel faster: what was kept first counts."""

    def measured(some: list[Kernel]) -> dict[Kernel, list[float]]:
        took(monkeypatch, torch=0.5, onednn=1.0)
        assert kernels_kept() == TORCH
        return {TORCH: [1.0], ONEDNN: [0.5]}

    def kernels_kept() -> Kernel:
        monkeypatch.setattr(kernels, "_MEASURING", Lock())  # the other is a process of its own
        return kernels.fastest_kernel("fp32")

    monkeypatch.setattr(kernels, "measured", measured)
    assert kernels.fastest_kernel("fp32") == TORCH
    assert list(json.loads(cache.read_text()).values()) == ["fp32/torch"]


def test_what_was_asked_for_and_has_no_unit_is_not_measured(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Emulated bfloat16 takes minutes to measure: whoever asks for it where no unit multiplies it gets the usual."""
    monkeypatch.setattr(kernels, "_multiplies_bf16", lambda _: False)
    times = took(monkeypatch, torch=0.5, onednn=1.0)
    assert kernels.fastest_kernel("bf16") == kernels.kernels("bf16")[0]
    assert not times


def test_a_tie_changes_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two that are nearly as fast the usual one is taken: noise gives a machine no other numbers."""
    took(monkeypatch, torch=1.0, onednn=0.96)
    assert kernels.fastest_kernel("fp32") == TORCH


def test_a_busy_moment_changes_nothing() -> None:
    """A kernel that is not faster each time it is measured is not taken for being so at most times."""
    usual = [1.0, 1.0, 1.0, 1.0]
    assert kernels.fastest({TORCH: usual, ONEDNN: [0.5, 0.5, 1.0, 0.5]}) == TORCH
    assert kernels.fastest({TORCH: usual, ONEDNN: [0.5, 0.5, 0.9, 0.5]}) == ONEDNN
    third = Kernel("bf16", "torch")
    assert kernels.fastest({TORCH: usual, ONEDNN: [0.3, 1.0, 1.0, 1.0], third: [0.6] * 4}) == third


def test_another_torch_or_processor_is_measured_anew(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another version, or another machine's processor on the same disk, was best at is no choice for this one."""
    took(monkeypatch, torch=1.0, onednn=0.5)
    kernels.fastest_kernel("fp32")
    for name in ("a processor", "another"):
        monkeypatch.setattr(kernels, "_processor", lambda name=name: name)
        times = took(monkeypatch, torch=0.5, onednn=1.0)
        assert kernels.fastest_kernel("fp32") == TORCH
        assert len(times) == 1
    assert len(json.loads(cache.read_text())) == 3


@pytest.mark.parametrize("written", ["", "[1]", '{"x": 1}', "{", "\xff"])
def test_a_file_that_is_none_of_ours_is_written_anew(
    cache: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    """A cut or a foreign file stops no start."""
    cache.parent.mkdir()
    cache.write_text(written, "latin-1")
    took(monkeypatch, torch=1.0, onednn=0.5)
    assert kernels.fastest_kernel("fp32") == ONEDNN
    assert "fp32/onednn" in json.loads(cache.read_text()).values()


def test_a_disk_that_takes_nothing_stops_no_start(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the choice cannot be kept it is made at each start."""
    cache.parent.write_text("a file where the folder would be")
    times = took(monkeypatch, torch=1.0, onednn=0.5)
    assert [kernels.fastest_kernel("fp32") for _ in range(2)] == [ONEDNN, ONEDNN]
    assert len(times) == 2


def test_bfloat16_is_offered_where_the_processor_multiplies_it(tmp_path: Path) -> None:
    """Elsewhere it is emulated, and takes many times as long; who asks for a precision gets it anywhere."""
    with_unit, without = tmp_path / "with", tmp_path / "without"
    with_unit.write_text("model name\t: Some CPU\nflags\t\t: fpu amx_bf16 sse\n")
    without.write_text("model name\t: amx_bf16 in its name alone\nflags\t\t: fpu sse\n")
    assert {TORCH, ONEDNN} <= set(EVERY)
    assert {one.precision for one in kernels.kernels("auto", with_unit)} == {"bf16", "fp32"}
    assert {one.precision for one in kernels.kernels("auto", without)} == {"fp32"}
    assert {one.precision for one in kernels.kernels("auto", tmp_path / "none")} == {"fp32"}
    assert {one.precision for one in kernels.kernels("bf16", without)} == {"bf16"}
    assert {one.precision for one in kernels.kernels("fp32", with_unit)} == {"fp32"}
    with pytest.raises(ConfigError, match="int8"):
        kernels.kernels("int8", with_unit)  # type: ignore[arg-type]


def test_measuring_times_every_kernel() -> None:
    """A kernel that computes the same and waits besides is the slower one."""

    class Waiting(Kernel):
        def linear(self, weight: torch.Tensor, bias: torch.Tensor | None) -> Linear:
            apply = super().linear(weight, bias)
            return lambda x: (time.sleep(0.05), apply(x))[1]

    threads = torch.get_num_threads()
    found = kernels.measured([Waiting("fp32", "onednn"), TORCH])
    assert kernels.fastest(found) == TORCH
    assert [len(rounds) for rounds in found.values()] == [kernels.ROUNDS] * 2
    assert torch.get_num_threads() == threads
