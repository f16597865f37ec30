"""An encoder that keeps its vectors on disk, by the digest of the text: a second row of a table encodes nothing again.

Vectors do not depend on what is encoded beside a text (the encoder's own promise), so which process encoded it, and
when, changes nothing. The folder's name says model, revision and precision: others never mix.
"""

import os
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder import Encoder

DIGEST = 32
"""Bytes of a SHA-256."""


class DiskEncoder:
    """Gives the vectors of ``encoder``. Every process appends to a file of its own and reads all files when it starts.

    A record is a digest and a float32 vector; one that a killed process cut off is ignored. Grows with the texts: about
    1.5 KiB each.
    """

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self._encoder = encoder
        self.model_id, self.revision, self.dimensions = encoder.model_id, encoder.revision, encoder.dimensions
        precision = getattr(encoder, "precision", "fp32")
        home = folder / f"{encoder.model_id.rsplit('/', 1)[-1]}-{encoder.revision[:12]}-{precision}"
        home.mkdir(parents=True, exist_ok=True)
        self._known: dict[bytes, NDArray[np.float32]] = {}
        for path in sorted(home.glob("*.vectors")):
            self._read(path)
        self._file = (home / f"{os.getpid()}.vectors").open("ab")
        self._file.truncate(self._file.tell() - self._file.tell() % self._size)
        self.encoded = 0

    @property
    def _size(self) -> int:
        return DIGEST + 4 * self.dimensions

    def _read(self, path: Path) -> None:
        data, size = path.read_bytes(), self._size
        for at in range(0, len(data) - len(data) % size, size):
            vector = np.frombuffer(data, "<f4", self.dimensions, at + DIGEST)
            self._known[data[at : at + DIGEST]] = vector.astype(np.float32)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 of shape (len(texts), d), one L2-normalised row a text."""
        keys = [sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if fresh:
            found = self._encoder.encode(list(fresh.values()))
            self.encoded += len(fresh)
            for key, vector in zip(fresh, found, strict=True):
                self._known[key] = vector
                self._file.write(key + vector.astype("<f4").tobytes())
            self._file.flush()
        return np.stack([self._known[key] for key in keys]) if texts else np.empty((0, self.dimensions), np.float32)

    def __enter__(self) -> "DiskEncoder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
