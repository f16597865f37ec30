"""The encoder the product runs: tokenise, sort, pack, encode, put back in order."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from tokenizers import Tokenizer

from memsluice.encoder.base import Precision
from memsluice.encoder.batching import batches, distinct
from memsluice.encoder.minilm import TOKENS_MAX, MiniLM
from memsluice.encoder.weights import DIMENSIONS, MODEL_ID, REVISION, TOKENIZER_FILE, WEIGHTS_FILE
from memsluice.errors import ConfigError

BATCH_TOKENS_MAX = 1024  # larger batches leave the caches: measured slower, and they bound memory at about 20 MiB
CHARACTERS_MAX = 1 << 20  # of one text; the product's own limit is 8 KiB

_CPU_FLAGS = Path("/proc/cpuinfo")


class MiniLMEncoder:
    """all-MiniLM-L6-v2 on the CPU; see :class:`memsluice.encoder.base.Encoder`.

    A text's vector does not depend on what is encoded beside it, nor on its place; ``precision`` says in which
    numbers the products were computed ("bf16" or "fp32").
    """

    model_id = MODEL_ID
    revision = REVISION
    dimensions = DIMENSIONS

    def __init__(self, weights: Path, *, threads: int | None = None, precision: Precision = "auto") -> None:
        if threads is not None:
            if threads < 1:
                raise ConfigError(f"encoder threads must be at least 1, not {threads}")
            torch.set_num_threads(threads)
        if precision == "auto":
            precision = "bf16" if _multiplies_bf16() else "fp32"
        if precision not in ("bf16", "fp32"):
            raise ConfigError(f"encoder precision {precision!r} is not one of auto, bf16, fp32")
        self.precision = precision
        self._model = MiniLM(weights / WEIGHTS_FILE, torch.bfloat16 if precision == "bf16" else torch.float32)
        self._tokenizer = Tokenizer.from_file(str(weights / TOKENIZER_FILE))
        self._tokenizer.no_padding()  # the published file pads and cuts at 128, the published config says 256
        self._tokenizer.enable_truncation(TOKENS_MAX)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 (len(texts), 384), L2-normalised rows in the order of ``texts``.

        Identical texts are encoded once. Text beyond 256 tokens is ignored, as the model's config says; halves of
        surrogate pairs, which no UTF-8 can carry, count as "?".

        Raises :class:`ConfigError` for a text of more than 2**20 characters: limits are for the caller to check.
        """
        wanted, places = distinct(texts)
        if any(len(text) > CHARACTERS_MAX for text in wanted):
            raise ConfigError(f"a text to encode has more than {CHARACTERS_MAX} characters")
        found = np.empty((len(wanted), DIMENSIONS), dtype=np.float32)
        encodings = self._tokenizer.encode_batch_fast([_encodable(text) for text in wanted])
        ids = [encoding.ids for encoding in encodings]
        for batch in batches([len(text) for text in ids], tokens_max=BATCH_TOKENS_MAX):
            found[batch] = self._model.vectors([ids[index] for index in batch]).numpy()
        return found[places] if len(wanted) != len(texts) else found


def _encodable(text: str) -> str:
    """Return ``text`` with lone surrogates replaced: the tokenizer would refuse the whole batch for one of them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def _multiplies_bf16(cpuinfo: Path = _CPU_FLAGS) -> bool:
    """Say whether the CPU has a bfloat16 matrix or dot-product unit (AMX, AVX-512 BF16)."""
    try:
        flags = cpuinfo.read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return "amx_bf16" in flags or "avx512_bf16" in flags
