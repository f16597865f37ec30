"""Equal texts are encoded once: what an encoder read lately, a tenant's by itself.

What another tenant wrote is no shortcut: who measures how long an event takes would learn that somebody else wrote the
same, and who writes much would push out what others have. No text is kept, only its digest.
"""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from hashlib import sha256
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder.base import Encoder, read
from memsluice.envelope.seals import Wording

EACH_MAX = 256
"""Texts of one tenant."""
TENANTS_MAX = 64
"""Tenants, of whom the one that was read longest ago gives way; with the texts of each 384 dimensions take 25 MiB."""
Said = tuple[str, str]
"""A tenant, and a text of its own."""
Seen = tuple[NDArray[np.float32], Wording | None]
_Texts = OrderedDict[bytes, Seen]


class Remembering:
    """An encoder and what it read lately. May be called from any thread."""

    def __init__(self, encoder: Encoder, each_max: int = EACH_MAX, tenants_max: int = TENANTS_MAX) -> None:
        self._encoder = encoder
        self._each_max, self._tenants_max = each_max, tenants_max
        self._known: OrderedDict[str, _Texts] = OrderedDict()
        self._lock = Lock()

    def read(self, said: Sequence[Said]) -> list[Seen]:
        """Return each text's vector, float32 of shape (d,), and what its wording showed (None: nothing was read).

        Raises what the encoder raises; then nothing is remembered of these.
        """
        digests = [sha256(text.encode("utf-8", "surrogatepass")).digest() for _, text in said]
        found = self._remembered(said, digests)
        new = [at for at, one in enumerate(found) if one is None]
        if new:
            vectors, wordings = read(self._encoder, [said[at][1] for at in new])
            for at, vector, wording in zip(new, vectors, wordings, strict=True):
                found[at] = vector, wording
            self._remember(said, digests, found, new)
        return [one for one in found if one is not None]

    def _remembered(self, said: Sequence[Said], digests: Sequence[bytes]) -> list[Seen | None]:
        found: list[Seen | None] = []
        with self._lock:
            for (tenant, _), digest in zip(said, digests, strict=True):
                texts: Mapping[bytes, Seen] = self._known.get(tenant, {})
                if digest in texts:
                    self._known.move_to_end(tenant)
                    self._known[tenant].move_to_end(digest)
                found.append(texts.get(digest))
        return found

    def _remember(
        self, said: Sequence[Said], digests: Sequence[bytes], found: Sequence[Seen | None], new: Sequence[int]
    ) -> None:
        with self._lock:
            for at in new:
                one, tenant = found[at], said[at][0]
                assert one is not None
                texts = self._known.setdefault(tenant, OrderedDict())
                self._known.move_to_end(tenant)
                texts[digests[at]] = one[0].copy(), one[1]  # not a view that keeps its whole batch
                if len(texts) > self._each_max:
                    texts.popitem(last=False)
            while len(self._known) > self._tenants_max:
                self._known.popitem(last=False)
