"""Equal texts are encoded once: what an encoder read lately, each writer's by itself.

What somebody else wrote earlier is no shortcut, in one tenant neither: who measures how long an event takes would learn
that another wrote the same. Nor does it push out what others have, while there are no more writers than places. No text
is kept, only its digest.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from memsluice.encoder.base import Encoder, read
from memsluice.envelope.seals import Wording

EACH_MAX = 64
"""Texts of one writer."""
WRITERS_MAX = 256
"""Writers, of whom the one that was read longest ago gives way; vectors of 384 dimensions of all texts take 25 MiB, and
what they are known by some 5."""
AT_ONCE_CHARS_MAX = 1 << 15
"""Characters, or one text, that are read at once: the inner states of long texts' tokens wait until each is whole."""
Writer = tuple[str, str, str]
"""A tenant, the id of the key that signed, and the principal for whom."""
Said = tuple[Writer, str]
"""A text, and whose it is."""
Read = tuple[NDArray[np.float32], Wording | None]
_Texts = OrderedDict[bytes, Read]
_Key = tuple[Writer, bytes]


class Remembering:
    """An encoder and what it read lately. May be called from any thread."""

    def __init__(self, encoder: Encoder, each_max: int = EACH_MAX, writers_max: int = WRITERS_MAX) -> None:
        self._encoder = encoder
        self._each_max, self._writers_max = each_max, writers_max
        self._known: OrderedDict[Writer, _Texts] = OrderedDict()
        self._lock = Lock()

    def read(self, said: Sequence[Said]) -> list[Read]:
        """Return each text's vector, float32 of shape (d,), not to be written to, and what its wording showed (None:
        nothing was read).

        Raises what the encoder raises; then nothing is remembered of these.
        """
        keys = [(writer, sha256(text.encode("utf-8", "surrogatepass")).digest()) for writer, text in said]
        found = self._remembered(keys)
        new = {key: text for key, (_, text) in zip(keys, said, strict=True) if key not in found}
        for some in _at_once(new):
            vectors, wordings = read(self._encoder, [new[key] for key in some])
            for key, vector, wording in zip(some, vectors, wordings, strict=True):
                own = vector.copy()  # not a view that keeps its whole batch
                own.setflags(write=False)
                found[key] = own, wording
        self._remember({key: found[key] for key in new})
        return [found[key] for key in keys]

    def _remembered(self, keys: Iterable[_Key]) -> dict[_Key, Read]:
        found: dict[_Key, Read] = {}
        with self._lock:
            for writer, digest in keys:
                texts = self._known.get(writer)
                if texts is not None and digest in texts:
                    self._known.move_to_end(writer)
                    texts.move_to_end(digest)
                    found[writer, digest] = texts[digest]
        return found

    def _remember(self, new: Mapping[_Key, Read]) -> None:
        with self._lock:
            for (writer, digest), one in new.items():
                texts = self._known.setdefault(writer, OrderedDict())
                self._known.move_to_end(writer)
                texts[digest] = one
                if len(texts) > self._each_max:
                    texts.popitem(last=False)
            while len(self._known) > self._writers_max:
                self._known.popitem(last=False)


def _at_once(new: Mapping[_Key, str]) -> Iterator[list[_Key]]:
    """Yield the keys of texts in groups of AT_ONCE_CHARS_MAX characters, in their order."""
    group, chars = list[_Key](), 0
    for key, text in new.items():
        if group and chars + len(text) > AT_ONCE_CHARS_MAX:
            yield group
            group, chars = [], 0
        group.append(key)
        chars += len(text)
    if group:
        yield group
