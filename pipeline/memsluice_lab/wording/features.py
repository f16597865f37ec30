"""What the head learns from: the encoder's fourth layer of every text of the corpus, kept in files."""

import json
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from threading import get_ident

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder import load_encoder
from memsluice.encoder.loop import MiniLMEncoder

AT_ONCE = 512
PARTS = ("sizes", "tokens", "unit_sizes", "text_units")
Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Features:
    """``states`` (T, 384) float16, of text after text, which end at ``ends``.

    The units' tokens are ``tokens``, numbered within their text, unit after unit; units end at ``unit_ends`` and a
    text's units at ``text_units``.
    """

    states: NDArray[np.float16]
    ends: Whole
    tokens: Whole
    unit_ends: Whole
    text_units: Whole


def features(texts: Sequence[str], keep: Path) -> Features:
    """Encode all texts; the states lie in the folder ``keep``, which may take 8 GiB.

    Each core encodes some of them, on a thread of its own: the states are the same on any number of cores. Texts of
    which it has the states are not encoded again, so a corpus that only grew at its end is soon read. Whoever changes
    the encoder or how text is read starts with an empty folder.
    """
    encoder = load_encoder(threads=1)
    assert isinstance(encoder, MiniLMEncoder)
    keep.mkdir(parents=True, exist_ok=True)
    counted: dict[str, list[Whole]] = {name: [] for name in PARTS}
    some = [texts[first : first + AT_ONCE] for first in range(0, len(texts), AT_ONCE)]
    with (keep / "states.f16").open("wb") as out, ThreadPoolExecutor(len(os.sched_getaffinity(0))) as cores:
        for file in cores.map(lambda one: _kept(encoder, one, keep), some):
            with np.load(file) as part:
                out.write(part["states"].tobytes())
                for name in PARTS:
                    counted[name].append(part[name])
    sizes, tokens, unit_sizes, text_units = (np.concatenate(counted[name]) for name in PARTS)
    ends = np.cumsum(sizes)
    kept = np.memmap(keep / "states.f16", np.float16, "r", shape=(int(ends[-1]), 384))
    return Features(kept, ends, tokens, np.cumsum(unit_sizes), np.cumsum(text_units))


def _kept(encoder: MiniLMEncoder, texts: Sequence[str], keep: Path) -> Path:
    """Return the file with what is computed of these texts."""
    file = keep / f"{sha256(json.dumps(list(texts)).encode()).hexdigest()}.npz"
    if not file.is_file():
        read = sorted(encoder.states(texts), key=lambda one: one[0])
        units = [unit.tokens for _, _, some in read for unit in some]
        found = {
            "states": np.concatenate([states.numpy().astype(np.float16) for _, states, _ in read]),
            "sizes": np.array([len(states) for _, states, _ in read], np.int64),
            "tokens": np.array([token for unit in units for token in unit], np.int64),
            "unit_sizes": np.array([len(unit) for unit in units], np.int64),
            "text_units": np.array([len(some) for _, _, some in read], np.int64),
        }
        beside = file.with_suffix(f".{get_ident()}.npz")  # one that is cut off is not found
        np.savez(beside, allow_pickle=False, **found)
        beside.rename(file)
    return file
