"""An encoder that keeps on disk what it read of each text, by the text's digest: a second row encodes nothing again.

Neither vector nor wording depends on what is read beside a text (the encoder's own promise), so which process read it,
and when, changes nothing. The folder's name says model, revision, kernel and which code and head read the wording:
others never mix.
"""

import os
import struct
from collections.abc import Iterable, Sequence
from hashlib import sha256
from importlib import resources
from math import isnan, nan
from pathlib import Path
from types import TracebackType

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder import Encoder
from memsluice.encoder.base import read
from memsluice.envelope.seals import Wording

DIGEST = 32
"""Bytes of a SHA-256."""
WORDING = struct.Struct("<d3i")
"""Log-odds, NaN where nothing was read, and the three places."""
Read = tuple[NDArray[np.float32], Wording | None]


def digest_of(packages: Iterable[str]) -> str:
    """Return 12 digits of the SHA-256 of some packages' own files: code, models, policies."""
    whole = sha256()
    for package in packages:
        with resources.as_file(resources.files(package)) as folder:
            for path in sorted(folder.rglob("*")):
                if path.suffix in (".py", ".npz", ".npy", ".yaml"):
                    whole.update(
                        f"{package}/{path.relative_to(folder).as_posix()}".encode() + b"\0" + path.read_bytes()
                    )
    return whole.hexdigest()[:12]


READING = ("memsluice.encoder", "memsluice.events")
"""What makes a vector and a wording of a text."""


class DiskEncoder:
    """Gives what ``encoder`` does. Every process appends to a file of its own and reads all files when it starts.

    A record is a digest, a float32 vector and a wording; one that a killed process cut off is ignored. Grows with the
    texts: about 1.5 KiB each. A text that is encoded alone is read whole, so that its record is.
    """

    def __init__(self, encoder: Encoder, folder: Path) -> None:
        self._encoder = encoder
        self.model_id, self.revision, self.dimensions = encoder.model_id, encoder.revision, encoder.dimensions
        numbers = "-".join(getattr(encoder, "kernel", ("fp32",)))
        model = f"{encoder.model_id.rsplit('/', 1)[-1]}-{encoder.revision[:12]}-{numbers}"
        home = folder / f"{model}-{digest_of(READING)}"
        home.mkdir(parents=True, exist_ok=True)
        self._known: dict[bytes, Read] = {}
        for path in sorted(home.glob("*.vectors")):
            self._load(path)
        self._file = (home / f"{os.getpid()}.vectors").open("ab")
        self._file.truncate(self._file.tell() - self._file.tell() % self._size)
        self.encoded = 0

    @property
    def _size(self) -> int:
        return DIGEST + 4 * self.dimensions + WORDING.size

    def _load(self, path: Path) -> None:
        data, size = path.read_bytes(), self._size
        for at in range(0, len(data) - len(data) % size, size):
            vector = np.frombuffer(data, "<f4", self.dimensions, at + DIGEST).astype(np.float32)
            logit, *places = WORDING.unpack_from(data, at + size - WORDING.size)
            self._known[data[at : at + DIGEST]] = vector, None if isnan(logit) else Wording(logit, *places)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 of shape (len(texts), d), one L2-normalised row a text."""
        return self.read(texts)[0]

    def read(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[Wording | None]]:
        """Return the vectors, and what the wording of each text showed."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32), []
        keys = [sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        fresh = {key: text for key, text in zip(keys, texts, strict=True) if key not in self._known}
        if fresh:
            vectors, wordings = read(self._encoder, list(fresh.values()))
            self.encoded += len(fresh)
            for key, vector, wording in zip(fresh, vectors, wordings, strict=True):
                self._known[key] = vector, wording
                kept = WORDING.pack(*(wording or (nan, 0, 0, 0)))
                self._file.write(key + vector.astype("<f4").tobytes() + kept)
            self._file.flush()
        found = [self._known[key] for key in keys]
        return np.stack([vector for vector, _ in found]), [wording for _, wording in found]

    def __enter__(self) -> "DiskEncoder":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
