"""Any model that the library ``sentence-transformers`` loads, on any of its backends and devices.

The model's identity is what its vectors depend on: its name with the hub's commit, or a folder's name with a digest of
its weights, tokenizer and configuration; and options that change vectors (``file_name``, ``prompt_name``). Backends and
devices compute the same vectors but for rounding, as the library promises, so they are no part of it.
"""

import hashlib
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from huggingface_hub import try_to_load_from_cache
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from memsluice.encoder.batching import distinct
from memsluice.encoder.texts import encodable
from memsluice.envelope.space import DIMENSIONS_MAX
from memsluice.errors import ConfigError

BACKENDS = ("torch", "onnx", "openvino")
OPTIONS = ("backend", "device", "revision", "file_name", "truncate_dim", "prompt_name")
ORGANISATION = "sentence-transformers"
"""Of models that are named without one."""
_IDENTIFYING = (".json", ".txt", ".model", ".safetensors", ".bin")
_COMPILED = ("onnx", "openvino")
"""Folders of what a backend made of the weights, perhaps at its first start."""


class SentenceTransformerEncoder:
    """One loaded model; see :class:`memsluice.encoder.base.Encoder`. Calls of several threads wait for one another."""

    def __init__(self, model: SentenceTransformer, model_id: str, revision: str, prompt_name: str | None) -> None:
        self.model_id = model_id
        self.revision = revision
        self.dimensions = _dimensions(model)
        self._model = model
        self._prompt_name = prompt_name
        self._one = threading.Lock()  # a tokenizer is told anew how to pad, at each call

    @property
    def device(self) -> str:
        """Where it runs: ``cpu``, ``cuda:0`` …"""
        return str(self._model.device)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 (len(texts), d), L2-normalised rows in the order of ``texts``.

        Identical texts are encoded once. Text beyond the model's own longest is ignored. A text in which the model
        finds nothing, as one of words may, has a row of zeros.

        Raises :class:`ConfigError` for a text of more than 2**20 characters, and for a model that gives what is no
        vector: not finite, or of another length.
        """
        wanted, places = distinct(texts)
        if not wanted:
            return np.empty((0, self.dimensions), np.float32)
        with self._one:
            made: Any = self._model.encode(
                encodable(wanted),
                prompt_name=self._prompt_name,
                show_progress_bar=False,
                convert_to_numpy=True,
                normalize_embeddings=True,
            )
        found = np.ascontiguousarray(made, dtype=np.float32)
        of_each = np.linalg.norm(found, axis=1)
        if not ((np.abs(of_each - 1) < 0.01) | (of_each == 0)).all():  # NaN is neither
            raise ConfigError(f"the encoder {self.model_id} gave a vector whose length is not 1")
        return found[places] if len(wanted) != len(texts) else found


def load(model: str, options: Mapping[str, str], *, threads: int | None) -> SentenceTransformerEncoder:
    """Load a model by its name or folder. Raises ConfigError, which says which model and why."""
    backend, prompt_name = options.get("backend", "torch"), options.get("prompt_name")
    if backend not in BACKENDS:
        raise ConfigError(f"the encoder's backend {backend!r} is none: there are {', '.join(BACKENDS)}")
    if threads is not None:
        if threads < 1:
            raise ConfigError(f"encoder threads must be at least 1, not {threads}")
        torch.set_num_threads(threads)
    folder = Path(model).expanduser()
    if not folder.is_dir() and model.startswith(("/", ".", "~")):
        raise ConfigError(f"the encoder's folder {folder} does not exist")
    given: dict[str, Any] = {name: options[name] for name in ("device", "revision") if name in options}
    if "truncate_dim" in options:
        given["truncate_dim"] = _truncated(options["truncate_dim"])
    if "file_name" in options:
        given["model_kwargs"] = {"file_name": options["file_name"]}
    source = str(folder) if folder.is_dir() else model
    try:
        loaded = SentenceTransformer(source, backend=backend, **given)
    except Exception as error:  # of three libraries, each with its own
        why = str(error).strip().partition("\n")[0]
        raise ConfigError(f"the encoder {source} cannot be loaded on backend {backend}: {why}") from error
    if prompt_name is not None and not loaded.prompts.get(prompt_name):  # it lists empty ones that no model has
        known = ", ".join(name for name, prompt in loaded.prompts.items() if prompt) or "none"
        raise ConfigError(f"the encoder {source} has no prompt {prompt_name!r}: it has {known}")
    name, revision = _identity(model, folder, options.get("revision"))
    marks = [f"{option}={options[option]}" for option in ("file_name", "prompt_name") if option in options]
    return SentenceTransformerEncoder(loaded, name, "+".join([revision, *marks]), prompt_name)


def _identity(model: str, folder: Path, revision: str | None) -> tuple[str, str]:
    """Return the model's name and what tells it from others of the name."""
    if folder.is_dir():
        return folder.resolve().name, digest_of(folder)
    for name in (model, f"{ORGANISATION}/{model}"):
        found = try_to_load_from_cache(name, "config.json", revision=revision)
        if isinstance(found, str):
            return name, Path(found).parent.name  # snapshots/COMMIT/config.json
    raise ConfigError(
        f"the hub's cache does not tell which revision of the encoder {model} was loaded: name a folder that holds it"
    )


def digest_of(folder: Path) -> str:
    """Return 40 hex digits that stand for what a model's vectors depend on: weights, tokenizer and configuration.

    What a backend made of the weights is left out: it is made anew, and stands beside them under a name of its own.
    """
    whole = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.suffix not in _IDENTIFYING or not path.is_file() or inside.parts[0] in _COMPILED:
            continue
        with path.open("rb") as stream:
            of_file = hashlib.file_digest(stream, "sha256").hexdigest()
        whole.update(f"{inside.as_posix()}\0{of_file}\n".encode())
    return whole.hexdigest()[:40]


def _dimensions(model: SentenceTransformer) -> int:
    asked = getattr(model, "get_embedding_dimension", None) or model.get_sentence_embedding_dimension  # its older name
    found = asked()
    if found is None:  # a model that does not say so
        found = int(np.asarray(model.encode(["dimensions"], show_progress_bar=False)).shape[1])
    return int(found)


def _truncated(text: str) -> int:
    if not (text.isascii() and text.isdecimal()) or not 2 <= int(text[:9]) <= DIMENSIONS_MAX or int(text[:9]) % 2:
        raise ConfigError(f"the encoder's truncate_dim {text!r} is no even number from 2 to {DIMENSIONS_MAX}")
    return int(text)
