"""The encoder with a short memory: a question is encoded once for the search and not again for its recall event."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder import Encoder
from memsluice.encoder.base import read
from memsluice.envelope.seals import Wording

TEXTS_MAX = 512


class MemoEncoder:
    """Gives what ``encoder`` does, whose vectors and wordings do not depend on what is read beside a text."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: OrderedDict[str, tuple[NDArray[np.float32], Wording | None]] = OrderedDict()
        self.model_id, self.revision, self.dimensions = encoder.model_id, encoder.revision, encoder.dimensions

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 of shape (len(texts), d), one L2-normalised row a text."""
        return self.read(texts)[0]

    def read(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], list[Wording | None]]:
        """Return the vectors, and what the wording of each text showed."""
        if not texts:
            return np.empty((0, self.dimensions), np.float32), []
        found = {text: known for text in texts if (known := self._known.get(text)) is not None}
        fresh = [text for text in dict.fromkeys(texts) if text not in found]
        if fresh:
            found |= dict(zip(fresh, zip(*read(self._encoder, fresh), strict=True), strict=True))
        self._known.update((text, found[text]) for text in fresh)
        while len(self._known) > TEXTS_MAX:
            self._known.popitem(last=False)
        return np.stack([found[text][0] for text in texts]), [found[text][1] for text in texts]
