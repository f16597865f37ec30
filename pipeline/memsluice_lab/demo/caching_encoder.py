"""The encoder with a short memory: a question is encoded once for the search and not again for its recall event."""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder import Encoder

TEXTS_MAX = 512


class MemoEncoder:
    """Gives the same vectors as ``encoder``, whose vectors do not depend on what is encoded beside a text."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder
        self._known: OrderedDict[str, NDArray[np.float32]] = OrderedDict()
        self.model_id, self.revision, self.dimensions = encoder.model_id, encoder.revision, encoder.dimensions

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return float32 of shape (len(texts), d), one L2-normalised row a text."""
        fresh = [text for text in dict.fromkeys(texts) if text not in self._known]
        found = {text: self._known[text] for text in texts if text in self._known}
        if fresh:
            found |= dict(zip(fresh, self._encoder.encode(fresh), strict=True))
        self._known.update((text, found[text]) for text in fresh)
        while len(self._known) > TEXTS_MAX:
            self._known.popitem(last=False)
        return np.stack([found[text] for text in texts]) if texts else np.empty((0, self.dimensions), np.float32)
