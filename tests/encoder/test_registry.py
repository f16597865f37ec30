"""An encoder is chosen by name: what names mean, what is refused, and a model of one's own through the whole gate."""

import sys
from collections.abc import Sequence
from pathlib import Path
from shutil import copytree

import numpy as np
import pytest
from tests.encoder import overlay
from tests.encoder.texts import MIXED
from tests.encoder.tiny import DIMENSIONS, build

from memsluice.encoder import EncoderSetting, load_encoder, register, registry, space_of_encoder
from memsluice.encoder.weights import MODEL_ID, REVISION
from memsluice.envelope import space
from memsluice.errors import ConfigError


class Constant:
    """An encoder that somebody wrote: every text's vector is the same."""

    model_id, revision = "acme/constant", "1"

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the first axis, once a text."""
        return np.eye(1, self.dimensions, dtype=np.float32).repeat(len(texts), axis=0)


@pytest.fixture
def unregistered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget afterwards what a test registers."""
    monkeypatch.setattr(registry, "_LOADERS", dict(registry._LOADERS))


def test_the_default_encoder_is_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever sets nothing has all-MiniLM-L6-v2 of the pinned revision, as has whoever names it."""
    monkeypatch.delenv("MEMSLUICE_ENCODER", raising=False)
    assert EncoderSetting.read() == EncoderSetting.parse("minilm")
    encoder = load_encoder()
    assert (encoder.model_id, encoder.revision) == (MODEL_ID, REVISION)
    assert space_of_encoder(encoder) == space.DEFAULT == space.Space()


def test_a_setting_has_a_name_a_model_and_options() -> None:
    """A folder's path and a hub's name are both models; options are those of an address."""
    found = EncoderSetting.parse("sentence-transformers:/srv/models/e5?backend=onnx&device=cpu")
    assert (found.name, found.model) == ("sentence-transformers", "/srv/models/e5")
    assert found.options == {"backend": "onnx", "device": "cpu"}
    assert EncoderSetting.parse("sentence-transformers:BAAI/bge-small-en").model == "BAAI/bge-small-en"


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("nonsense", "MEMSLUICE_ENCODER=nonsense names no encoder: there are minilm, sentence-transformers"),
        ("minilm:other", "sentence-transformers:MODEL"),
        ("minilm?device=cpu", "has the option 'device', which is none: this encoder has none"),
        ("sentence-transformers", "names no model"),
        ("sentence-transformers:/nowhere/at/all", "/nowhere/at/all does not exist"),
        ("sentence-transformers:x?backend=cuda", "there are torch, onnx, openvino"),
        ("sentence-transformers:x?speed=high", "there are backend, device"),
        ("minilm?a=1&a=2", "each of them once"),
        ("minilm?a", "each of them once"),
    ],
)
def test_what_means_nothing_is_refused_in_words(monkeypatch: pytest.MonkeyPatch, setting: str, said: str) -> None:
    """The message names the setting and its value, and lists what there is: at start, before anything is read."""
    monkeypatch.setenv("MEMSLUICE_ENCODER", setting)
    with pytest.raises(ConfigError) as told:
        load_encoder()
    assert said in str(told.value)


@pytest.mark.parametrize("setting", ["nonsense", "minilm:other", "minilm?device=cpu", "minilm?a", "constant:7"])
@pytest.mark.usefixtures("unregistered")
def test_a_refusal_names_where_the_setting_came_from(monkeypatch: pytest.MonkeyPatch, setting: str) -> None:
    """A name that a program gave is quoted alone, whatever the environment says: nobody looks for a variable that is
    not at fault. One that the environment gave is named with its variable."""
    register("constant", lambda setting, _: Constant(int(setting.model)))
    monkeypatch.setenv("MEMSLUICE_ENCODER", "minilm")
    with pytest.raises(ConfigError) as told:
        load_encoder(setting)
    assert str(told.value).startswith(f"'{setting}'")
    assert "MEMSLUICE_ENCODER" not in str(told.value)
    monkeypatch.setenv("MEMSLUICE_ENCODER", setting)
    with pytest.raises(ConfigError) as told:
        load_encoder()
    assert str(told.value).startswith(f"MEMSLUICE_ENCODER={setting}")


@pytest.mark.usefixtures("unregistered")
def test_somebodys_own_encoder_gets_a_name() -> None:
    """Whoever has an encoder that no library loads registers it; a name is given once, and dimensions are checked."""
    register("constant", lambda setting, _: Constant(int(setting.model)))
    assert load_encoder("constant:8").encode(["a", "b"]).shape == (2, 8)
    with pytest.raises(ConfigError, match="taken"):
        register("minilm", lambda setting, _: Constant(8))
    for dimensions in (7, 4_000):
        with pytest.raises(ConfigError, match=f"vectors of {dimensions} dimensions"):
            load_encoder(f"constant:{dimensions}")


def test_any_model_of_the_library_gives_unit_vectors_in_order(tiny: Path) -> None:
    """A model in a folder is loaded with its own dimensions; texts repeat, are empty, or hold half a surrogate pair."""
    encoder = load_encoder(f"sentence-transformers:{tiny}?device=cpu", threads=1)
    assert encoder.dimensions == DIMENSIONS
    texts = [*MIXED[:6], MIXED[0], "", "broken \ud83d text"]
    found = encoder.encode(texts)
    assert (found.shape, found.dtype) == ((len(texts), DIMENSIONS), np.float32)
    assert np.allclose(np.linalg.norm(found, axis=1), 1, atol=1e-5)
    assert np.array_equal(found[0], found[6])
    assert float(found[1] @ encoder.encode([MIXED[1]])[0]) > 0.9999
    assert encoder.encode([]).shape == (0, DIMENSIONS)


def test_a_model_is_known_by_what_is_in_its_folder(tiny: Path, tmp_path: Path) -> None:
    """A copy is the same model; other weights under the same name are another, and what a backend added is no part."""
    copy = copytree(tiny, tmp_path / "elsewhere" / tiny.name)
    (copy / "onnx").mkdir()
    (copy / "onnx" / "model.json").write_text("{}")
    other = build(tmp_path / tiny.name, seed=2)
    first, same, changed = (space_of_encoder(load_encoder(f"sentence-transformers:{at}")) for at in (tiny, copy, other))
    assert first == same
    assert first.model.startswith("tiny-96@")
    assert first.model != changed.model


def test_a_shortened_vector_has_a_space_of_its_own(tiny: Path) -> None:
    """``truncate_dim`` is the library's: vectors are shorter, of length 1, and comparable with no longer ones."""
    encoder = load_encoder(f"sentence-transformers:{tiny}?truncate_dim=32")
    assert encoder.encode(["one text"]).shape == (1, 32)
    assert np.linalg.norm(encoder.encode(["one text"])[0]) == pytest.approx(1, abs=1e-5)
    assert space_of_encoder(encoder).dimensions == 32


@pytest.mark.parametrize("backend", ["onnx", "openvino"])
def test_a_backend_that_is_not_installed_says_what_to_install(
    tiny: Path, monkeypatch: pytest.MonkeyPatch, backend: str
) -> None:
    """The library's own advice is passed on, in the sentence that names the model."""
    monkeypatch.setitem(sys.modules, "optimum", None)  # not to be found, wherever it is installed
    with pytest.raises(ConfigError, match=f"tiny-96 cannot be loaded on backend {backend}: .*nstall"):
        load_encoder(f"sentence-transformers:{tiny}?backend={backend}")


@pytest.mark.parametrize(
    ("backend", "runs"), [("onnx", "ORTModelForFeatureExtraction"), ("openvino", "OVModelForFeatureExtraction")]
)
def test_another_backend_gives_the_vectors_that_torch_gives(
    tiny: Path, tmp_path: Path, backend: str, runs: str
) -> None:
    """A backend is no part of a model's identity: the same space, and the same vectors but for rounding, though the
    library and its own libraries are older ones, which the backend's packages ask for."""
    copy = copytree(tiny, tmp_path / tiny.name)  # the library writes what it compiles beside the weights
    plain = load_encoder(f"sentence-transformers:{tiny}")
    python = overlay.environment(tmp_path / "environment", backend)
    space_there, there, ran = overlay.encode(python, f"sentence-transformers:{copy}?backend={backend}", MIXED[:4])
    assert ran == runs
    assert space_there == space_of_encoder(plain)
    assert (plain.encode(MIXED[:4]) * there).sum(axis=1).min() > 0.999


def test_an_unknown_prompt_is_refused(tiny: Path) -> None:
    """A prompt that the model does not have would silently change nothing."""
    with pytest.raises(ConfigError, match="has no prompt 'query'"):
        load_encoder(f"sentence-transformers:{tiny}?prompt_name=query")


@pytest.mark.gpu
def test_a_gpu_gives_the_vectors_that_the_cpu_gives(tiny: Path) -> None:
    """Where it runs is no part of a model's identity: vectors agree but for rounding."""
    on_cpu, on_gpu = (load_encoder(f"sentence-transformers:{tiny}?device={device}") for device in ("cpu", "cuda"))
    assert space_of_encoder(on_cpu) == space_of_encoder(on_gpu)
    assert (on_cpu.encode(MIXED) * on_gpu.encode(MIXED)).sum(axis=1).min() > 0.9999
