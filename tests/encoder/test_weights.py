"""Only the published weights are ever loaded, and from where one expects."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memsluice.encoder import weights
from memsluice.errors import ConfigError

PACKAGED = weights.find_weights({})


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A model directory whose files are links to the packaged ones."""
    for name in weights.PUBLISHED_SHA256:
        (tmp_path / name).symlink_to(PACKAGED / name)
    return tmp_path


def replace(path: Path, content: bytes) -> None:
    """Put other content in the place of a link."""
    path.unlink()
    path.write_bytes(content)


def test_the_packaged_weights_are_the_published_ones() -> None:
    """The package from the registry carries the files whose digests the model's publisher lists."""
    assert weights.PUBLISHED_SHA256[weights.WEIGHTS_FILE].startswith("53aa5117")
    weights.check_digests(PACKAGED)


def test_a_named_directory_comes_first(copied: Path) -> None:
    """MEMSLUICE_MODEL_DIR wins over every other source."""
    assert weights.find_weights({"MEMSLUICE_MODEL_DIR": str(copied), "MEMSLUICE_MODEL": "hub"}) == copied


@pytest.mark.parametrize("name", list(weights.PUBLISHED_SHA256))
def test_a_changed_file_is_refused(copied: Path, name: str) -> None:
    """One changed byte, in the weights or in the tokenizer, is another model: it is not loaded."""
    content = bytearray((PACKAGED / name).read_bytes())
    content[-1] ^= 1
    replace(copied / name, bytes(content))
    with pytest.raises(ConfigError, match=f"{name}: sha256 .* is not the published"):
        weights.find_weights({"MEMSLUICE_MODEL_DIR": str(copied)})


@pytest.mark.parametrize("name", list(weights.PUBLISHED_SHA256))
def test_a_missing_file_is_named(copied: Path, name: str) -> None:
    """Whoever points to an incomplete directory is told which file to fetch."""
    (copied / name).unlink()
    with pytest.raises(ConfigError, match=name):
        weights.find_weights({"MEMSLUICE_MODEL_DIR": str(copied)})


def test_an_unknown_source_is_refused() -> None:
    """A misspelt MEMSLUICE_MODEL does not fall back in silence."""
    with pytest.raises(ConfigError, match="hbu"):
        weights.find_weights({"MEMSLUICE_MODEL": "hbu"})


def run(code: str, **environ: str) -> str:
    """Run Python code in a fresh process and return what it prints."""
    environment = {name: value for name, value in (os.environ | environ).items() if value}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_offline_hub_falls_back_to_the_package(tmp_path: Path) -> None:
    """Asked for the hub, but offline and with an empty cache, the same bytes come from the package."""
    code = "from memsluice.encoder.weights import find_weights; print(find_weights())"
    found = run(code, MEMSLUICE_MODEL="hub", HF_HUB_OFFLINE="1", HF_HOME=str(tmp_path), MEMSLUICE_MODEL_DIR="")
    assert Path(found) == PACKAGED


def test_importing_is_cheap() -> None:
    """Importing the package loads no torch: commands that encode nothing start at once."""
    heavy = "{'torch', 'transformers', 'sentence_transformers', 'tokenizers', 'huggingface_hub'}"
    assert run(f"import sys, memsluice.encoder; print(sorted({heavy} & set(sys.modules)))") == "[]"


@pytest.mark.parametrize(("given", "expected"), [("", "PASSIVE"), ("ACTIVE", "ACTIVE")])
def test_loading_alone(given: str, expected: str) -> None:
    """Loading and encoding import neither transformers nor the hub client and open no socket; torch's threads sleep
    when they wait, unless somebody wants otherwise.
    """
    code = (
        "import os, socket, sys\n"
        "def refuse(*args, **kwargs): raise AssertionError('network')\n"
        "socket.socket.connect = refuse\n"
        "from memsluice.encoder import load_encoder\n"
        "print(load_encoder().encode(['a']).shape)\n"
        "print(sorted({'transformers', 'sentence_transformers', 'huggingface_hub'} & set(sys.modules)))\n"
        "print(os.environ['OMP_WAIT_POLICY'])"
    )
    found = run(code, MEMSLUICE_MODEL="package", MEMSLUICE_MODEL_DIR="", OMP_WAIT_POLICY=given)
    assert found == f"(1, 384)\n[]\n{expected}"
